"""What an expression can see: fields, variables, the event, the clock."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from espha.languages.eel.canonical import quoted
from espha.languages.eel.closures import Run
from espha.languages.eel.errors import MAX_HEIGHT, MAX_STEPS, At, ExpressionError, listed
from espha.languages.eel.syntax import Node
from espha.languages.eel.value_types import ELEMENTS, ValueType, type_of
from espha.model.events import BadRecord, Event
from espha.model.project import Field

EVENT_WORDS: Final = frozenset({"esp_opcode", "esp_flags"})
TYPES_OF_NAMES: Final = {
    "integer": "int",
    "double": "double",
    "string": "string",
    "boolean": "int",
    "date": "date",
    "timestamp": "stamp",
    "regex": "regex",
    "integer array": "array(i64)",
    "boolean array": "array(i64)",
    "double array": "array(dbl)",
    "string array": "array(string)",
    "date array": "array(date)",
}
"""What the types of declarations stand for."""


class Context:
    """What a run knows beside the row.

    Attributes:
        event: the event.
        clock: milliseconds since 1970, from the order record.
        left: how many steps it may still take.
    """

    __slots__ = ("clock", "event", "left")

    def __init__(self) -> None:
        self.event = Event("I", "N", ())
        self.clock = 0
        self.left = MAX_STEPS

    def spend(self, steps: int) -> None:
        """Take steps off what is left.

        Raises:
            BadRecord: nothing is left.
        """
        self.left -= steps
        if self.left < 0:
            raise BadRecord(
                f"an expression takes more than {MAX_STEPS} steps; does one of its loops not end?"
            )


@dataclass(frozen=True, slots=True)
class Variable:
    """Where a variable is kept: `cells[slot]`."""

    type: ValueType
    cells: list[Any]
    slot: int

    @property
    def read(self) -> Run:
        """Return the function that gives its value."""
        cells, slot = self.cells, self.slot
        return lambda _row: cells[slot]


def new_value(type_: ValueType) -> Any:
    """Return what a variable holds at first; a regex matches nothing, an array is empty."""
    return () if type_ == "regex" or type_ in ELEMENTS else None


@dataclass(slots=True)
class Store:
    """Variables that outlive a run: `values` is the state, in the order of declaration."""

    values: list[Any] = field(default_factory=list)

    def declare(self, type_: ValueType, value: Any = None) -> Variable:
        """Make a variable."""
        self.values.append(new_value(type_) if value is None else value)
        return Variable(type_, self.values, len(self.values) - 1)


class Scope:
    """The names of one expression, initializer or function body.

    Attributes:
        context: of the run.
        needs: what a run must prepare: "context", "frame".
        frame: the local variables, empty at the start of each run.
        blank: what `frame` is at the start of each run.
        parameters: of a function body; None elsewhere.
        once: for an initializer: there is no event, and all its variables are shared.
        counts: whether something may run again and again, so that work on strings counts.
    """

    def __init__(
        self,
        context: Context,
        fields: Sequence[Field],
        shared: dict[str, Variable],
        kept: dict[str, Variable],
        store: Store,
        *,
        parameters: Sequence[ValueType] | None = None,
        once: bool = False,
    ) -> None:
        self.context = context
        self.once = once
        self.counts = parameters is not None
        self.needs: set[str] = set()
        self.blank: list[Any] = [None] * len(parameters or ())
        self.frame: list[Any] = list(self.blank)
        self.parameters = None if parameters is None else tuple(parameters)
        self._fields = {each.name: (place, each) for place, each in enumerate(fields)}
        self._folded = _folded(self._fields)
        self._shared, self._kept, self._store = shared, kept, store
        self._locals: dict[str, Variable] = {}
        self._copies: set[str] = set()

    def variable(self, name: str) -> Variable | None:
        """Return the variable of this name, in any case."""
        low = name.lower()
        return self._locals.get(low) or self._kept.get(low) or self._shared.get(low)

    def field(self, name: str) -> tuple[int, Field] | None:
        """Return the field of this name: exactly, else in any case when only one is meant."""
        found = self._fields.get(name)
        if found is None:
            names = self._folded.get(name.lower(), ())
            found = self._fields[names[0]] if len(names) == 1 else None
        return found

    def unknown(self, name: str, at: At) -> ExpressionError:
        """Return the refusal of a name that stands for nothing."""
        names = self._folded.get(name.lower(), ())
        if len(names) > 1:
            return ExpressionError(f"{name!r} can be {' or '.join(names)}", at)
        known = f"the input has {listed(list(self._fields))}" if self._fields else "there is none"
        return ExpressionError(f"there is no field {name!r}; {known}", at)

    def spell(self, name: str) -> str:
        """Return how a name is written in the canonical text."""
        if self.variable(name) is not None and not self.is_copy(name):
            return name.lower()
        found = self.field(name)
        return name.upper() if found is None else quoted(found[1].name)

    def declare(
        self, scope: str, type_: ValueType, name: str, at: At, value: Any = None
    ) -> Variable:
        """Make a variable; one that is there already stays, when it has the same type.

        Args:
            scope: "" for one that lives as long as a run, "private" or "static" for one that the
                expression keeps, "public" for one that the window's expressions share.
            type_: of its values.
            name: in small letters.
            at: where it is declared.
            value: what it holds at first; None: what its type says.
        """
        if self.field(name) is not None:
            raise ExpressionError(f"{name!r} is a field of the input; take another name", at)
        found = self.variable(name)
        if found is not None:
            if found.type != type_:
                raise ExpressionError(f"{name!r} is declared twice, with different types", at)
            return found
        if self.once:
            scope = "public"
        if scope == "":
            variable = self.local(type_, value)
            self._locals[name] = variable
            return variable
        names = self._shared if scope == "public" else self._kept
        return names.setdefault(name, self._store.declare(type_, value))

    def local(self, type_: ValueType, value: Any = None) -> Variable:
        """Make a variable without a name that lives as long as a run."""
        self.needs.add("frame")
        first = new_value(type_) if value is None else value
        self.blank.append(first)
        self.frame.append(first)
        return Variable(type_, self.frame, len(self.frame) - 1)

    def copy(self, name: str) -> tuple[Variable, int] | None:
        """Make a variable of a field that an expression changes; also return the field's place.

        None: there is no such field, or a variable has the name.
        """
        found = self.field(name)
        if found is None or self.variable(name) is not None:
            return None
        place, field = found
        variable = self._locals[name.lower()] = self.local(type_of(field.type))
        self._copies.add(name.lower())
        return variable, place

    def is_copy(self, name: str) -> bool:
        """Say whether the variable of this name holds what was a field's value."""
        return name.lower() in self._copies

    def parameter(self, place: int) -> Variable:
        """Return the variable of a parameter, counted from 0."""
        assert self.parameters is not None  # noqa: S101 - the caller has looked
        return Variable(self.parameters[place], self.frame, place)


def check_height(height: int, node: Node) -> None:
    """Refuse what would nest too deep when it runs."""
    if height > 2 * MAX_HEIGHT:
        raise ExpressionError(f"with its functions nested deeper than {2 * MAX_HEIGHT}", node.at)


def _folded(names: Iterable[str]) -> Mapping[str, list[str]]:
    result: dict[str, list[str]] = {}
    for name in names:
        result.setdefault(name.lower(), []).append(name)
    return result
