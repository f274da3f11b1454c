"""What a window type says of itself, and what reading its XML needs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from lxml import etree

from espha.model.problems import Findings
from espha.model.project import Field, Window
from espha.windows.shared.library import Library

COMMON_ELEMENTS = frozenset(
    {"connectors", "retention", "splitter-expr", "splitter-lua", "splitter-python"}
)
COMMON_REFUSED = frozenset({"splitter-plug"})
"""Elements that are known in every window only to say what to write instead."""
COMMON_ATTRIBUTES = frozenset(
    {"name", "pubsub", "index", "collapse-updates", "output-insert-only", "produces-only-inserts"}
)

Family = Literal[
    "entry", "choice", "computation", "rows", "merging", "statistics", "patterns", "places",
    "messages",
]  # fmt: skip
"""What windows are for; windows of one family have one colour in a graph."""


class Feed(NamedTuple):
    """One edge that leads into a window, and what comes along it.

    Attributes:
        path: "query/window" of the window that the edge comes from.
        role: the edge's role, such as "left"; "data" when it has none.
        slot: the slot of that window; None: all events.
        fields: schema of that window.
    """

    path: str
    role: str
    slot: int | None
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """One window while it is read.

    Attributes:
        element: its XML.
        common: what all windows have, as arguments of the window's class; no `fields` yet.
        feeds: the edges into it, in the order of the XML; `Moment.port` counts them.
        findings: where problems go.
        library: what the scripts of the project share.
        tagged: what one source event leads to on several ways is taken together where they meet.
    """

    element: etree._Element
    common: dict[str, Any]
    feeds: tuple[Feed, ...]
    findings: Findings
    library: Library = field(default_factory=Library)
    tagged: bool = False

    @property
    def feed(self) -> tuple[Field, ...]:
        """Schema of the first window that feeds it; empty for a source."""
        return self.feeds[0].fields if self.feeds else ()

    def refuse(self, reason: str) -> None:
        """Refuse the window."""
        self.findings.refuse(self.element, reason)


@dataclass(frozen=True, slots=True)
class WindowType:
    """A window type.

    Attributes:
        name: the word after `window-`.
        read: makes the window; None when it has problems, which it has then reported.
        family: what windows of this type are for.
        elements: child elements that the type has beside the common ones.
        refused: elements that are known only to say what to write instead; `read` refuses them.
        attributes: attributes that the type has beside the common ones.
        inputs: least and greatest number of edges into it; None: any number.
        roles: what an edge into it may be taken for, beside "data".
        no_retention: why a window of this type has no `<retention>`; empty: it can have one.
        own_rows: it keeps its rows itself, in another way than by an index over what leaves.
        by_name: of several inputs it sees one schema, in which fields go by their names.
    """

    name: str
    read: Callable[[Reading], Window | None]
    family: Family
    elements: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    inputs: tuple[int, int | None] = (1, 1)
    roles: frozenset[str] = frozenset()
    no_retention: str = ""
    own_rows: bool = False
    by_name: bool = False

    @property
    def package(self) -> str:
        """Name of the package of the type: its specification, stages, documentation, example."""
        return self.read.__module__.rpartition(".")[0]
