"""The Markdown pages of the repository: headings, links, and what is written as code."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
_FENCE = re.compile(r"^ *```")
_HEADING = re.compile(r"^#{1,6} (.+)$")
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_ABROAD = re.compile(r"^(https?:|mailto:)")


def pages() -> list[Path]:
    """Return all Markdown files of the repository."""
    folders = ("docs", "engine", "operator", "charts", "images", "tools", "tests")
    below = (path for folder in folders for path in (ROOT / folder).rglob("*.md"))
    return sorted((*ROOT.glob("*.md"), *below))


def name(page: Path) -> str:
    """Return a page's path in the repository, for test ids and messages."""
    return str(page.relative_to(ROOT))


def lines(page: Path) -> Iterator[tuple[bool, str]]:
    """Yield each line, with whether it is within a fenced block of code."""
    code = False
    for line in page.read_text(encoding="utf-8").splitlines():
        if _FENCE.match(line):
            code = not code
        else:
            yield code, line


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as Python-Markdown makes them."""
    found: set[str] = set()
    for code, line in lines(page):
        if not code and (heading := _HEADING.match(line)):
            slug = _slug(heading[1])
            number = 1
            while (one := slug if number == 1 else f"{slug}_{number - 1}") in found:
                number += 1
            found.add(one)
    return found


def _slug(heading: str) -> str:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    kept = re.sub(r"[^\w\s-]", "", text.encode("ascii", "ignore").decode()).strip().lower()
    return re.sub(r"[-\s]+", "-", kept)


def links(page: Path) -> list[str]:
    """Return the targets of a page's links, but for those to other sites."""
    prose = (_INLINE.sub("", line) for code, line in lines(page) if not code)
    found = (target for line in prose for target in _LINK.findall(line))
    return [target for target in found if not _ABROAD.match(target)]


def inline_code(page: Path) -> list[str]:
    """Return what stands between single backticks outside of blocks."""
    return [text for code, line in lines(page) if not code for text in _INLINE.findall(line)]


def code_lines(page: Path) -> list[str]:
    """Return the lines of fenced blocks; those that a backslash continues are one."""
    text = "\n".join(line.strip() for code, line in lines(page) if code)
    return re.sub(r" *\\\n", " ", text).splitlines()
