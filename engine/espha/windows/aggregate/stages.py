"""Aggregate windows.

The window keeps the rows of its input and their arguments, so that whatever an event changes can
be taken out of its group exactly as it was put in. A group emits I when it gets its first row, an
update block when it changes, D when its last row goes. When an update moves a row to another
group, the group that it leaves comes first.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from espha.languages.eel import Language, converter
from espha.model.events import BadRecord, Event, Value
from espha.model.project import Field
from espha.windows.aggregate.accumulators import Arguments, accumulator_of
from espha.windows.aggregate.functions import Call
from espha.windows.aggregate.spec import AggregateWindow, aggregated
from espha.windows.shared.index import Change, Row, Rows
from espha.windows.shared.one_by_one import OneByOne
from espha.windows.shared.stage import Moment, Stage, Unit, places

Run = Callable[[Event, int], Any]

_CALL = re.compile("`#([0-9]+)`")
_TICKS = {"stamp": 1}
"""Microseconds in a unit of time; of all but stamps it is a second."""


def stages(window: AggregateWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of an aggregate window."""
    return [Aggregate(window, feeds[0])]


class Group:
    """What is known of one group.

    Attributes:
        rows: how many rows it has.
        accumulators: one for each call.
        last: the row that it emitted last.
    """

    __slots__ = ("accumulators", "last", "rows")

    def __init__(self, calls: Iterable[Call]) -> None:
        self.rows = 0
        self.accumulators = [accumulator_of(call) for call in calls]
        self.last: Row = ()

    def change(
        self, key: Row, old: Sequence[Arguments] | None, new: Sequence[Arguments] | None
    ) -> None:
        """Take out what a row has put in before (None: it is new), and put in what it has now."""
        self.rows += (new is not None) - (old is not None)
        for number, accumulator in enumerate(self.accumulators):
            accumulator.change(
                key, None if old is None else old[number], None if new is None else new[number]
            )

    def values(self) -> Row:
        """Return the results of all calls."""
        return tuple([accumulator.value() for accumulator in self.accumulators])


class Aggregate:
    """Keeps groups of rows."""

    def __init__(self, window: AggregateWindow, feed: Sequence[Field]) -> None:
        self._language = Language(aggregated(feed, window.calls), window.initialize)
        self._calls, self._width = window.calls, len(feed)
        self._names = [field.name for field in window.fields if field.key]
        self._group_by = places(self._names, feed)
        self._runs = [self._runs_of(call) for call in window.calls]
        texts = iter(window.expressions)
        names = iter(range(len(self._names)))
        # A number is a part of the group's key.
        self._columns: list[int | Run] = [
            next(names) if field.key else self._computed(next(texts), field.type)
            for field in window.fields
        ]
        self._rows = Rows(feed)
        self._given: dict[Row, tuple[Arguments, ...]] = {}
        self._groups: dict[Row, Group] = {}

    def _runs_of(self, call: Call) -> list[Run]:
        runs = [
            _argument(self._language.compile(text).run, kind)
            for text, kind in zip(call.arguments, call.kinds, strict=True)
        ]
        if call.seconds is None:
            return runs
        if not call.time:
            return [*runs, lambda event, clock: clock * 1_000]
        ticks = _TICKS.get(call.time_kind, 1_000_000)
        time = self._language.compile(call.time).run

        def microseconds(event: Event, clock: int) -> float | None:
            value = time(event, clock)
            return None if value is None else value * ticks

        return [*runs, microseconds]

    def _computed(self, text: str, type_: str) -> Run:
        expression = self._language.compile(text)
        convert, run = converter(expression.type, type_), expression.run
        alone = _CALL.fullmatch(text)
        if alone is not None:
            place = self._width + int(alone[1])
            return lambda event, clock: convert(event.values[place])

        def value(event: Event, clock: int) -> Value:
            try:
                result: Value = convert(run(event, clock))
            except BadRecord:
                # It takes too many steps. The group has changed by now: the result is unknown.
                return None
            return result

        return value

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Take a change of the input; return the changes of the groups."""
        change = self._rows.change(unit)
        if change is None:
            return ()
        key, old, new, flags = change
        opcode, clock = unit[0].opcode, at.clock
        before = None if old is None else self._group_of(old)
        after = None if new is None else self._group_of(new)
        given = self._given.get(key)
        come = None if new is None else Event(opcode, flags, new)
        taken = None if come is None else self._evaluate(come, clock)
        # From here on nothing is refused.
        self._keep(change, taken, moved=before != after)
        units: list[Unit] = []
        if old is not None and before is not None and before != after:
            gone = Event(opcode, flags, old)
            units.append(self._update(before, (key, given, None), gone, clock))
        if come is not None and after is not None:
            row = (key, given if before == after else None, taken)
            units.append(self._update(after, row, come, clock))
        return units

    def _group_of(self, row: Row) -> Row:
        group = tuple([row[place] for place in self._group_by])
        if None in group and not any(part is not None for part in group):
            raise BadRecord(f"the group is null ({', '.join(self._names)})")
        return group

    def _evaluate(self, event: Event, clock: int) -> tuple[Arguments, ...]:
        """Compute the arguments of all calls.

        Raises:
            BadRecord: an expression takes too many steps.
        """
        if not self._language.keeps:
            return self._arguments(event, clock)
        variables = self._language.state()
        try:
            return self._arguments(event, clock)
        except BadRecord:
            self._language.restore(variables)
            raise

    def _arguments(self, event: Event, clock: int) -> tuple[Arguments, ...]:
        return tuple([tuple([run(event, clock) for run in runs]) for runs in self._runs])

    def _keep(self, change: Change, taken: tuple[Arguments, ...] | None, *, moved: bool) -> None:
        """Apply the change to the rows; a row that moves is the youngest of its new group."""
        if moved and change.old is not None and change.new is not None:
            del self._rows.by_key[change.key]
        self._rows.apply(change)
        if taken is None:
            del self._given[change.key]
        else:
            self._given[change.key] = taken

    def _update(
        self,
        name: Row,
        row: tuple[Row, tuple[Arguments, ...] | None, tuple[Arguments, ...] | None],
        cause: Event,
        clock: int,
    ) -> Unit:
        """Change a group, and return what it emits."""
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = Group(self._calls)
        group.change(*row)
        flags, last = cause.flags, group.last
        if not group.rows:
            del self._groups[name]
            return (Event("D", flags, last),)
        seen = Event(cause.opcode, flags, cause.values + group.values())
        new = tuple(
            [
                name[column] if isinstance(column, int) else column(seen, clock)
                for column in self._columns
            ]
        )
        group.last = new
        if not last:
            return (Event("I", flags, new),)
        return (Event("U", flags, new), Event("D", flags, last))

    def state(self) -> Any:
        """Return rows and arguments in the order of the rows, groups, and variables."""
        return OneByOne(self._kept), OneByOne(self._known), self._language.state()

    def _kept(self) -> Iterable[Any]:
        for key, row in self._rows.by_key.items():
            yield key, row, self._given[key]

    def _known(self) -> Iterable[Any]:
        for name, group in self._groups.items():
            yield name, group.last, tuple([one.state() for one in group.accumulators])

    def restore(self, state: Any) -> None:
        """Take over a state; what follows from the rows is computed from them."""
        rows, groups, variables = state
        self._rows.restore({key: row for key, row, _ in rows})
        self._given = {key: given for key, _, given in rows}
        self._groups = {name: Group(self._calls) for name, _, _ in groups}
        for key, row, given in rows:
            self._groups[self._group_of(row)].change(key, None, given)
        for name, last, parts in groups:
            group = self._groups[name]
            group.last = last
            for accumulator, part in zip(group.accumulators, parts, strict=True):
                accumulator.restore(part)
        self._language.restore(variables)


def _argument(run: Run, kind: str) -> Run:
    """Return what computes an argument: a double is a float, and never a negative zero.

    Zeros are equal, so which of them was there first must not show in the smallest value.
    """
    if kind != "double":
        return run

    def number(event: Event, clock: int) -> float | None:
        value = run(event, clock)
        return None if value is None else float(value) + 0.0

    return number
