"""A model that has been read and checked.

Everything here is frozen and plain data: it can be pickled to a Spark worker, and two engines
that read the same XML hold equal projects.
"""

from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from espha.model.problems import Problem
from espha.model.types import TypeName

Index = Literal["pi_EMPTY", "pi_HASH", "pi_RBTREE", "pi_LN_HASH", "pi_CL_HASH", "pi_FW_HASH"]
Statistic = Literal[
    "nOut",
    "nmissOut",
    "minOut",
    "maxOut",
    "sumOut",
    "meanOut",
    "stdOut",
    "varOut",
    "cssOut",
    "ussOut",
    "stderrOut",
    "cvOut",
]


class Part(BaseModel):
    """Base of everything in a project: immutable, nothing undeclared."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Field(NamedTuple):
    """One field of a window's schema."""

    name: str
    type: TypeName
    key: bool = False


class Connector(Part):
    """A connector: how events enter (`pub`) or leave (`sub`) a window."""

    name: str
    class_: str
    type: Literal["pub", "sub"]
    properties: dict[str, str]
    line: int


class Edge(Part):
    """Events leaving the window `source` go to the window `target` (both "query/window")."""

    source: str
    target: str
    line: int


class Window(Part):
    """What all windows have.

    Attributes:
        kind: the word after `window-` in the XML.
        path: "query/window".
        index: how rows are kept; only pi_EMPTY keeps none.
        collapse_updates: an update leaves as one U instead of U and D.
    """

    kind: str
    name: str
    query: str
    line: int
    index: Index
    fields: tuple[Field, ...]
    connectors: tuple[Connector, ...] = ()
    collapse_updates: bool = False

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


class SourceWindow(Window):
    """Where events enter the model."""

    kind: Literal["source"] = "source"
    insert_only: bool = False
    autogen_key: bool = False


class FilterWindow(Window):
    """Lets an event through when its expression is neither zero nor null."""

    kind: Literal["filter"] = "filter"
    expression: str


class ComputeWindow(Window):
    """Computes each field that is no key; `expressions` has one for each of them, in order."""

    kind: Literal["compute"] = "compute"
    expressions: tuple[str, ...]


class CopyWindow(Window):
    """Keeps the rows of its input."""

    kind: Literal["copy"] = "copy"


class FunctionalWindow(Window):
    """Passes fields on by name."""

    kind: Literal["functional"] = "functional"


class Output(NamedTuple):
    """A statistic and the field that it is written to."""

    statistic: Statistic
    field: str


class CalculateWindow(Window):
    """Statistics of the field `input` over the last `window_length` events."""

    kind: Literal["calculate"] = "calculate"
    algorithm: Literal["Summary"]
    input: str
    window_length: int
    outputs: tuple[Output, ...]


AnyWindow = (
    SourceWindow | FilterWindow | ComputeWindow | CopyWindow | FunctionalWindow | CalculateWindow
)


class Project(Part):
    """A checked model.

    Attributes:
        windows: by "query/window", in the order of the XML.
        edges: in the order of the XML, one source and one target each.
        warnings: what the XML says and the engine does not use.
    """

    name: str
    windows: dict[str, AnyWindow]
    edges: tuple[Edge, ...]
    warnings: tuple[Problem, ...] = ()

    def inputs_of(self, path: str) -> list[str]:
        """Paths of the windows that feed the window `path`, in the order of the edges."""
        return [edge.source for edge in self.edges if edge.target == path]

    def targets_of(self, path: str) -> list[str]:
        """Paths of the windows that the window `path` feeds, in the order of the edges."""
        return [edge.target for edge in self.edges if edge.source == path]
