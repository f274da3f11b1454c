"""Which rows of an index leave by themselves, and when.

A policy knows keys and their order, never the rows. All times here are microseconds since 1970.
"""

from collections import OrderedDict
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Any, Protocol

from espha.model.events import BadRecord, Value
from espha.model.project import Field, Retention
from espha.windows.shared.stage import Moment, places

Key = tuple[Value, ...]


class Policy(Protocol):
    """Says which keys leave."""

    def put(self, key: Key, time: int) -> None:
        """Note a row that was inserted or updated; an update counts as young as an insert."""
        ...

    def drop(self, key: Key) -> None:
        """Forget a row that was deleted."""
        ...

    def leaving(self) -> list[Key]:
        """Return the keys that what was put pushes out, oldest first, and forget them."""
        ...

    def due(self) -> int | None:
        """Return the time from which on rows leave without an event; None: never."""
        ...

    def pass_time(self, time: int) -> list[Key]:
        """Return the keys that leave because it is `time` now, oldest first; forget them."""
        ...

    def state(self) -> Any:
        """Return the state, as plain data; see `StatefulStage`."""
        ...

    def restore(self, state: Any) -> None:
        """Take over a state."""
        ...


class ByCount:
    """At most `amount` rows: the oldest leaves, or all that were there (jumping)."""

    def __init__(self, amount: int, *, jumping: bool) -> None:
        self._amount, self._jumping = amount, jumping
        self._order: OrderedDict[Key, None] = OrderedDict()

    def put(self, key: Key, time: int) -> None:
        """Make the row the youngest."""
        self._order[key] = None
        self._order.move_to_end(key)

    def drop(self, key: Key) -> None:
        """Forget a row."""
        del self._order[key]

    def leaving(self) -> list[Key]:
        """Return what is too much; when jumping, all but the row that was too much."""
        if len(self._order) <= self._amount:
            return []
        count = len(self._order) - 1 if self._jumping else 1
        return [self._order.popitem(last=False)[0] for _ in range(count)]

    def due(self) -> int | None:
        """Return None: time does not count."""
        return None

    def pass_time(self, time: int) -> list[Key]:
        """Return nothing."""
        return []

    def state(self) -> Any:
        """Return the keys, oldest first."""
        return tuple(self._order)

    def restore(self, state: Any) -> None:
        """Take over the keys."""
        self._order = OrderedDict.fromkeys(state)


class Sliding:
    """A row leaves when it is `length` old; the latest time that was seen is now."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._now: int | None = None
        self._puts = 0
        self._stamps: dict[Key, tuple[int, int]] = {}
        # Entries of rows that were updated or deleted since stay until they come up.
        self._heap: list[tuple[int, int, Key]] = []

    def put(self, key: Key, time: int) -> None:
        """Note a row of `time`."""
        self._puts += 1
        self._stamps[key] = (time, self._puts)
        heappush(self._heap, (time, self._puts, key))
        if len(self._heap) > 2 * len(self._stamps) + 64:
            self._rebuild()
        if self._now is None or time > self._now:
            self._now = time

    def drop(self, key: Key) -> None:
        """Forget a row."""
        del self._stamps[key]

    def leaving(self) -> list[Key]:
        """Return the rows that are too old by now."""
        keys: list[Key] = []
        if self._now is None:
            return keys
        limit = self._now - self._length
        while (oldest := self._oldest()) is not None and oldest <= limit:
            key = heappop(self._heap)[2]
            del self._stamps[key]
            keys.append(key)
        return keys

    def due(self) -> int | None:
        """Return when the oldest row is too old."""
        oldest = self._oldest()
        return None if oldest is None else oldest + self._length

    def pass_time(self, time: int) -> list[Key]:
        """Return the rows that are too old at `time`."""
        self._now = time
        return self.leaving()

    def _oldest(self) -> int | None:
        heap, stamps = self._heap, self._stamps
        while heap:
            time, number, key = heap[0]
            if stamps.get(key) == (time, number):
                return time
            heappop(heap)
        return None

    def _rebuild(self) -> None:
        self._heap = [(time, number, key) for key, (time, number) in self._stamps.items()]
        heapify(self._heap)

    def state(self) -> Any:
        """Return the time, the number of rows put in so far, and the rows' times."""
        return self._now, self._puts, self._stamps

    def restore(self, state: Any) -> None:
        """Take over the times; the heap follows from them."""
        self._now, self._puts, stamps = state
        self._stamps = dict(stamps)
        self._rebuild()


class Jumping:
    """All rows leave when an interval ends; intervals follow each other from the first row on."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._end: int | None = None
        self._order: OrderedDict[Key, None] = OrderedDict()
        self._pushed: list[Key] = []

    def put(self, key: Key, time: int) -> None:
        """Note a row of `time`; a late one belongs to the interval that runs."""
        if self._end is None:
            self._end = time + self._length
        elif time >= self._end:
            self._order.pop(key, None)
            self._pushed = self.pass_time(time)
        self._order[key] = None
        self._order.move_to_end(key)

    def drop(self, key: Key) -> None:
        """Forget a row."""
        del self._order[key]

    def leaving(self) -> list[Key]:
        """Return the rows of the interval that has ended."""
        keys, self._pushed = self._pushed, []
        return keys

    def due(self) -> int | None:
        """Return the end of the interval, when there are rows that leave then."""
        return self._end if self._order else None

    def pass_time(self, time: int) -> list[Key]:
        """End the interval if it is over at `time`, and begin the one that has `time` in it."""
        if self._end is None or time < self._end:
            return []
        self._end += ((time - self._end) // self._length + 1) * self._length
        keys = list(self._order)
        self._order.clear()
        return keys

    def state(self) -> Any:
        """Return the end of the interval and the keys, oldest first."""
        return self._end, tuple(self._order)

    def restore(self, state: Any) -> None:
        """Take over end and keys."""
        self._end, keys = state
        self._order, self._pushed = OrderedDict.fromkeys(keys), []


def policy_of(retention: Retention) -> Policy:
    """Return the policy of a retention, with nothing in it."""
    if retention.by == "count":
        return ByCount(retention.amount, jumping=retention.jumping)
    length = retention.amount * 1_000
    return Jumping(length) if retention.jumping else Sliding(length)


class Clock:
    """Tells the time of a row: that of a field, or the clock of the order record."""

    def __init__(self, retention: Retention, fields: Sequence[Field]) -> None:
        self._name = retention.field
        self.by_data = bool(retention.field)
        self._ticks = 1
        if self.by_data:
            (self._place,) = places([retention.field], fields)
            self._ticks = 1_000_000 if fields[self._place].type == "date" else 1

    def time(self, row: Sequence[Value], at: Moment) -> int:
        """Return the row's time.

        Raises:
            BadRecord: the field is null.
        """
        if not self.by_data:
            return at.clock * 1_000
        value = row[self._place]
        if not isinstance(value, int):
            raise BadRecord(f"field {self._name}, which tells the time for the retention, is null")
        return value * self._ticks
