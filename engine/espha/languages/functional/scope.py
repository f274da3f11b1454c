"""Steps of a function context, in the order in which they run."""

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

from espha.languages.functional.catalog import Run
from espha.languages.functional.compile import Names, compile_node
from espha.languages.functional.documents import as_list, as_map, read_json, read_xml
from espha.languages.functional.errors import FunctionError
from espha.languages.functional.frame import Frame
from espha.languages.functional.parse import Call, FieldName, Node, PropertyName, parse
from espha.languages.functional.values import Pairs, text

StepKind = Literal["function", "map", "xml", "json", "string", "list", "set"]
MAX_STEPS: Final = 2_000


class Step(NamedTuple):
    """One function or property.

    Attributes:
        kind: "function", or the word after `property-`.
        name: its name.
        text: its function, in canonical form.
        outer: delimiter between the parts of a list, set or map.
        inner: delimiter between name and value of a map.
    """

    kind: StepKind
    name: str
    text: str
    outer: str = ","
    inner: str = "="


class Scope:
    """What is known at some point of a context; grows step by step.

    Attributes:
        names: what names stand for at this point.
        steps: what has been added here (not in the scope around it), ready to run.
        size: how many slots a frame needs.
    """

    def __init__(self, fields: Sequence[str]) -> None:
        self.names = Names(fields)
        self.steps: list[tuple[int, Run]] = []
        self.size = 0

    def inner(self) -> "Scope":
        """Return the scope of a loop: it sees what is here, and what it adds stays there."""
        scope = Scope(())
        scope.names = self.names.copy()
        scope.size = self.size
        return scope

    def declare_all(self, names: Sequence[str]) -> int:
        """Give names to the element of a loop; return its slot."""
        slot = self.size
        for name in names:
            self.names.properties[name] = slot
        self.size += 1
        return slot

    def expression(self, name: str, constant: str) -> None:
        """Add a constant text."""
        self.names.constants[name] = constant

    def add(self, step: Step) -> None:
        """Add a function or property.

        Raises:
            FunctionError: it cannot be run here.
        """
        if self.size >= MAX_STEPS:
            raise FunctionError(f"more than {MAX_STEPS} functions and properties")
        run = _made(step, compile_node(parse(step.text), self.names))
        places = self.names.results if step.kind == "function" else self.names.properties
        # A name that is used again is a new value: what stands before keeps the old one.
        places[step.name] = self.size
        self.steps.append((self.size, run))
        self.size += 1

    def compiled(self, function: str) -> Run:
        """Return a function that sees everything of this scope.

        Raises:
            FunctionError: it cannot be run here.
        """
        return compile_node(parse(function), self.names)

    def run(self, frame: Frame) -> None:
        """Run the steps of this scope."""
        slots = frame.slots
        for slot, run in self.steps:
            slots[slot] = run(frame)


def _made(step: Step, run: Run) -> Run:
    """Return what makes a property of what its function gives."""
    outer, inner = step.outer, step.inner
    makers: dict[str, Run] = {
        "function": run,
        "string": lambda frame: text(run(frame)),
        "xml": lambda frame: read_xml(run(frame)),
        "json": lambda frame: read_json(run(frame)),
        "list": lambda frame: tuple(as_list(run(frame), outer)),
        "set": lambda frame: frozenset(_texts(as_list(run(frame), outer))),
        "map": lambda frame: _pairs(run(frame), outer, inner),
    }
    return makers[step.kind]


def _pairs(source: Any, outer: str, inner: str) -> Pairs:
    return Pairs(as_map(source, outer, inner), text(source) or "")


def _texts(parts: Sequence[Any]) -> list[str]:
    return [found for part in parts if (found := text(part)) is not None]


def used_names(node: Node) -> set[str]:
    """Return the names that a tree uses, `$` and `#` alike."""
    names: set[str] = set()
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, FieldName | PropertyName):
            names.add(each.name)
        elif isinstance(each, Call):
            waiting += each.arguments
    return names
