"""Aggregate functions of what happened to a group; each has a state of its own."""

from collections import deque
from typing import Any

Arguments = tuple[Any, ...]
Key = tuple[Any, ...]


class Lag:
    """The value of the event that was `lag` events before the last one; 0 is the last one.

    Events of the group count, whatever their opcode: an event that deletes a row counts with the
    value of that row.
    """

    def __init__(self, lag: int, *, deletes: bool = True) -> None:
        self._lag, self._deletes = lag, deletes
        self._values: deque[Any] = deque(maxlen=lag + 1)

    def change(self, key: Key, old: Arguments | None, new: Arguments | None) -> None:
        """Note an event."""
        if new is not None:
            self._values.append(new[0])
        elif self._deletes and old is not None:
            self._values.append(old[0])

    def value(self) -> Any:
        """Return it; null when there were not so many events."""
        return self._values[0] if len(self._values) > self._lag else None

    def state(self) -> Any:
        """Return the values, oldest first."""
        return tuple(self._values)

    def restore(self, state: Any) -> None:
        """Take over the values."""
        self._values = deque(state, maxlen=self._lag + 1)


class CountOpcodes:
    """How many events with one opcode the group has had, as the rows were changed by them."""

    def __init__(self, opcode: str) -> None:
        self._opcode = opcode
        self._events = 0

    def change(self, key: Key, old: Arguments | None, new: Arguments | None) -> None:
        """Count an event."""
        opcode = "I" if old is None else "D" if new is None else "U"
        self._events += opcode == self._opcode

    def value(self) -> int:
        """Return the number."""
        return self._events

    def state(self) -> Any:
        """Return the number."""
        return self._events

    def restore(self, state: Any) -> None:
        """Take over the number."""
        self._events = state


class LastOpcode:
    """What the last event of the group did to its rows: 1 insert, 2 update, 3 delete."""

    def __init__(self) -> None:
        self._last: int | None = None

    def change(self, key: Key, old: Arguments | None, new: Arguments | None) -> None:
        """Note an event."""
        self._last = 1 if old is None else 3 if new is None else 2

    def value(self) -> int | None:
        """Return the number."""
        return self._last

    def state(self) -> Any:
        """Return the number."""
        return self._last

    def restore(self, state: Any) -> None:
        """Take over the number."""
        self._last = state
