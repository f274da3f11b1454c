"""Windows whose events a script makes, and what other windows with a script need of it.

A script in Python runs in a process of its own (`espha.scripts`): the one way in which a window
reaches something outside itself.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Final

from espha.model.events import BadRecord, Event, Value
from espha.model.project import Field
from espha.scripts import Answer, Call, Input, Options, Row, Script, ScriptError
from espha.scripts.common import OPCODE
from espha.scripts.lua import LuaScript
from espha.scripts.python import PythonScript
from espha.scripts.world import World
from espha.windows.shared.script_spec import Code, ScriptWindow
from espha.windows.shared.script_values import Take, converted, taker
from espha.windows.shared.stage import Moment, Stage, Unit, places

SPOKEN: Final = {"I": "insert", "U": "update", "P": "upsert", "D": "delete", "SD": "safedelete"}
"""What scripts call opcodes."""
_OPCODES: Final = {
    **{word: code for code, word in SPOKEN.items()},
    **{code.lower(): code for code in SPOKEN},
}
_LANGUAGES: Final[dict[str, Any]] = {"lua": LuaScript, "python": PythonScript}
NO_PORT: Final = -1
"""The port of a call without an event."""

_NO_EVENT: Final = Event("I", "N", ())
_LOG = logging.getLogger(__name__)


class ScriptHandle:
    """A script of a window, which may be one that cannot be used."""

    def __init__(self, code: Code, window: str, outputs: Sequence[str]) -> None:
        self._places = [given.places for given in code.inputs]
        self._functions = code.functions or ("",) * len(code.inputs)
        self._window = window
        self._script: Script | None = None
        self._reason = ""
        self._ahead: deque[Answer | BadRecord] = deque()
        """Answers that were asked for before they are needed."""
        inputs = [Input(given.window, given.names) for given in code.inputs]
        try:
            make = _LANGUAGES[code.language]
            self._script = make(
                code.text, code.function, window, inputs, outputs, options=_options(code)
            )
        except ScriptError as error:
            self._reason = str(error)
            _LOG.error("window %s: the script cannot be used: %s", window, error)

    def __call__(self, event: Event, at: Moment) -> Answer:
        """Return what the script made of an event.

        Raises:
            BadRecord: the script failed; what it had changed until then stays.
        """
        if self._ahead:
            answer = self._ahead.popleft()
            if isinstance(answer, BadRecord):
                raise answer
            return answer
        return self._asked(self._call_of(event, at))

    def _asked(self, call: Call) -> Answer:
        if self._script is None:
            raise BadRecord(f"the script cannot be used: {self._reason}")
        try:
            return self._script.call(call)
        except ScriptError as error:
            raise BadRecord(f"the script failed: {error}") from None

    def block(
        self, events: Sequence[Event], moments: Sequence[Moment]
    ) -> Sequence[Answer | BadRecord]:
        """Return what the script made of each event, or why it failed."""
        if self._script is None:
            return [BadRecord(f"the script cannot be used: {self._reason}")] * len(events)
        calls = [self._call_of(event, at) for event, at in zip(events, moments, strict=True)]
        return [
            BadRecord(f"the script failed: {answer}") if isinstance(answer, ScriptError) else answer
            for answer in self._script.call_block(calls)
        ]

    def in_block(
        self,
        process: Callable[[Unit, Moment], Sequence[Unit]],
        stateful: bool,
        units: Sequence[Unit],
        moments: Sequence[Moment],
    ) -> list[Sequence[Unit] | BadRecord]:
        """Process units, and ask the script for many of them at once.

        Args:
            process: processes a unit: it calls the script with the new row, and with the old one
                too if it is not stateful; not for the delete of a stateful one.
            stateful: whether it is.
            units: what comes in.
            moments: one for each unit.
        """
        results: list[Sequence[Unit] | BadRecord] = []
        pairs = list(zip(units, moments, strict=True))
        for several, group in groupby(pairs, lambda pair: not stateful and len(pair[0]) > 1):
            run = list(group)
            if not several:
                asked = [
                    (unit[0], at)
                    for unit, at in run
                    if not (stateful and unit[0].opcode in {"D", "SD"})
                ]
                events, times = [event for event, _ in asked], [at for _, at in asked]
                self._ahead.extend(self.block(events, times))
            results += [_tried(process, unit, at) for unit, at in run]
        return results

    def _call_of(self, event: Event, at: Moment) -> Call:
        opcode, flags, values = event
        given = [values[place] for place in self._places[at.port]]
        port = at.port
        function = self._functions[port]
        return Call(given, SPOKEN[opcode], flags, port, at.clock, at.token, function)

    def share(self, world: World) -> None:
        """Give the script its world."""
        if isinstance(self._script, LuaScript):
            self._script.world = world

    def beat(self, function: str, at: Moment) -> Answer:
        """Return what another function of the script made of no event.

        Raises:
            BadRecord: it failed.
        """
        return self._asked(Call((), "", "N", NO_PORT, at.clock, at.token, function))

    def state(self) -> Any:
        """Return the script's variables.

        Raises:
            ValueError: they hold what cannot be kept; going on would let engines differ.
        """
        if self._script is None:
            return None
        try:
            return self._script.state()
        except ScriptError as error:
            raise ValueError(f"window {self._window}: {error}") from None

    def settle(self) -> None:
        """Bring the variables here, if they lie in another process; see `state`."""
        if isinstance(self._script, PythonScript):
            self.state()

    def restore(self, state: Any) -> None:
        """Put the variables back."""
        if self._script is not None:
            self._script.restore(state)


def opcode_of(chosen: Any) -> str:
    """Return the opcode that a script means.

    Raises:
        BadRecord: there is none.
    """
    word = chosen.decode(errors="replace") if isinstance(chosen, bytes) else str(chosen)
    found = _OPCODES.get(word.lower())
    if found is None:
        raise BadRecord(f"{OPCODE} is {word[:60]!r}; use {', '.join(SPOKEN.values())}")
    return found


def _tried(
    process: Callable[[Unit, Moment], Sequence[Unit]], unit: Unit, at: Moment
) -> Sequence[Unit] | BadRecord:
    try:
        return process(unit, at)
    except BadRecord as refusal:
        return refusal


def _options(code: Code) -> Options:
    return Options(
        modules=dict(code.modules),
        snippets=dict(code.snippets),
        init=code.init,
        settings=None if code.settings is None else dict(code.settings),
        expanded=code.expanded,
        blocks=code.blocks,
        encoded=code.encoded,
        require=code.require,
        mas=code.mas,
        files={file.name: file.content() for file in code.files},
    )


class OfScript:
    """What is made of a script, and has no state but the script's."""

    def __init__(self, script: ScriptHandle) -> None:
        self._call = script

    def share(self, world: World) -> None:
        """Give the script its world."""
        self._call.share(world)

    def settle(self) -> None:
        """Bring the script's variables here."""
        self._call.settle()

    def state(self) -> Any:
        """Return the script's variables."""
        return self._call.state()

    def restore(self, state: Any) -> None:
        """Put the variables back."""
        self._call.restore(state)


class Scripted(OfScript):
    """Makes events of what a function returns for an event.

    Of an update block the function gets the new row. A stateful window takes what comes out as
    changes of its index: what the function returns for an insert or update is an upsert, for a
    delete a safe delete. A stateless one gives it the opcode of the event.
    """

    def __init__(self, window: ScriptWindow, feeds: Sequence[tuple[Field, ...]]) -> None:
        self._fields = window.fields
        self._stateful = window.stateful
        self._keys = [place for place, field in enumerate(window.fields) if field.key]
        takes = [
            (field.name, taker(field.type, encoded=window.code.encoded)) for field in window.fields
        ]
        copied = [
            {name: place for place, (name, *_) in enumerate(feed) if name in window.copied}
            for feed in feeds
        ]
        # The last ones are for rows that come without an event.
        self._columns = [
            [(name, take, of.get(name)) for name, take in takes] for of in [*copied, {}]
        ]
        # Where all keys are copied, a row that says nothing is an event all the same.
        self._keyed = [
            all(place is not None for place in [columns[key][2] for key in self._keys])
            for columns in self._columns
        ]
        own = [field.name for field in window.fields]
        names = list(window.outputs) or own
        # A row may call a field by its own name as well.
        renamed = [place for place, name in enumerate(own) if name not in names]
        self._spare = [(place, len(own) + number) for number, place in enumerate(renamed)]
        outputs = [*names, *(own[place] for place in renamed), OPCODE]
        super().__init__(ScriptHandle(window.code, window.path, outputs))

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Return what the script makes of the event, each row a unit."""
        event = unit[0]
        return self._units(self._call(event, at), event, at.port)

    def process_block(
        self, units: Sequence[Unit], moments: Sequence[Moment]
    ) -> list[Sequence[Unit] | BadRecord]:
        """Return what the script makes of one event after the other."""
        answers = self._call.block([unit[0] for unit in units], moments)
        return [
            self._tried(answer, unit[0], at.port)
            for answer, unit, at in zip(answers, units, moments, strict=True)
        ]

    def _tried(
        self, answer: Answer | BadRecord, event: Event, port: int
    ) -> Sequence[Unit] | BadRecord:
        if isinstance(answer, BadRecord):
            return answer
        try:
            return self._units(answer, event, port)
        except BadRecord as refusal:
            return refusal

    def _units(self, answer: Answer, event: Event, port: int) -> Sequence[Unit]:
        if not isinstance(answer, list):
            raise BadRecord(
                "the script must return a row, several or none, not true or false, a number or text"
            )
        if self._spare:
            answer = [self._by_own_names(row) for row in answer]
        return [
            (self._event(row, event, port),)
            for row in answer
            if self._keyed[port] or any(value is not None for value in row)
        ]

    def _by_own_names(self, row: Row) -> Row:
        filled = list(row)
        for place, spare in self._spare:
            if filled[place] is None:
                filled[place] = filled[spare]
        return filled

    def _event(self, row: Row, event: Event, port: int) -> Event:
        values = []
        for (name, take, place), value in zip(self._columns[port], row, strict=False):
            if value is None and place is not None:
                values.append(event.values[place])
                continue
            try:
                values.append(take(value))
            except ValueError as error:
                raise BadRecord(f"field {name}: {error}") from None
        for place in self._keys:
            if values[place] is None:
                raise BadRecord(f"the script gives no value for key {self._fields[place].name}")
        opcode = self._opcode(row[-1], event.opcode)
        return Event(opcode, "R" if event.flags == "R" else "N", tuple(values))

    def _opcode(self, chosen: Any, opcode: str) -> str:
        if chosen is None:
            if not self._stateful:
                return opcode
            return "SD" if opcode in {"D", "SD"} else "P"
        return opcode_of(chosen)


class Beating(Scripted):
    """Makes events as time passes as well: a function is called again and again."""

    def __init__(self, window: ScriptWindow, feeds: Sequence[tuple[Field, ...]]) -> None:
        super().__init__(window, feeds)
        self._path = window.path
        self._heartbeat, self._every = window.heartbeat, window.heartbeat_ms
        self._due: int | None = None

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Return what the script makes of the event; time begins with the first one."""
        self._begin(at)
        return super().process(unit, at)

    def process_block(
        self, units: Sequence[Unit], moments: Sequence[Moment]
    ) -> list[Sequence[Unit] | BadRecord]:
        """Return what the script makes of one event after the other."""
        self._begin(moments[0])
        return super().process_block(units, moments)

    def _begin(self, at: Moment) -> None:
        if self._due is None:
            self._due = at.clock + self._every

    def due(self) -> int | None:
        """Return when the function is called next; None before the first event."""
        return self._due

    def expire(self, at: Moment) -> Sequence[Unit]:
        """Return what the function makes without an event."""
        self._due = at.clock + self._every
        try:
            return self._units(self._call.beat(self._heartbeat, at), _NO_EVENT, NO_PORT)
        except BadRecord as refusal:
            _LOG.error("window %s: %s: %s", self._path, self._heartbeat, refusal.reason)
            return ()

    def state(self) -> Any:
        """Return the script's variables, and when the function is called next."""
        return (self._due, super().state())

    def restore(self, state: Any) -> None:
        """Put the variables back."""
        self._due, variables = state
        super().restore(variables)


def script_stages(window: ScriptWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a window whose events a script makes."""
    return [Beating(window, feeds) if window.heartbeat else Scripted(window, feeds)]


class ScriptPredicate(OfScript):
    """Lets a function decide whether events pass a filter; null and zero are no."""

    def __init__(self, code: Code, window: str) -> None:
        super().__init__(ScriptHandle(code, window, ["answer"]))
        self.in_block = self._call.in_block

    def passes(self, events: Sequence[Event], at: Moment) -> Sequence[object]:
        """Return what the function says of each event."""
        return [self._passes(event, at) for event in events]

    def _passes(self, event: Event, at: Moment) -> bool:
        answer = self._call(event, at)
        if isinstance(answer, list) and answer:
            raise BadRecord("the script of a filter must return true or false, not a row")
        return bool(answer)


class ScriptProjection(OfScript):
    """Lets a function compute the fields that are no keys; what it does not name is null."""

    def __init__(
        self, code: Code, window: str, fields: Sequence[Field], feed: Sequence[Field]
    ) -> None:
        keys = iter(places([field.name for field in fields if field.key], feed))
        self._columns: list[tuple[str, Take, int | None]] = [
            (field.name, taker(field.type), next(keys) if field.key else None) for field in fields
        ]
        super().__init__(ScriptHandle(code, window, [field.name for field in fields]))
        self.in_block = self._call.in_block

    def rows(self, events: Sequence[Event], at: Moment) -> Sequence[tuple[Value, ...]]:
        """Return the row of each event."""
        return [self._row(event, at) for event in events]

    def _row(self, event: Event, at: Moment) -> tuple[Value, ...]:
        rows = self._call(event, at)
        if not isinstance(rows, list) or len(rows) != 1:
            raise BadRecord("the script of a compute window must return one row")
        (row,) = rows
        return tuple(
            [
                converted(name, take, value) if place is None else event.values[place]
                for (name, take, place), value in zip(self._columns, row, strict=True)
            ]
        )
