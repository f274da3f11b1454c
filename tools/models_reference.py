"""Assembles docs/models.md: pages from docs/models.d/, and tables made from the code.

python -m tools.models_reference          write it
python -m tools.models_reference --check  exit 1 when it is not up to date
"""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

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
from espha.windows.shared.spec import COMMON_ATTRIBUTES, COMMON_ELEMENTS, WindowType
from espha.windows.types import WINDOWS

PAGE: Final = Path(__file__).parent.parent / "docs/models.md"
PARTS: Final = PAGE.with_suffix(".d")

FIRST: Final = (
    "intro", "projects", "events", "source", "eel", "tables", "functional", "pattern", "calculate",
    "shapes", "geofence", "scripts", "notification",
)  # fmt: skip
"""Pages in this order; the others follow by name."""

LAST: Final = ("python-models", "offline")

REFUSED_ELEMENTS: Final = frozenset(
    {
        "code-file", "context-plugin", "ds2-tableserver", "field-plug", "filter-plug", "mas-map",
        "plugin", "splitter-plug",
    }
)  # fmt: skip
"""Elements that are known only to say in the message what to write instead."""

REFUSED_WINDOWS: Final = {
    "train, score, model-reader": "analytics that are trained elsewhere; use calculate",
    "procedural": "MAS and DS2 modules, and C++ plug-ins; use an expression or a script",
    "video, image, audio": "not read",
}


def page() -> str:
    """Return the whole page."""
    parts = [_fitted(path) for path in _pages()]
    return "\n\n".join([*parts, reference()]) + "\n"


def _fitted(path: Path) -> str:
    """Return a page with headings of the second level and below; only the first has a title."""
    text = path.read_text(encoding="utf-8").strip()
    if path.stem == FIRST[0]:
        return text
    if not text.startswith("#"):
        return f"## {path.stem.capitalize()}\n\n{text}"
    return _lowered(text) if text.startswith("# ") else text


def _lowered(text: str) -> str:
    code, lines = False, []
    for line in text.splitlines():
        code ^= line.startswith("```")
        lines.append(f"#{line}" if line.startswith("#") and not code else line)
    return "\n".join(lines)


def _pages() -> list[Path]:
    found = {path.stem: path for path in PARTS.glob("*.md")}
    middle = sorted(set(found) - set(FIRST) - set(LAST))
    return [found[name] for name in (*FIRST, *middle, *LAST) if name in found]


def reference() -> str:
    """Return the tables that are made from the code."""
    return "\n\n".join(
        [
            "## Reference",
            "These tables are made from the code. What is not in them is refused if it is an "
            "element, and a warning if it is an attribute or a property.",
            "### Windows",
            _windows(),
            f"All windows: elements {_list(COMMON_ELEMENTS - REFUSED_ELEMENTS)}; attributes "
            f"{_list(COMMON_ATTRIBUTES)}. Ignored anywhere: {_list(IGNORED)}. Refused "
            f"with a hint: {_list(REFUSED_ELEMENTS)}.",
            f"Windows that have no `retention`, whatever their index: {_no_retention()}.",
            "### Functions",
            _table(("language", "functions"), _functions()),
            "### Connectors",
            _table(("connector", "properties that have an effect"), _connectors()),
        ]
    )


def _windows() -> str:
    rows = [
        (
            f"`window-{name}`",
            "supported",
            _inputs(kind),
            _list(kind.elements - REFUSED_ELEMENTS),
            _list(kind.attributes),
        )
        for name, kind in sorted(WINDOWS.items())
    ]
    rows += [(name, "refused", "", why, "") for name, why in REFUSED_WINDOWS.items()]
    return _table(("window", "", "edges into it", "own elements", "own attributes"), rows)


def _no_retention() -> str:
    return "; ".join(
        f"`window-{name}` ({kind.no_retention})"
        for name, kind in sorted(WINDOWS.items())
        if kind.no_retention
    )


def _inputs(kind: WindowType) -> str:
    least, most = kind.inputs
    count = (
        str(least) if least == most else f"{least} or more" if most is None else f"{least}-{most}"
    )
    return f"{count}; roles {_list(kind.roles)}" if kind.roles else count


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
