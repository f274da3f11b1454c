"""Transpose windows."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from espha.model.events import Event, Value
from espha.model.project import Field
from espha.windows.shared.stage import Moment, Stage, Unit, places
from espha.windows.transpose.spec import TransposeWindow

Row = tuple[Value, ...]


def stages(window: TransposeWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a transpose window."""
    make = Wide if window.mode == "wide" else Long
    return [make(window, feeds[0])]


class Wide:
    """Puts the last values of all tags of a group side by side, in each event.

    Deletes carry the values as they are and change none. Of an update block the old row carries
    the values from before.
    """

    def __init__(self, window: TransposeWindow, feed: tuple[Field, ...]) -> None:
        moved = {window.tag_name, *window.tag_values}
        (self._tag,) = places([window.tag_name], feed)
        kept = [place for place, field in enumerate(feed) if field.name not in moved]
        # The row with the values of all tags behind it, in the order in which it leaves.
        order = [place for place in kept if place < self._tag]
        order += range(len(feed), len(feed) + len(window.cells))
        order += [place for place in kept if place > self._tag]
        # A key and a tag are at least two fields, of which this makes a tuple.
        self._chosen = itemgetter(*order)
        self._values = places(window.tag_values, feed)
        self._group_by = places(window.group_by, feed)
        width = len(window.tag_values)
        self._starts = {tag: place * width for place, tag in enumerate(window.tags)}
        self._empty: Row = (None,) * len(window.cells)
        self._timeout = window.clear_timeout
        # Groups with the clock of their last event; with a timeout, by that clock.
        self._groups: dict[Row, tuple[Row, int]] = {}

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Return the unit in the wide schema; nothing for a tag that is not known."""
        event = unit[0]
        start = self._starts.get(event.values[self._tag])  # type: ignore[arg-type]
        if start is None:
            return ()
        group = tuple([event.values[place] for place in self._group_by])
        before = self._groups.get(group, (self._empty, 0))[0]
        if event.opcode in {"D", "SD"}:
            return ((self._wide(event, before),),)
        values = list(before)
        for offset, place in enumerate(self._values):
            if event.flags != "P" or event.values[place] is not None:
                values[start + offset] = event.values[place]
        after = tuple(values)
        if self._timeout is not None:
            self._groups.pop(group, None)
        self._groups[group] = (after, at.clock)
        new = self._wide(event, after)
        return ((new,),) if len(unit) == 1 else ((new, self._wide(unit[1], before)),)

    def _wide(self, event: Event, values: Row) -> Event:
        return Event(event.opcode, event.flags, self._chosen(event.values + values))

    def due(self) -> int | None:
        """Return when the group that waits longest is forgotten."""
        if self._timeout is None or not self._groups:
            return None
        _, last = next(iter(self._groups.values()))
        return last + self._timeout

    def expire(self, at: Moment) -> Sequence[Unit]:
        """Forget groups; nothing leaves for that."""
        while (due := self.due()) is not None and due <= at.clock:
            del self._groups[next(iter(self._groups))]
        return ()

    def state(self) -> Any:
        """Return the values of all groups."""
        return self._groups

    def restore(self, state: Any) -> None:
        """Take over the values."""
        self._groups = dict(state)


class Long:
    """Makes one event for each tag that has a value."""

    def __init__(self, window: TransposeWindow, feed: tuple[Field, ...]) -> None:
        width = len(window.tag_values)
        taken = places([cell.field for cell in window.cells], feed)
        self._tags = [
            (tag, taken[place * width : (place + 1) * width])
            for place, tag in enumerate(window.tags)
        ]
        kept = [place for place in range(len(feed)) if place not in taken]
        self._keys = [place for place in kept if feed[place].key]
        others = [place for place in kept if not feed[place].key]
        first = min(taken)
        self._before = [place for place in others if place < first]
        self._after = [place for place in others if place > first]

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Return a unit for each tag; in an update block a tag can come or go."""
        result: list[Unit] = []
        for number, (tag, cells) in enumerate(self._tags):
            events = [
                self._long(event, (number, tag), cells)
                for event in unit
                if any(event.values[place] is not None for place in cells)
            ]
            if len(unit) == 2 and len(events) == 1 and events[0].opcode == "U":
                events = [events[0]._replace(opcode="I")]
            if events:
                result.append(tuple(events))
        return result

    def _long(self, event: Event, tag: tuple[int, str], cells: Sequence[int]) -> Event:
        row = event.values
        keys = [row[place] for place in self._keys]
        before = [row[place] for place in self._before]
        values = [row[place] for place in (*cells, *self._after)]
        return Event(event.opcode, event.flags, (*keys, tag[0], *before, tag[1], *values))
