"""Functional windows."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from espha.languages.functional import Frame, Scope, field_maker
from espha.languages.functional.catalog import Run
from espha.languages.functional.documents import json_elements, select
from espha.languages.functional.regexes import all_matches
from espha.languages.functional.values import MAX_TEXT, text, truth
from espha.model.events import BadRecord, Event, Value
from espha.model.project import Field
from espha.windows.functional.spec import OPCODE, EventLoop, FunctionalWindow
from espha.windows.shared.stage import Moment, Stage, Unit, places

MAX_EVENTS: Final = 10_000
"""Most events that one event can become; a field can hold any number of things."""

_OPCODES: Final = {
    "i": "I",
    "insert": "I",
    "u": "U",
    "update": "U",
    "p": "P",
    "upsert": "P",
    "d": "D",
    "delete": "D",
    "sd": "SD",
    "safedelete": "SD",
}


def stages(window: FunctionalWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a functional window."""
    feed = feeds[0]
    if _only_passes_on(window, feed):
        return [PassOn(window, feed)]
    return [Functional(window, feed)]


def _only_passes_on(window: FunctionalWindow, feed: tuple[Field, ...]) -> bool:
    types = {field.name: field.type for field in feed}
    if window.context.steps or window.loops or window.inserts_only:
        return False
    if window.generate is not None or window.opcode is not None:
        return False
    same = all(types.get(field.name) == field.type for field in window.fields)
    keys = [{field.name for field in fields if field.key} for fields in (window.fields, feed)]
    return same and keys[0] == keys[1]


class PassOn:
    """Passes fields on by name."""

    def __init__(self, window: FunctionalWindow, feed: tuple[Field, ...]) -> None:
        self._places = places([field.name for field in window.fields], feed)
        self._same = self._places == list(range(len(feed)))

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Return the same events with the fields of this window."""
        if self._same:
            return (unit,)
        chosen = self._places
        return (
            tuple(
                [
                    Event(
                        event.opcode, event.flags, tuple([event.values[place] for place in chosen])
                    )
                    for event in unit
                ]
            ),
        )


class Functional:
    """Runs the functions of the window for each event, then for each thing that a loop finds.

    Of an update block both rows are computed. What both of them give (by key) leaves as an
    update block; what only the old row gives is deleted, what only the new one gives is inserted.
    """

    def __init__(self, window: FunctionalWindow, feed: tuple[Field, ...]) -> None:
        scope = Scope([field.name for field in feed])
        window.context.into(scope)
        self._outer = scope
        self._ways = [_Way(window, feed, loop, scope) for loop in (None, *window.loops)]
        # Without loops, and that is what nearly all windows are, nothing has to be gone through.
        self._alone = None if window.loops else self._ways[0].event
        self._frame = Frame(max(way.size for way in self._ways), window.path)
        self._inputs = window.inputs
        self._keys = [place for place, field in enumerate(window.fields) if field.key]
        self._names = [field.name for field in window.fields]
        self._inserts_only = window.inserts_only
        self._stateful = window.stateful
        self._own_opcodes = any(way.opcode is not None for way in self._ways)

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Return what the functions make of the unit."""
        before = self.state()
        try:
            return self._units(unit, at)
        except BadRecord:
            self.restore(before)
            raise

    def _units(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        new = unit[0]
        if self._inserts_only:
            if new.opcode in {"D", "SD"}:
                return ()
            return [(Event("I", "N", event.values),) for event in self._made(new, at)]
        made = self._made(new, at)
        if len(unit) == 1 or self._own_opcodes:
            return [(event,) for event in made]
        return self._changes(made, self._made(unit[1], at))

    def _changes(self, new: list[Event], old: list[Event]) -> list[Unit]:
        """Return what turns the events of the old row into those of the new one."""
        removed = {self._key(event): event for event in old}
        changes: list[Unit] = []
        for event in new:
            before = removed.pop(self._key(event), None)
            if self._stateful:
                changes.append((event._replace(opcode="P"),))
            elif before is None:
                changes.append((event._replace(opcode="I"),))
            else:
                changes.append((event, before))
        # The index of a stateful window knows whether they are there.
        opcode = "SD" if self._stateful else "D"
        return [*[(event._replace(opcode=opcode),) for event in removed.values()], *changes]

    def _key(self, event: Event) -> tuple[Value, ...]:
        return tuple([event.values[place] for place in self._keys])

    def _made(self, event: Event, at: Moment) -> list[Event]:
        frame = self._frame
        frame.opcode, frame.flags, frame.row = event
        frame.clock, frame.token, frame.source = at.clock, at.token, self._inputs[at.port]
        frame.number = 0
        self._outer.run(frame)
        if self._alone is not None:
            made = self._alone(frame)
            self._check_keys(made)
            return made
        first = self._ways[0].events(frame)
        # An event in front of loops may be without a key: it is left out.
        result = [event for event in first if None not in self._key(event)]
        for way in self._ways[1:]:
            made = way.events(frame)
            self._check_keys(made)
            result += made
        return result

    def _check_keys(self, events: list[Event]) -> None:
        for event in events:
            for place in self._keys:
                if event.values[place] is None:
                    raise BadRecord(f"key field {self._names[place]} is null")

    def state(self) -> Any:
        """Return how many events have been made, and how many random values drawn."""
        return self._frame.counter, self._frame.draws

    def restore(self, state: Any) -> None:
        """Go on from these numbers."""
        self._frame.counter, self._frame.draws = state


class _Way:
    """How events are made: of the event itself, or of what one loop finds."""

    def __init__(
        self,
        window: FunctionalWindow,
        feed: tuple[Field, ...],
        loop: EventLoop | None,
        outer: Scope,
    ) -> None:
        self._elements: Callable[[Frame], Sequence[Any]] | None = None
        self._scope: Scope | None = None
        self._generate = None
        scope, own = outer, outer.names.results
        if loop is not None:
            self._elements = _finder(loop, outer.compiled(loop.use))
            self._scope = scope = outer.inner()
            self._slot = scope.declare_all(loop.names)
            loop.context.into(scope)
            steps = [step for step in loop.context.steps if step.kind == "function"]
            own = {step.name: scope.names.results[step.name] for step in steps}
        elif window.generate is not None:
            self._generate = scope.compiled(window.generate)
        self.size = scope.size
        self.opcode = _opcode(window, scope)
        self._columns = [_column(field, own, feed) for field in window.fields]

    def events(self, frame: Frame) -> list[Event]:
        """Return the events of one event."""
        if self._elements is None or self._scope is None:
            return self.event(frame)
        elements = self._elements(frame)
        if len(elements) > MAX_EVENTS:
            raise BadRecord(f"a loop finds more than {MAX_EVENTS} things")
        result: list[Event] = []
        for element in elements:
            frame.slots[self._slot] = element
            self._scope.run(frame)
            result += self.event(frame)
        return result

    def event(self, frame: Frame) -> list[Event]:
        """Return the event of what the frame holds, unless none shall be made of it."""
        if self._generate is not None and not truth(self._generate(frame)):
            return []
        values = tuple([column(frame) for column in self._columns])
        frame.number += 1
        frame.counter += 1
        opcode = frame.opcode if self.opcode is None else self._opcode_of(frame, self.opcode)
        return [Event(opcode, frame.flags, values)]

    def _opcode_of(self, frame: Frame, run: Run) -> str:
        found = text(run(frame))
        if found is None:
            return frame.opcode
        opcode = _OPCODES.get(found.strip().lower())
        if opcode is None:
            raise BadRecord(f"the opcode is {found[:60]!r}; use insert, update, upsert or delete")
        return opcode


def _opcode(window: FunctionalWindow, scope: Scope) -> Run | None:
    if OPCODE in scope.names.results:
        return scope.compiled(f"${OPCODE}")
    return None if window.opcode is None else scope.compiled(window.opcode)


def _finder(loop: EventLoop, use: Run) -> Callable[[Frame], Sequence[Any]]:
    find = loop.find
    if loop.kind == "xml":
        return lambda frame: select(use(frame), find)
    if loop.kind == "json":
        return lambda frame: json_elements(use(frame), find)

    def matches(frame: Frame) -> Sequence[str]:
        subject = text(use(frame))
        if subject is None or len(subject) > MAX_TEXT:
            return ()
        return all_matches(find, subject, MAX_EVENTS + 1, loop.group)

    return matches


def _column(field: Field, results: Mapping[str, int], feed: tuple[Field, ...]) -> Run:
    """Return what makes the value of a field: a function of its name, or the input's field."""
    make = field_maker(field.type)
    slot = results.get(field.name)
    if slot is not None:
        return lambda frame: make(frame.slots[slot])
    types = {each.name: each.type for each in feed}
    if field.name not in types:
        return lambda frame: None
    (place,) = places([field.name], feed)
    if types[field.name] == field.type:
        return lambda frame: frame.row[place]
    return lambda frame: make(frame.row[place])
