"""The primary index of a stateful window: its rows, by key.

It turns what an event asks for into what happens to the row:

    opcode          row exists          row does not exist
    I               refused             I
    U               U new + D old       refused
    P               U new + D old       I
    D               D with the old row  refused
    SD              D with the old row  nothing
"""

from collections.abc import Sequence
from typing import Any

from espha.model.project import Field
from espha.windows.events import BadRecord, Event, Value
from espha.windows.stage import Moment, Unit

Row = tuple[Value, ...]


class Index:
    """Rows by key; all kinds of index behave alike."""

    def __init__(self, fields: tuple[Field, ...]) -> None:
        self._key = [place for place, field in enumerate(fields) if field.key]
        self._rows: dict[Row, Row] = {}

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Apply one event or update block; of a block the new row counts, the old one is known."""
        event = unit[0]
        key = tuple([event.values[place] for place in self._key])
        if None in key:
            raise BadRecord("the key is null")
        old = self._rows.get(key)
        if event.opcode in {"D", "SD"}:
            return self._delete(event, key, old)
        if event.opcode == "I" and old is not None:
            raise BadRecord(f"insert of key {_shown(key)}, which exists")
        if event.opcode == "U" and old is None:
            raise BadRecord(f"update of key {_shown(key)}, which does not exist")
        return self._write(event, key, old)

    def _write(self, event: Event, key: Row, old: Row | None) -> Sequence[Unit]:
        if old is None:
            self._rows[key] = event.values
            return ((Event("I", "N", event.values),),)
        values = event.values
        if event.flags == "P":
            # A partial update: what is null in it stays as it is.
            values = tuple([b if a is None else a for a, b in zip(values, old, strict=True)])
        self._rows[key] = values
        return ((Event("U", "N", values), Event("D", "N", old)),)

    def _delete(self, event: Event, key: Row, old: Row | None) -> Sequence[Unit]:
        if old is None:
            if event.opcode == "D":
                raise BadRecord(f"delete of key {_shown(key)}, which does not exist")
            return ()
        del self._rows[key]
        return ((Event("D", event.flags, old),),)

    def state(self) -> Any:
        """Return all rows."""
        return dict(self._rows)

    def restore(self, state: Any) -> None:
        """Take over the rows."""
        self._rows = dict(state)


def _shown(key: Row) -> str:
    return ", ".join("null" if part is None else str(part)[:60] for part in key)
