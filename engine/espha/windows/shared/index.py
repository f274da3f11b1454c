"""The primary index of a stateful window: its rows, by key.

It turns what an event asks for into what happens to the row:

    opcode          row exists          row does not exist
    I               refused             I
    U               U new + D old       refused
    P               U new + D old       I
    D               D with the old row  refused
    SD              D with the old row  nothing

What retention causes, here and in the windows that follow, keeps the flag R.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from espha.model.events import BadRecord, Event, Value
from espha.model.project import Field, Retention, Window
from espha.windows.shared.retention import Clock, policy_of
from espha.windows.shared.stage import Moment, Unit

Row = tuple[Value, ...]


class Change(NamedTuple):
    """What happens to one row.

    Attributes:
        key: its key.
        old: the row as it is; None: there is none.
        new: the row as it will be; None: there will be none.
        flags: R if retention is the reason, else N.
    """

    key: Row
    old: Row | None
    new: Row | None
    flags: str

    def unit(self) -> Unit:
        """Return the change as what leaves a window."""
        _, old, new, flags = self
        if new is None:
            assert old is not None  # noqa: S101 - a change has an old row or a new one
            return (Event("D", flags, old),)
        if old is None:
            return (Event("I", flags, new),)
        return (Event("U", flags, new), Event("D", flags, old))


class Rows:
    """Rows by key; all kinds of index behave alike. First ask for a change, then apply it."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._key = [place for place, field in enumerate(fields) if field.key]
        self.by_key: dict[Row, Row] = {}

    def change(self, unit: Unit) -> Change | None:
        """Return what an event or update block does; None: nothing.

        Of a block the new row counts, since the old one is known.

        Raises:
            BadRecord: the rows do not allow it.
        """
        opcode, flags, values = unit[0]
        key = tuple([values[place] for place in self._key])
        # In what an outer join gives, the key of one side can be null.
        if None in key and not any(part is not None for part in key):
            raise BadRecord("the key is null")
        old = self.by_key.get(key)
        because = "R" if flags == "R" else "N"
        if opcode in {"D", "SD"}:
            if old is None and opcode == "D":
                raise BadRecord(f"delete of key {_shown(key)}, which does not exist")
            return None if old is None else Change(key, old, None, because)
        if opcode == "I" and old is not None:
            raise BadRecord(f"insert of key {_shown(key)}, which exists")
        if opcode == "U" and old is None:
            raise BadRecord(f"update of key {_shown(key)}, which does not exist")
        if flags == "P" and old is not None:
            # A partial update: what is null in it stays as it is.
            values = tuple([b if a is None else a for a, b in zip(values, old, strict=True)])
        return Change(key, old, values, because)

    def apply(self, change: Change) -> None:
        """Make the change."""
        if change.new is None:
            del self.by_key[change.key]
        else:
            self.by_key[change.key] = change.new

    def state(self) -> Any:
        """Return all rows."""
        return self.by_key

    def restore(self, state: Any) -> None:
        """Take over the rows."""
        self.by_key = dict(state)


class Index(Rows):
    """The rows of a window that keeps them until they are deleted."""

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Apply one event or update block."""
        change = self.change(unit)
        if change is None:
            return ()
        self.apply(change)
        return (change.unit(),)


class RetainingIndex:
    """The rows of a window with retention.

    Rows that leave are D events with flag R, oldest first, after what displaced them.
    """

    def __init__(self, fields: Sequence[Field], retention: Retention) -> None:
        self._rows = Rows(fields)
        self._policy = policy_of(retention)
        self._clock = Clock(retention, fields)

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Apply one event or update block, then let go of what it pushes out."""
        change = self._rows.change(unit)
        if change is None:
            return ()
        if change.new is None:
            self._rows.apply(change)
            self._policy.drop(change.key)
            return (change.unit(),)
        time = self._clock.time(change.new, at)
        self._rows.apply(change)
        self._policy.put(change.key, time)
        return [change.unit(), *self._let_go(self._policy.leaving())]

    def due(self) -> int | None:
        """Return the clock at which the next rows leave; None if only events push rows out."""
        time = None if self._clock.by_data else self._policy.due()
        return None if time is None else time // 1_000

    def expire(self, at: Moment) -> Sequence[Unit]:
        """Let go of the rows whose time is over."""
        return self._let_go(self._policy.pass_time(at.clock * 1_000))

    @property
    def by_key(self) -> dict[Row, Row]:
        """The rows."""
        return self._rows.by_key

    def _let_go(self, keys: Sequence[Row]) -> list[Unit]:
        return [(Event("D", "R", self._rows.by_key.pop(key)),) for key in keys]

    def state(self) -> Any:
        """Return all rows and what decides when they leave."""
        return self._rows.state(), self._policy.state()

    def restore(self, state: Any) -> None:
        """Take over rows and policy."""
        rows, policy = state
        self._rows.restore(rows)
        self._policy.restore(policy)


def index_of(window: Window) -> Index | RetainingIndex:
    """Return the index of a stateful window."""
    if window.retention is None:
        return Index(window.fields)
    return RetainingIndex(window.fields, window.retention)


def _shown(key: Row) -> str:
    return ", ".join("null" if part is None else str(part)[:60] for part in key)
