"""Lua scripts, run by Lua 5.4 inside this process without a way out of it.

`prelude.lua` makes the world of a script. It leaves out what reaches the machine (`os`, `io`,
`require`, `load`, `debug`, `package`, `coroutine`, the bridge to Python), and replaces what would
answer differently on two engines: the order of `pairs`, the length of tables with holes, the
pivot of `table.sort`, addresses in texts, the clock and the random numbers.
"""

import re
import zlib
from collections.abc import Collection, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final, NoReturn

from lupa import lua54

from espha.scripts.common import MAX_CODE, MAX_ROWS, Answer, Call, Input, Options, Row, ScriptError

MAX_INSTRUCTIONS: Final = 10_000_000
"""Instructions of Lua's machine that one call may take; some tenths of a second."""

MAX_MEMORY: Final = 64 * 1024 * 1024
"""Bytes that one script may hold."""

_SKIPPED = re.compile(
    r"--\[(?P<c>=*)\[.*?\](?P=c)\]"  # long comment
    r"|--[^\n]*"
    r"|\[(?P<s>=*)\[.*?\](?P=s)\]"  # long text
    r'|"(?:\\z\s*|\\.|[^"\\\n])*"'
    r"|'(?:\\z\s*|\\.|[^'\\\n])*'"
    r"|#",
    re.DOTALL,
)


class LuaScript:
    """One loaded script, with its own memory and variables."""

    def __init__(
        self,
        code: str,
        function: str,
        window: str,
        inputs: Sequence[Input],
        outputs: Sequence[str],
        *,
        options: Options = Options(),  # noqa: B008 - it cannot change
    ) -> None:
        """Load the script and run its main part.

        Args:
            code: the text.
            function: name of the function that `call` calls.
            window: path of the window, for the script and for random numbers.
            inputs: where rows come from.
            outputs: names that are read from the rows that come out.
            options: what else there is to say.

        Raises:
            ScriptError: the script cannot be used.
        """
        self._function = function.encode()
        self._outputs = tuple(outputs)
        self._runtime = lua54.LuaRuntime(
            encoding=None,
            register_eval=False,
            register_builtins=False,
            attribute_filter=_nothing,
            max_memory=MAX_MEMORY,
        )
        path = window.encode()
        make = self._runtime.compile(_prelude().encode())
        engine = make(MAX_INSTRUCTIONS, zlib.crc32(path), path)
        self._engine = {name: engine[name.encode()] for name in ("call", "state", "restore")}
        engine[b"schema"](MAX_ROWS, *[name.encode() for name in outputs])
        for each in inputs:
            engine[b"input"](each.window.encode(), *[name.encode() for name in each.fields])
        self._load(engine, code)

    def _load(self, engine: Any, code: str) -> None:
        text = f"local __length = ...; {without_length(code)}"
        okay, reason = _two(self._guarded(engine[b"load"], text.encode(), b"=script"))
        if not okay:
            raise ScriptError(_text(reason))
        if not engine[b"has"](self._function):
            raise ScriptError(f"the script has no function {self._function.decode()!r}")

    def call_block(self, calls: Sequence[Call]) -> list[Answer | ScriptError]:
        """Call the function for one event after the other; see `Script`."""
        return [self._tried(call) for call in calls]

    def _tried(self, call: Call) -> Answer | ScriptError:
        try:
            return self.call(call)
        except ScriptError as error:
            return error

    def call(self, call: Call) -> Answer:
        """Call the function; see `Script`."""
        answer = self._guarded(
            self._engine["call"],
            self._function,
            call.clock,
            call.token,
            call.port + 1,
            call.opcode.encode(),
            call.flags.encode(),
            *[self._given(value) for value in call.values],
        )
        if not isinstance(answer, tuple):
            return []
        if not answer[0]:
            raise ScriptError(_text(answer[1]))
        if isinstance(answer[1], bool):
            return answer[1]
        return self._rows(answer[2:])

    def _rows(self, flat: Sequence[Any]) -> list[Row]:
        width = len(self._outputs)
        values = [_taken(value) for value in flat]
        return [values[at : at + width] for at in range(0, len(values), width)]

    def _given(self, value: Any) -> Any:
        if type(value) is str:
            return value.encode()
        return self._runtime.table_from(value) if type(value) is tuple else value

    def _guarded(self, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (lua54.LuaError, MemoryError, OverflowError) as error:
            self._runtime.gccollect()
            raise ScriptError(str(error).partition("\n")[0]) from None

    def state(self) -> bytes:
        """Return the variables.

        Raises:
            ScriptError: one of them holds what is no data, for example a function made at run
                time.
        """
        state: bytes = self._guarded(self._engine["state"])
        return state

    def restore(self, state: bytes) -> None:
        """Put the variables back."""
        self._guarded(self._engine["restore"], state)

    def close(self) -> None:
        """Do nothing: all of it is in this process."""


def check_lua(code: str, *functions: str, modules: Collection[str] = ()) -> None:
    """Check a script without running it.

    Args:
        code: the text.
        functions: names of the functions that must be there.
        modules: names of the modules of the model.

    Raises:
        ScriptError: too long, not Lua, or without one of these functions.
    """
    if len(code) > MAX_CODE:
        raise ScriptError(f"the script has {len(code)} characters; at most {MAX_CODE} are read")
    runtime = lua54.LuaRuntime(
        encoding=None, register_eval=False, register_builtins=False, max_memory=MAX_MEMORY
    )
    load = runtime.globals()[b"load"]
    answer = load(without_length(code).encode(), b"=script", b"t")
    if isinstance(answer, tuple):
        raise ScriptError(_text(answer[1]))
    bare = _SKIPPED.sub(" ", code)
    for function in functions:
        name = re.escape(function)
        if not re.search(rf"\bfunction\s+{name}\b|\b{name}\s*=(?!=)", bare):
            raise ScriptError(f"the script has no function {function!r}")


def without_length(code: str) -> str:
    """Replace the operator `#` by a power, which binds as tightly and can be given a meaning."""
    return _SKIPPED.sub(lambda match: "__length^" if match[0] == "#" else match[0], code)


@cache
def _prelude() -> str:
    return (files(__package__) / "prelude.lua").read_text(encoding="utf-8")


def _nothing(*_: Any) -> NoReturn:
    raise AttributeError("not for scripts")


def _two(answer: Any) -> tuple[Any, Any]:
    return (answer[0], answer[1]) if isinstance(answer, tuple) else (answer, None)


def _text(reason: Any) -> str:
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)


def _taken(value: Any) -> Any:
    if type(value) is bytes or lua54.lua_type(value) is None:
        return value
    return tuple(value.values())
