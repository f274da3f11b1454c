"""Windows whose events a script makes, and what other windows with a script need of it.

A script in Python runs in a process of its own (`espha.scripts`): the one way in which a window
reaches something outside itself.
"""

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from espha.model.events import BadRecord, Event, Value
from espha.model.project import Field
from espha.model.types import ARRAYS, INTEGERS, checker, parser
from espha.scripts import Call, Input, Script, ScriptError
from espha.scripts.lua import LuaScript
from espha.scripts.python import PythonScript
from espha.windows.shared.script_spec import Code, ScriptWindow
from espha.windows.shared.stage import Moment, Stage, Unit, places

OPCODE: Final = "_opcode"
"""What a row calls the opcode that it wants."""

_SPOKEN: Final = {"I": "insert", "U": "update", "P": "upsert", "D": "delete", "SD": "safedelete"}
_OPCODES: Final = {**{word: code for code, word in _SPOKEN.items()}, **{c: c for c in _SPOKEN}}
_LANGUAGES: Final[dict[str, Any]] = {"lua": LuaScript, "python": PythonScript}
_LOG = logging.getLogger(__name__)

Take = Callable[[Any], Value]


class ScriptHandle:
    """A script of a window, which may be one that cannot be used."""

    def __init__(self, code: Code, window: str, outputs: Sequence[str]) -> None:
        self._places = [given.places for given in code.inputs]
        self._window = window
        self._script: Script | None = None
        self._reason = ""
        inputs = [Input(given.window, given.names) for given in code.inputs]
        try:
            make = _LANGUAGES[code.language]
            self._script = make(code.text, code.function, window, inputs, outputs)
        except ScriptError as error:
            self._reason = str(error)
            _LOG.error("window %s: the script cannot be used: %s", window, error)

    def __call__(self, event: Event, at: Moment) -> Any:
        """Return the rows that the script made of an event, or its truth value.

        Raises:
            BadRecord: the script failed; what it had changed until then stays.
        """
        if self._script is None:
            raise BadRecord(f"the script cannot be used: {self._reason}")
        values = [event.values[place] for place in self._places[at.port]]
        opcode = _SPOKEN[event.opcode]
        call = Call(values, opcode, event.flags, at.port, at.clock, at.token)
        try:
            return self._script.call(call)
        except ScriptError as error:
            raise BadRecord(f"the script failed: {error}") from None

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

    def restore(self, state: Any) -> None:
        """Put the variables back."""
        if self._script is not None:
            self._script.restore(state)


class Scripted:
    """Makes events of what a function returns for an event.

    Of an update block the function gets the new row. A stateful window takes what comes out as
    changes of its index: what the function returns for an insert or update is an upsert, for a
    delete a safe delete. A stateless one gives it the opcode of the event.
    """

    def __init__(self, window: ScriptWindow, feeds: Sequence[tuple[Field, ...]]) -> None:
        self._fields = window.fields
        self._stateful = window.stateful
        self._keys = [place for place, field in enumerate(window.fields) if field.key]
        self._takes = [(field.name, taker(field.type)) for field in window.fields]
        self._copied = [
            {name: place for place, (name, *_) in enumerate(feed) if name in window.copied}
            for feed in feeds
        ]
        names = [field.name for field in window.fields]
        self._call = ScriptHandle(window.code, window.path, [*names, OPCODE])

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Return what the script makes of the event, each row a unit."""
        event = unit[0]
        rows = self._call(event, at)
        if isinstance(rows, bool):
            raise BadRecord("the script must return a row, several or none, not true or false")
        return [(self._event(row, event, at.port),) for row in rows]

    def _event(self, row: Any, event: Event, port: int) -> Event:
        copied = self._copied[port]
        values = []
        for name, take in self._takes:
            value = row[name]
            if value is None and name in copied:
                values.append(event.values[copied[name]])
            else:
                values.append(_converted(name, take, value))
        for place in self._keys:
            if values[place] is None:
                raise BadRecord(f"the script gives no value for key {self._fields[place].name}")
        opcode = self._opcode(row[OPCODE], event.opcode)
        return Event(opcode, "R" if event.flags == "R" else "N", tuple(values))

    def _opcode(self, chosen: Any, opcode: str) -> str:
        if chosen is None:
            if not self._stateful:
                return opcode
            return "SD" if opcode in {"D", "SD"} else "P"
        word = chosen.decode(errors="replace") if isinstance(chosen, bytes) else str(chosen)
        found = _OPCODES.get(word) or _OPCODES.get(word.lower())
        if found is None:
            raise BadRecord(f"{OPCODE} is {word[:60]!r}; use {', '.join(_SPOKEN.values())}")
        return found

    def state(self) -> Any:
        """Return the script's variables."""
        return self._call.state()

    def restore(self, state: Any) -> None:
        """Put the variables back."""
        self._call.restore(state)


def script_stages(window: ScriptWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a window whose events a script makes."""
    return [Scripted(window, feeds)]


class ScriptPredicate:
    """Lets a function decide whether events pass a filter; null and zero are no."""

    def __init__(self, code: Code, window: str) -> None:
        self._call = ScriptHandle(code, window, ["answer"])

    def passes(self, events: Sequence[Event], at: Moment) -> Sequence[object]:
        """Return what the function says of each event."""
        return [self._passes(event, at) for event in events]

    def _passes(self, event: Event, at: Moment) -> bool:
        answer = self._call(event, at)
        if isinstance(answer, list) and answer:
            raise BadRecord("the script of a filter must return true or false, not a row")
        return bool(answer)

    def state(self) -> Any:
        """Return the script's variables."""
        return self._call.state()

    def restore(self, state: Any) -> None:
        """Put the variables back."""
        self._call.restore(state)


class ScriptProjection:
    """Lets a function compute the fields that are no keys; what it does not name is null."""

    def __init__(
        self, code: Code, window: str, fields: Sequence[Field], feed: Sequence[Field]
    ) -> None:
        keys = iter(places([field.name for field in fields if field.key], feed))
        self._columns: list[tuple[str, Take, int | None]] = [
            (field.name, taker(field.type), next(keys) if field.key else None) for field in fields
        ]
        self._call = ScriptHandle(code, window, [field.name for field in fields])

    def rows(self, events: Sequence[Event], at: Moment) -> Sequence[tuple[Value, ...]]:
        """Return the row of each event."""
        return [self._row(event, at) for event in events]

    def _row(self, event: Event, at: Moment) -> tuple[Value, ...]:
        rows = self._call(event, at)
        if isinstance(rows, bool) or len(rows) != 1:
            raise BadRecord("the script of a compute window must return one row")
        (row,) = rows
        return tuple(
            [
                _converted(name, take, row[name]) if place is None else event.values[place]
                for name, take, place in self._columns
            ]
        )

    def state(self) -> Any:
        """Return the script's variables."""
        return self._call.state()

    def restore(self, state: Any) -> None:
        """Put the variables back."""
        self._call.restore(state)


def _converted(name: str, take: Take, value: Any) -> Value:
    try:
        return take(value)
    except ValueError as error:
        raise BadRecord(f"field {name}: {error}") from None


def taker(type_: str) -> Take:
    """Return the function that makes a field's value of what a script says.

    Numbers lose their fraction on the way to a whole number and become texts as they are, texts
    are read as numbers, true and false are 1 and 0. The function raises ValueError, with a
    sentence, for what does not fit.
    """
    check = checker(type_)
    if type_ in ARRAYS:
        element = taker(ARRAYS[type_])
        return lambda value: check(_elements(value, element))
    if type_ == "blob":
        return lambda value: value.encode() if isinstance(value, str) else check(value)
    if type_ == "string":
        return lambda value: None if value is None else check(_text(value))
    parse = parser(type_)
    whole = type_ in INTEGERS

    def take(value: Any) -> Value:
        if isinstance(value, bool):
            value = int(value)
        elif isinstance(value, bytes | str):
            return parse(_text(value))
        elif whole and isinstance(value, float):
            value = None if math.isnan(value) else _whole(value)
        return check(value)

    return take


def _elements(value: Any, element: Take) -> Any:
    return tuple([element(part) for part in value]) if isinstance(value, tuple) else value


def _whole(value: float) -> int:
    if math.isinf(value):
        raise ValueError("an infinite number")
    return int(value)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise ValueError("bytes that are not UTF-8 text") from None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return f"{value:.14g}" if isinstance(value, float) else str(value)
    raise ValueError("a list is not a text")
