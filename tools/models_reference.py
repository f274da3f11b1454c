"""The reference of models: pages of docs/models.d and of each window type, and generated tables.

python -m tools.models_reference          write docs/models.md
python -m tools.models_reference --check  exit 1 when it is not up to date
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

from espha.connectors.files import (
    KAFKA_SOURCE_PROPERTIES,
    KAFKA_TARGET_PROPERTIES,
    SOURCE_PROPERTIES,
    TARGET_PROPERTIES,
)
from espha.connectors.timers import TIMER_PROPERTIES
from espha.languages.eel.calls import SPECIAL
from espha.languages.eel.functions import CASTS, FUNCTIONS, REFUSED
from espha.languages.functional import FUNCTIONS as FUNCTIONAL
from espha.model.xml import IGNORED
from espha.windows.aggregate.functions import FUNCTIONS as AGGREGATES
from espha.windows.shared.spec import (
    COMMON_ATTRIBUTES,
    COMMON_ELEMENTS,
    COMMON_REFUSED,
    WindowType,
)
from espha.windows.types import REFUSED_WINDOWS, WINDOWS

PAGE: Final = Path(__file__).parent.parent / "docs/models.md"
PARTS: Final = PAGE.with_suffix(".d")

BEFORE: Final = ("intro", "projects", "events", "retention", "splitters")
"""General pages before those of the windows."""

AFTER: Final = (
    "expressions", "functional-language", "scripts", "connectors", "python-models", "offline",
)  # fmt: skip
"""General pages after those of the windows."""

_LINK: Final = re.compile(r"\]\(#([a-z0-9-]+)\)")


class Page(NamedTuple):
    """One page of the reference.

    Attributes:
        name: of its file, without a suffix.
        title: of its one heading of the first level.
        markdown: the text, from that heading on. Links to other pages are to their heading
            ("#retention"), as in one document; `linked` makes links to files of them.
    """

    name: str
    title: str
    markdown: str


def pages() -> Iterator[Page]:
    """Yield the pages in order: general ones, each window type in the order of the list, tables."""
    for name in BEFORE:
        yield _page(name, (PARTS / f"{name}.md").read_text(encoding="utf-8"))
    for name, window_type in WINDOWS.items():
        text = (files(window_type.package) / "docs.md").read_text(encoding="utf-8")
        yield _page(f"window-{name}", text)
    for name in AFTER:
        yield _page(name, (PARTS / f"{name}.md").read_text(encoding="utf-8"))
    yield _page("reference", reference())


def _page(name: str, text: str) -> Page:
    text = text.strip()
    return Page(name, text.partition("\n")[0].removeprefix("# "), text)


def linked(pages: Iterable[Page]) -> Iterator[Page]:
    """Yield pages whose links to each other are links to files beside them."""
    known = list(pages)
    names = {_anchor(page.title): page.name for page in known}
    for page in known:
        yield page._replace(
            markdown=_LINK.sub(lambda found: f"]({names[found[1]]}.md)", page.markdown)
        )


def _anchor(title: str) -> str:
    """Return what a heading is called in links."""
    return re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")


def page() -> str:
    """Return all pages as one; only the first has a heading of the first level."""
    first, *others = pages()
    return "\n\n".join([first.markdown, *(_lowered(each.markdown) for each in others)]) + "\n"


def _lowered(text: str) -> str:
    code, lines = False, []
    for line in text.splitlines():
        code ^= line.startswith("```")
        lines.append(f"#{line}" if line.startswith("#") and not code else line)
    return "\n".join(lines)


def reference() -> str:
    """Return the tables that are derived from the code."""
    return "\n\n".join(
        [
            "# Reference",
            "These tables are derived from the code. An element that is not listed is refused. An "
            "attribute or a property that is not listed gives a warning.",
            "## Windows",
            _windows(),
            f"All windows: elements {_list(COMMON_ELEMENTS)}; attributes "
            f"{_list(COMMON_ATTRIBUTES)}. Ignored everywhere: {_list(IGNORED)}. Refused "
            f"with a hint: {_list(_refused_elements())}.",
            f"Windows without `retention`, whatever their index: {_no_retention()}.",
            "Windows that are not supported:",
            _table(("window", "reason"), _refused_windows()),
            "## Functions",
            _table(("language", "functions"), _functions()),
            "## Connector properties",
            _table(("connector", "properties that have an effect"), _connectors()),
        ]
    )


def _windows() -> str:
    rows = [
        (
            f"`window-{name}`",
            _inputs(window_type),
            _list(window_type.elements),
            _list(window_type.attributes),
        )
        for name, window_type in sorted(WINDOWS.items())
    ]
    return _table(("window", "edges into it", "own elements", "own attributes"), rows)


def _refused_elements() -> set[str]:
    """Return the elements that are known only to say in the message what to write instead."""
    return set(COMMON_REFUSED).union(*(each.refused for each in WINDOWS.values()))


def _refused_windows() -> list[tuple[str, str]]:
    by_reason: dict[str, list[str]] = {}
    for name, reason in REFUSED_WINDOWS.items():
        by_reason.setdefault(reason, []).append(f"`window-{name}`")
    return [(" ".join(names), reason) for reason, names in by_reason.items()]


def _no_retention() -> str:
    return "; ".join(
        f"`window-{name}` ({window_type.no_retention})"
        for name, window_type in sorted(WINDOWS.items())
        if window_type.no_retention
    )


def _inputs(window_type: WindowType) -> str:
    least, most = window_type.inputs
    count = (
        str(least) if least == most else f"{least} or more" if most is None else f"{least}-{most}"
    )
    return f"{count}; roles {_list(window_type.roles)}" if window_type.roles else count


def _functions() -> list[tuple[str, str]]:
    return [
        ("expressions (EEL)", _list([*FUNCTIONS, *SPECIAL, *CASTS])),
        ("expressions, refused", _list(REFUSED)),
        ("aggregates, as `ESP_a…`", _list(AGGREGATES)),
        ("function contexts", _list(FUNCTIONAL)),
    ]


def _connectors() -> list[tuple[str, str]]:
    kafka = {"type", "kafkatopic", "kafkatype", "urlhostport", "kafkapartition", "active"}
    pub, sub = KAFKA_SOURCE_PROPERTIES, KAFKA_TARGET_PROPERTIES
    return [
        ("`fs`, type pub", _list(SOURCE_PROPERTIES)),
        ("`fs`, type sub", _list(TARGET_PROPERTIES)),
        ("`timer`", _list(TIMER_PROPERTIES)),
        ("`kafka`, type pub", _list(kafka | pub)),
        ("`kafka`, type sub", _list(kafka | sub)),
    ]


def _list(names: Iterable[str] | Mapping[str, object]) -> str:
    return " ".join(f"`{name}`" for name in sorted(set(names)))


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = list(head)
    lines = [heads, ["---"] * len(heads), *(list(row) for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main() -> int:
    """Write the page, or say whether it is up to date."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    if PAGE.read_text(encoding="utf-8") == page():
        return 0
    sys.stderr.write("docs/models.md is not up to date: run python -m tools.models_reference\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
