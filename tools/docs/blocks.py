"""The blocks of Markdown pages that are made of the code, between two comments.

    <!-- begin NAME: made by `python -m tools.docs` -->
    …
    <!-- end NAME -->

The text around them is written by hand. A test fails when a block is not what the code says.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from espha.protocol.reference import TABLES
from tools import ROOT
from tools.docs.cli import cli
from tools.docs.layers import layers, rules
from tools.docs.models import tables
from tools.docs.mutations import protections

BLOCKS: Final[dict[str, Callable[[], str]]] = {
    **TABLES,
    "cli": cli,
    "layers": layers,
    "import rules": rules,
    "models": tables,
    "protections": protections,
}
_BLOCK: Final = re.compile(r"<!-- begin ([a-z ]+)\b[^>]*-->\n.*?<!-- end \1 -->", re.DOTALL)


def pages() -> Iterator[Path]:
    """Yield the pages that can have blocks."""
    yield from (ROOT / name for name in ("README.md", "CONTRIBUTING.md"))
    yield from sorted((ROOT / "docs").rglob("*.md"))


def filled(text: str) -> str:
    """Return a page's text with its blocks as the code has them now.

    Raises:
        KeyError: there is no block of this name.
    """
    return _BLOCK.sub(_block, text)


def _block(found: re.Match[str]) -> str:
    name = found[1]
    head = f"<!-- begin {name}: made by `python -m tools.docs`; do not edit -->"
    return f"{head}\n\n{BLOCKS[name]().strip()}\n\n<!-- end {name} -->"
