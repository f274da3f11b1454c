"""A model that has been read and checked.

Everything here is frozen and plain data: it can be pickled to a Spark worker, and two engines
that read the same XML hold equal projects.
"""

from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, SerializeAsAny

from espha.model.problems import Problem
from espha.model.types import TypeName

Index = Literal[
    "pi_EMPTY", "pi_HASH", "pi_RBTREE", "pi_LN_HASH", "pi_CL_HASH", "pi_FW_HASH", "pi_HLEVELDB"
]  # fmt: skip


class Part(BaseModel):
    """Base of everything in a project: immutable, nothing undeclared."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Field(NamedTuple):
    """One field of a window's schema."""

    name: str
    type: TypeName
    key: bool = False


ConnectorState = Literal["started", "running", "finished", "stopped"]


class Connector(Part):
    """A connector: how events enter (`pub`) or leave (`sub`) a window."""

    name: str
    class_: str
    type: Literal["pub", "sub"]
    properties: dict[str, str]
    line: int


class ConnectorGroup(Part):
    """Connectors that start together.

    Attributes:
        entries: connectors ("query/window/connector"), and the state each of them must have
            before other groups start.
        after: names of the groups that must be so far before this one starts.
    """

    name: str
    entries: tuple[tuple[str, ConnectorState], ...]
    after: tuple[str, ...] = ()


class Edge(Part):
    """Events leaving the window `source` go to the window `target` (both "query/window").

    Attributes:
        role: what the target takes them for, such as "left"; mostly "data".
        slot: which of the source's slots; None: all events.
    """

    source: str
    target: str
    line: int
    role: str = "data"
    slot: int | None = None


class Retention(Part):
    """When a window lets go of its rows.

    Attributes:
        by: what is limited: the number of rows, or their age.
        jumping: all rows leave together when the limit is reached, else each on its own.
        amount: rows, or milliseconds.
        field: field that tells a row's time; empty: the clock of the order record.
    """

    by: Literal["count", "time"]
    jumping: bool
    amount: int
    field: str = ""


class Splitter(Part):
    """Says by an expression to which slot an event goes.

    Attributes:
        expression: its canonical text.
        initialize: canonical text of the window's `<expr-initialize>` for it; empty: none.
    """

    expression: str
    initialize: str = ""


class Window(Part):
    """What all windows have.

    Attributes:
        type: the word after `window-` in the XML.
        path: "query/window".
        index: how rows are kept; only pi_EMPTY keeps none.
        insert_only_output: only inserts leave; other events are dropped.
        retention: when rows leave by themselves; None: never.
        splitter: to which slot an event goes; None: there are no slots.
    """

    type: str
    name: str
    query: str
    line: int
    index: Index
    fields: tuple[Field, ...]
    connectors: tuple[Connector, ...] = ()
    insert_only_output: bool = False
    retention: Retention | None = None
    splitter: SerializeAsAny[Splitter] | None = None

    @property
    def path(self) -> str:
        """The window's name in the project: "query/window"."""
        return f"{self.query}/{self.name}"

    @property
    def stateful(self) -> bool:
        """Whether the window keeps its rows by key."""
        return self.index != "pi_EMPTY"

    def kafka(self, direction: Literal["pub", "sub"]) -> Connector | None:
        """Return the window's Kafka connector of this direction, if it has one."""
        for connector in self.connectors:
            if connector.class_ == "kafka" and connector.type == direction:
                return connector
        return None


class IdleWindow(Window):
    """A window that no event can reach, because no edge leads into it; it does nothing."""


class Project(Part):
    """A checked model.

    Attributes:
        windows: by "query/window", in the order of the XML.
        edges: in the order of the XML, one source and one target each.
        groups: in which connectors start, in the order of the XML.
        snippets: scripts that belong to no window, in the order of the XML.
        warnings: what the XML says and the engine does not use.
    """

    name: str
    windows: dict[str, SerializeAsAny[Window]]
    edges: tuple[Edge, ...]
    groups: tuple[ConnectorGroup, ...] = ()
    snippets: tuple[SerializeAsAny[Part], ...] = ()
    warnings: tuple[Problem, ...] = ()

    def edges_into(self, path: str) -> list[Edge]:
        """Edges that lead into the window `path`, in the order of the XML."""
        return [edge for edge in self.edges if edge.target == path]

    def edges_from(self, path: str) -> list[Edge]:
        """Edges that leave the window `path`, in the order of the XML."""
        return [edge for edge in self.edges if edge.source == path]
