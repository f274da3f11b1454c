"""The reference of models: a page for each window type, and tables derived from the code."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

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
from tools import ROOT
from tools.docs.algorithms import with_algorithms

FOLDER: Final = ROOT / "docs" / "reference" / "models"
_PAGES: Final = "reference/models/window-*.md"
"""What `mkdocs.yml` has in place of the pages of the window types."""
_HERE: Final = "../../../../docs/reference/models/"
"""How the page of a window type, beside its code, begins a link to another page."""
_NOTICE: Final = "<!-- A copy of {} by `python -m tools.docs`; do not edit. -->"


def window_pages() -> dict[Path, str]:
    """Return the pages of the window types, each a copy of the one beside the type's code."""
    return {FOLDER / f"window-{name}.md": _copy(one) for name, one in WINDOWS.items()}


def navigation(node: Any) -> Any:
    """Return a part of the site's navigation, with the window pages in place of their pattern."""
    if node == _PAGES:
        return [_entry(page) for page in window_pages()]
    if isinstance(node, dict):
        return {title: navigation(part) for title, part in node.items()}
    return [navigation(part) for part in node] if isinstance(node, list) else node


def _entry(page: Path) -> dict[str, str]:
    title = page.read_text(encoding="utf-8").partition("\n")[0]
    name = title.removeprefix("# ").removesuffix(" windows")
    return {name: page.relative_to(ROOT / "docs").as_posix()}


def _copy(window_type: WindowType) -> str:
    source = f"engine/{window_type.package.replace('.', '/')}/docs.md"
    title, _, text = (ROOT / source).read_text(encoding="utf-8").partition("\n")
    if window_type.name == "calculate":
        text = with_algorithms(text)
    return f"{title}\n\n{_NOTICE.format(source)}\n{text.replace(_HERE, '')}"


def tables() -> str:
    """Return the tables that are derived from the code."""
    return "\n\n".join(
        [
            "## Windows",
            _windows(),
            f"All windows: elements {_list(COMMON_ELEMENTS)}; attributes "
            f"{_list(COMMON_ATTRIBUTES)}. Ignored everywhere: {_list(IGNORED)}. Refused "
            f"with a hint: {_list(_refused_elements())}.",
            f"Windows without `retention`, whatever their index: {_no_retention()}.",
            "## Windows that are not supported",
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
