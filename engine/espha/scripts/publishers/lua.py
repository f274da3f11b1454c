"""Publishers in Lua, run by Lua 5.4 inside this process without a way out of it."""

import json
import os
import uuid
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from typing import Any, Final, NoReturn

from lupa import lua54

from espha.scripts.publishers.common import (
    MAX_EVENTS,
    Csv,
    Item,
    Published,
    PublisherError,
)

MAX_INSTRUCTIONS: Final = 100_000_000
"""Instructions of Lua's machine that one call may take; some seconds."""

MAX_MEMORY: Final = 256 * 1024 * 1024
_DEPTH: Final = 50

Query = Callable[[str], Iterable[Mapping[str, Any]]]


class LuaPublisher:
    """One loaded script."""

    def __init__(
        self,
        code: str,
        function: str,
        *,
        query: Query,
        variables: Mapping[str, str],
        log: Callable[[str], None],
    ) -> None:
        """Load the script and run its main part.

        Args:
            code: the text.
            function: name of the function that makes events.
            query: returns the rows of a window.
            variables: what `os.getenv` knows.
            log: takes what the script prints.

        Raises:
            PublisherError: the script cannot be used.
        """
        self._function = function.encode()
        self._now = 0
        self._runtime = lua54.LuaRuntime(
            encoding=None,
            register_eval=False,
            register_builtins=False,
            attribute_filter=_nothing,
            max_memory=MAX_MEMORY,
        )
        host = {
            b"most": MAX_EVENTS,
            b"variable": lambda name: _given(variables.get(_text(name))),
            b"guid": lambda: str(uuid.UUID(bytes=os.urandom(16), version=4)).encode(),
            b"query": lambda name: self._table(list(query(_text(name)))),
            b"log": lambda text: log(_text(text)),
            b"clock": lambda: self._now * 1000,
            b"parse": self._parsed,
            b"text": lambda value: json.dumps(_taken(value), default=str).encode(),
        }
        prelude = (files(__package__) / "publisher.lua").read_text(encoding="utf-8")
        make = self._runtime.compile(prelude.encode())
        self._engine = make(MAX_INSTRUCTIONS, self._runtime.table_from(host))
        okay, reason = self._guarded(b"load", code.encode())[:2]
        if not okay:
            raise PublisherError(_text(reason))
        if not self._engine[b"has"](self._function):
            raise PublisherError(f"the script has no function {function!r}")

    def publish(self, now: int) -> Published:
        """Call the function; see `Publisher`."""
        self._now = now
        okay, answer, items = self._guarded(b"call", self._function)
        if not okay:
            raise PublisherError(_text(answer))
        return Published([_item(item) for item in items.values()], answer is True)

    def _guarded(self, name: bytes, *arguments: bytes) -> tuple[Any, Any, Any]:
        try:
            answer = self._engine[name](*arguments)
        except (lua54.LuaError, MemoryError, OverflowError) as error:
            raise PublisherError(str(error).partition("\n")[0]) from None
        parts = answer if isinstance(answer, tuple) else (answer,)
        return (*parts, None, None)[:3]

    def _parsed(self, text: Any) -> Any:
        try:
            return self._table(json.loads(_text(text)))
        except (ValueError, RecursionError):
            return None

    def _table(self, value: Any, depth: int = 0) -> Any:
        if depth > _DEPTH:
            return None
        if isinstance(value, Mapping):
            return self._runtime.table_from(
                {_given(name): self._table(part, depth + 1) for name, part in value.items()}
            )
        if isinstance(value, list | tuple):
            return self._runtime.table_from([self._table(part, depth + 1) for part in value])
        return _given(value)

    def close(self) -> None:
        """Do nothing: all of it is in this process."""


def _nothing(*_: Any) -> NoReturn:
    raise AttributeError("not for scripts")


def _item(item: Any) -> Item:
    parts = dict(item.items())
    opcode, flags = (_text(parts.get(place, b"")) for place in (2, 3))
    if isinstance(parts[1], bytes):
        return Csv(_text(parts[1]), opcode, flags)
    event = _taken(parts[1])
    if not isinstance(event, dict):
        raise PublisherError("an event is to be a table with the names of fields")
    given = {"_opcode": opcode, "_flags": flags}
    return {**{name: text for name, text in given.items() if text}, **event}


def _taken(value: Any, depth: int = 0) -> Any:
    """Return a value of Lua as one of Python; a table is a list if its keys count from 1."""
    kind = lua54.lua_type(value)
    if isinstance(value, bytes):
        return _text(value)
    if kind is None:
        return value
    if kind != "table" or depth > _DEPTH:
        return None
    pairs = dict(value.items())
    if pairs and set(pairs) == set(range(1, len(pairs) + 1)):
        return [_taken(pairs[place], depth + 1) for place in range(1, len(pairs) + 1)]
    return {_text(name): _taken(part, depth + 1) for name, part in pairs.items()}


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _given(value: Any) -> Any:
    return value.encode("utf-8", "replace") if isinstance(value, str) else value
