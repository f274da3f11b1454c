"""Source windows: what comes from outside is checked here, and nowhere else."""

from collections.abc import Sequence
from typing import Any

from espha.model.events import FLAGS, OPCODES, BadRecord, Event, Value, event_of
from espha.model.project import Field
from espha.model.types import checker
from espha.windows.shared.stage import Moment, Stage, Unit
from espha.windows.source.spec import SourceWindow


def stages(window: SourceWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a source window."""
    return [Intake(window)]


class Intake:
    """Checks events against the schema and numbers keys that are made here."""

    def __init__(self, window: SourceWindow) -> None:
        self._fields = window.fields
        self._checkers = [checker(field.type) for field in window.fields]
        self._width = len(window.fields)
        self._keys = [place for place, field in enumerate(window.fields) if field.key]
        self._insert_only = window.insert_only
        self._autogen = window.autogen_key
        self._text_key = window.fields[self._keys[0]].type == "string"
        self._next = 0

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Return the event with values of the schema's types."""
        event = unit[0]
        opcode, flags, given = event
        if opcode != "I" or flags != "N" or len(given) != self._width:
            self._check_head(event)
        try:
            values = [check(one) for check, one in zip(self._checkers, given, strict=True)]
        except ValueError:
            raise BadRecord(self._reason(given)) from None
        if self._autogen:
            values = self._numbered(values)
        for place in self._keys:
            if values[place] is None:
                raise BadRecord(f"key field {self._fields[place].name} is null")
        return ((event_of((opcode, flags, tuple(values))),),)

    def _check_head(self, event: Event) -> None:
        opcode, flags, values = event
        if len(values) != self._width:
            raise BadRecord(f"{len(values)} values for {self._width} fields")
        if opcode not in OPCODES:
            raise BadRecord(f"opcode {opcode!r} is not one of {', '.join(OPCODES)}")
        if self._insert_only and opcode != "I":
            raise BadRecord(f"opcode {opcode} for a window that takes inserts only")
        if flags not in FLAGS:
            raise BadRecord(f"flags {flags!r} is not one of {', '.join(FLAGS)}")
        if flags == "P" and opcode not in {"U", "P"}:
            raise BadRecord(f"flag P (partial) with opcode {opcode}; it goes with U or P")
        if flags == "R":
            raise BadRecord("flag R is for retention, not for input")

    def _reason(self, values: tuple[Value, ...]) -> str:
        """Find the field again: naming it beforehand would cost every good event."""
        for field, check, value in zip(self._fields, self._checkers, values, strict=True):
            try:
                check(value)
            except ValueError as error:
                return f"field {field.name}: {error}"
        raise AssertionError("no field was refused")

    def _numbered(self, values: list[Value]) -> list[Value]:
        # A key that comes with the event does not count, as in SAS ESP.
        place, number = self._keys[0], self._next
        values[place] = str(number) if self._text_key else number
        self._next = number + 1
        return values

    def state(self) -> Any:
        """Return the next number."""
        return self._next

    def restore(self, state: Any) -> None:
        """Go on with this number."""
        self._next = state
