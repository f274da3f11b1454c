"""Pattern windows."""

import heapq
from collections.abc import Callable, Sequence
from typing import Any, Final

from espha.languages.eel import Language, converter
from espha.model.events import BadRecord, Event, Value
from espha.model.project import Field
from espha.windows.pattern.bindings import Given, Interest, bound_fields, compile_events
from espha.windows.pattern.logic import parse_logic
from espha.windows.pattern.spec import Pattern, PatternOutput, PatternWindow
from espha.windows.pattern.tree import FAILED, LIKELY, Instance, Matcher, Offer, Tree
from espha.windows.shared.one_by_one import OneByOne
from espha.windows.shared.stage import Moment, Stage, Unit, places

Row = tuple[Value, ...]
_INSERTS: Final = frozenset({"I", "P"})
_MICROS: Final = {"date": 1_000_000, "stamp": 1}


def stages(window: PatternWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a pattern window."""
    return [Patterns(window, feeds)]


class Patterns:
    """All patterns of a window; they share the numbers of the matches."""

    def __init__(self, window: PatternWindow, feeds: Sequence[tuple[Field, ...]]) -> None:
        self._patterns = [Matching(pattern, window, feeds) for pattern in window.patterns]
        self._next = 0

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Offer an insert to every pattern; updates and deletes are not looked at."""
        event = unit[0]
        if event.opcode not in _INSERTS:
            return ()
        # What can refuse the event comes before anything changes.
        times = [pattern.time_of(event.values, at) for pattern in self._patterns]
        rows: list[Row] = []
        for pattern, time in zip(self._patterns, times, strict=True):
            if time is not None:
                rows += pattern.take(event.values, at, time)
        return self._numbered(rows)

    def due(self) -> int | None:
        """Return the clock at which the first time limit is over."""
        ends = [end for pattern in self._patterns if (end := pattern.due()) is not None]
        # A limit is over when more than its time has passed.
        return min(ends) // 1000 + 1 if ends else None

    def expire(self, at: Moment) -> Sequence[Unit]:
        """End the time limits that are over, in the order of their ends."""
        now = at.clock * 1000
        rows: list[Row] = []
        while True:
            ends = [
                (end, place)
                for place, pattern in enumerate(self._patterns)
                if (end := pattern.due()) is not None and end < now
            ]
            if not ends:
                return self._numbered(rows)
            end, place = min(ends)
            rows += self._patterns[place].lapse(end + 1, at.clock)

    def _numbered(self, rows: Sequence[Row]) -> list[Unit]:
        units: list[Unit] = []
        for row in rows:
            units.append((Event("I", "N", self._patterns[0].keyed(self._next, row)),))
            self._next += 1
        return units

    def state(self) -> Any:
        """Return the next number and what each pattern has begun."""
        return (self._next, tuple([pattern.state() for pattern in self._patterns]))

    def restore(self, state: Any) -> None:
        """Go on from there."""
        self._next, states = state
        for pattern, part in zip(self._patterns, states, strict=True):
            pattern.restore(part)


class Matching:
    """One pattern: its tree, and the instances that walk through it."""

    def __init__(
        self, pattern: Pattern, window: PatternWindow, feeds: Sequence[tuple[Field, ...]]
    ) -> None:
        given = [
            Given(event.name, feeds[event.ports[0]], event.expression) for event in pattern.events
        ]
        interests, bound = compile_events(given, window.initialize)
        ports = {event.name: frozenset(event.ports) for event in pattern.events}
        names = {field.name: place for place, field in enumerate(bound)}
        matchers = {name: _matcher(ports[name], one, names) for name, one in interests.items()}
        self._languages = [interest.language for interest in interests.values()]
        self._tree = Tree(parse_logic(pattern.logic, list(matchers)), matchers, len(names))
        self._index = {
            port: places(pattern.index, feeds[port]) for each in ports.values() for port in each
        }
        self._times = {time.port: _time(time.field, feeds[time.port]) for time in pattern.times}
        outputs = _Outputs(pattern, window, feeds, bound)
        self._output = outputs.row
        self._languages += outputs.languages
        (self._key,) = [place for place, field in enumerate(window.fields) if field.key]
        self._opened = 0
        self._now = 0
        self._instances: dict[Row, dict[int, Instance]] = {}
        self._ends: dict[int, tuple[int, Row]] = {}
        self._heap: list[tuple[int, int]] = []

    def keyed(self, number: int, row: Row) -> Row:
        """Return an output row with its key."""
        return (*row[: self._key], number, *row[self._key :])

    def time_of(self, row: Row, at: Moment) -> int | None:
        """Return the event's time in microseconds; None: the pattern does not look at it.

        Raises:
            BadRecord: its time is null.
        """
        if at.port not in self._index:
            return None
        if at.port not in self._times:
            return at.clock * 1000
        place, factor = self._times[at.port]
        value = row[place]
        if not isinstance(value, int):
            raise BadRecord("the time field is null")
        return value * factor

    def take(self, row: Row, at: Moment, time: int) -> list[Row]:
        """Offer an event to all instances with its key, the oldest first, and open one."""
        key = tuple([row[place] for place in self._index[at.port]])
        rows: list[Row] = []
        if self._times:
            self._now = max(self._now, time)
            rows += self.lapse(self._now, at.clock)
        for instance in list(self._instances.get(key, {}).values()):
            offer = Offer(instance, at.port, row, time, at.clock)
            status = self._tree.root.take(offer)
            if offer.moved:
                self._settle(instance, status, at.clock, rows)
        instance = Instance(self._opened, key, self._tree)
        offer = Offer(instance, at.port, row, time, at.clock)
        self._tree.root.start(offer)
        status = self._tree.root.take(offer)
        if offer.taken:
            self._opened += 1
            self._instances.setdefault(key, {})[instance.number] = instance
            self._settle(instance, status, at.clock, rows)
        return rows

    def due(self) -> int | None:
        """Return the microsecond at which the first limit ends; None for data time."""
        return None if self._times else self._first_end()

    def lapse(self, now: int, clock: int) -> list[Row]:
        """End the limits that end before `now`, the first one first."""
        rows: list[Row] = []
        while (end := self._first_end()) is not None and end < now:
            number = heapq.heappop(self._heap)[1]
            instance = self._instances[self._ends[number][1]][number]
            status = self._tree.root.lapse(Offer(instance, -1, (), end, clock))
            self._settle(instance, FAILED if status is None else status, clock, rows)
        return rows

    def _first_end(self) -> int | None:
        heap = self._heap
        while heap:
            end, number = heap[0]
            if self._ends.get(number, (None,))[0] == end:
                return end
            heapq.heappop(heap)  # it has ended, or its limit has, in another way
        return None

    def _settle(self, instance: Instance, status: int, clock: int, rows: list[Row]) -> None:
        """Put an instance where its new state belongs."""
        if status >= LIKELY:
            rows.append(self._output(instance, clock))
        if status >= LIKELY or status == FAILED:
            same = self._instances[instance.key]
            del same[instance.number]
            if not same:
                del self._instances[instance.key]
            self._ends.pop(instance.number, None)
        elif self._tree.limited:
            self._note_end(instance)

    def _note_end(self, instance: Instance) -> None:
        end = self._tree.root.deadline(instance)
        if end is None:
            self._ends.pop(instance.number, None)
        elif self._ends.get(instance.number, (None,))[0] != end:
            self._ends[instance.number] = (end, instance.key)
            heapq.heappush(self._heap, (end, instance.number))

    def state(self) -> Any:
        """Return the instances, oldest first, and what expressions keep."""
        living = [each for same in self._instances.values() for each in same.values()]
        living.sort(key=lambda instance: instance.number)
        kept = tuple([language.state() for language in self._languages])
        begun = OneByOne(lambda: (instance.state() for instance in living))
        return (self._opened, self._now, begun, kept)

    def restore(self, state: Any) -> None:
        """Go on with these instances."""
        self._opened, self._now, living, kept = state
        self._instances, self._ends, self._heap = {}, {}, []
        for each in living:
            instance = Instance(0, (), self._tree)
            instance.restore(each)
            self._instances.setdefault(instance.key, {})[instance.number] = instance
            self._note_end(instance)
        for language, part in zip(self._languages, kept, strict=True):
            language.restore(part)


def _time(name: str, fields: Sequence[Field]) -> tuple[int, int]:
    (place,) = places([name], fields)
    return place, _MICROS[fields[place].type]


def _matcher(ports: frozenset[int], interest: Interest, names: dict[str, int]) -> Matcher:
    """Return what tells whether an event is the one, and binds names when it is.

    Args:
        ports: the inputs that the event comes from.
        interest: its expression, which sees the bound names after the fields.
        names: position of each bound name in `Instance.bound`.
    """
    run = interest.condition.run
    seen = [names[name] for name in interest.names]
    # Most often an expression sees all bound names.
    sees_all = seen == list(range(len(names)))
    bind = _binder(interest)

    def matches(offer: Offer) -> bool:
        if offer.port not in ports:
            return False
        instance, row = offer.instance, offer.row
        before = bound = (
            instance.bound if sees_all else tuple([instance.bound[place] for place in seen])
        )
        try:
            if None in bound:
                bound = bind(row, bound, offer.clock)
            if not run(Event("I", "N", row + bound), offer.clock):
                return False
        except BadRecord:
            return False  # an expression that takes too many steps is not true
        if bound is not before:
            now = dict(zip(seen, bound, strict=True))
            instance.bound = tuple([now.get(n, old) for n, old in enumerate(instance.bound)])
        return True

    return matches


def _binder(interest: Interest) -> Callable[[Row, Row, int], Row]:
    """Return what gives the bound names that an expression sees, with those that it binds."""
    binds = [(interest.names.index(name), value.run) for name, value in interest.binds]

    def bind(row: Row, bound: Row, clock: int) -> Row:
        for place, value in binds:
            if bound[place] is None:
                found = value(Event("I", "N", row + bound), clock)
                bound = (*bound[:place], found, *bound[place + 1 :])
        return bound

    return bind


class _Outputs:
    """Makes the row of a match, without its key."""

    def __init__(
        self,
        pattern: Pattern,
        window: PatternWindow,
        feeds: Sequence[tuple[Field, ...]],
        bound: Sequence[Field],
    ) -> None:
        self.languages: list[Language] = []
        self._initialize = window.initialize
        self._bound = bound
        events = {event.name: place for place, event in enumerate(pattern.events)}
        computed = [field for field in window.fields if not field.key]
        self._columns = [
            (events[output.node], self._column(output, feeds[ports[0]], field))
            for output, field in zip(pattern.outputs, computed, strict=True)
            for ports in [pattern.events[events[output.node]].ports]
        ]

    def row(self, instance: Instance, clock: int) -> Row:
        """Return the values; null for an event that the match did without."""
        result: list[Value] = []
        for event, compute in self._columns:
            row = instance.rows[event]
            result.append(None if row is None else compute(row, instance, clock))
        return tuple(result)

    def _column(
        self, output: PatternOutput, fields: tuple[Field, ...], field: Field
    ) -> Callable[[Row, Instance, int], Value]:
        if not output.expression and not output.field:
            return lambda row, instance, clock: None
        names = bound_fields(fields, self._bound) if output.expression else ()
        seen = [place for place, field in enumerate(self._bound) if field in names]
        language = Language((*fields, *names), self._initialize)
        expression = language.compile(output.expression or f"`{output.field}`")
        convert, run = converter(expression.type, field.type), expression.run
        self.languages.append(language)

        def compute(row: Row, instance: Instance, clock: int) -> Value:
            if seen:
                row += tuple([instance.bound[place] for place in seen])
            try:
                value: Value = convert(run(Event("I", "N", row), clock))
            except BadRecord:
                return None
            return value

        return compute
