"""Lua scripts, run by Lua 5.4 inside this process without a way out of it.

`prelude.lua` makes the world of a script. It leaves out what reaches the machine (`os`, `io`,
`require`, `load`, `debug`, `package`, `coroutine`, the bridge to Python), and replaces what would
answer differently on two engines: the order of `pairs`, the length of tables with holes, the
pivot of `table.sort`, addresses in texts, the clock and the random numbers.
"""

import base64
import contextlib
import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final, NoReturn

from lupa import lua54

from espha.scripts.common import (
    MAX_CODE,
    MAX_ROWS,
    Answer,
    Call,
    Input,
    Options,
    Row,
    ScriptError,
)
from espha.scripts.world import Alone, World, log

MAX_INSTRUCTIONS: Final = 10_000_000
"""Instructions of Lua's machine that one call may take; some tenths of a second."""

MAX_MEMORY: Final = 64 * 1024 * 1024
"""Bytes that one script may hold."""

_KEEP_MEMORY: Final = 4 * MAX_MEMORY
"""Bytes that it may hold while its variables are written, or put back."""

_PARTS: Final = ("prelude.lua", "esp.lua", "project.lua")
_REQUIRE: Final = re.compile(r"\brequire\s*\(?\s*[\"']([^\"']+)[\"']")

_ESP: Final = re.compile(r"\besp_\w+(?=\s*\()")
_DEFINED: Final = re.compile(r"\bG\.(esp_\w+)")

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
    """One loaded script, with its own memory and variables.

    Attributes:
        world: what it shares with its project.
    """

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
        """Load the script; its main part runs with the first call.

        Args:
            code: the text.
            function: name of the function that `call` calls.
            window: path of the window, for the script and for random numbers.
            inputs: where rows come from.
            outputs: names that are read from the rows that come out.
            options: how it is called, and what it can use.

        Raises:
            ScriptError: it is no Lua.
        """
        self.world: World = Alone()
        self._code, self._window, self._inputs = code, window, tuple(inputs)
        self._function = function.encode()
        self._outputs = tuple(outputs)
        self._options = options
        self._start()

    def _start(self) -> None:
        """Make an empty runtime for the script."""
        options, path = self._options, self._window.encode()
        self._runtime = lua54.LuaRuntime(
            encoding=None,
            register_eval=False,
            register_builtins=False,
            attribute_filter=_nothing,
            unpack_returned_tuples=True,
            max_memory=MAX_MEMORY,
        )
        prelude, *parts = _prelude()
        make = self._runtime.compile(prelude)
        engine = make(MAX_INSTRUCTIONS, zlib.crc32(path), path, self._outside, *parts)
        self._engine = {
            name: engine[name.encode()] for name in ("call", "invoke", "start", "state", "restore")
        }
        engine[b"schema"](MAX_ROWS, *[name.encode() for name in self._outputs])
        for each in self._inputs:
            engine[b"input"](each.window.encode(), *[name.encode() for name in each.fields])
        for name, text in options.modules.items():
            engine[b"module"](name.encode(), _program(text))
        engine[b"require"](*[name.encode() for name in _required(self._code, options)])
        if options.init:
            engine[b"init"](options.init.encode(), self._settings())
        engine[b"calling"](options.expanded, options.blocks)
        okay, reason = _two(self._guarded(engine[b"load"], _program(self._code), b"=script"))
        if not okay:
            raise ScriptError(_text(reason))

    def _settings(self) -> Any:
        if self._options.settings is None:
            return None
        pairs = self._options.settings.items()
        return self._runtime.table_from({name.encode(): text.encode() for name, text in pairs})

    def _outside(self, what: bytes, *arguments: Any) -> Any:
        """Do for the script what it cannot do itself; return a value and why there is none."""
        given = [each.decode() if type(each) is bytes else each for each in arguments[:1]]
        try:
            match what:
                case b"log":
                    log(*[each.decode(errors="replace") for each in arguments])
                    return None, None
                case b"file":
                    return self._options.files.get(given[0]), None
                case b"set" | b"publish":
                    getattr(self.world, what.decode())(given[0], *arguments[1:])
                    return None, None
                case b"call":
                    return self.world.call(given[0], arguments[1].decode(), arguments[2]), None
                case b"subscribe":
                    return self.world.subscribe(given[0], arguments[1].decode(), arguments[2]), None
                case _:
                    return getattr(self.world, what.decode())(given[0]), None
        except ScriptError as error:
            return None, str(error).encode()
        except (UnicodeDecodeError, AttributeError, IndexError):
            return None, b"a name is missing, or is no text"

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
            call.function.encode() or self._function,
            call.clock,
            call.token,
            call.port + 1,
            call.opcode.encode(),
            call.flags.encode(),
            *[self._given(value) for value in call.values],
        )
        if not isinstance(answer, tuple):
            return []
        okay, result, *flat = answer
        if not okay:
            raise ScriptError(_text(result))
        if result is not None:
            return result if isinstance(result, bool) else self._rows(flat)
        value = flat[0] if flat else None
        return [] if value is None else _text(value) if isinstance(value, bytes) else value

    def begin(self, clock: int, token: int) -> None:
        """Run the main part and `init`, if they have not run.

        Raises:
            ScriptError: they failed.
        """
        okay, reason = _two(self._guarded(self._engine["start"], clock, token))
        if not okay:
            raise ScriptError(_text(reason))

    def invoke(self, function: str, arguments: bytes, clock: int, token: int) -> bytes:
        """Call any function of the script with packed arguments; return its packed results.

        Raises:
            ScriptError: it failed, or its results are no data.
        """
        answer = self._guarded(self._engine["invoke"], function.encode(), clock, token, arguments)
        okay, result = _two(answer)
        if not okay:
            raise ScriptError(_text(result))
        found: bytes = result
        return found

    def _rows(self, flat: Sequence[Any]) -> list[Row]:
        width = len(self._outputs)
        values = [_taken(value) for value in flat]
        return [values[at : at + width] for at in range(0, len(values), width)]

    def _given(self, value: Any) -> Any:
        if type(value) is str:
            return value.encode()
        if type(value) is bytes and self._options.encoded:
            return base64.b64encode(value)
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
        with self._room():
            state: bytes = self._guarded(self._engine["state"])
        return state

    def restore(self, state: bytes) -> None:
        """Put the variables back, in a new runtime."""
        self._start()
        with self._room():
            self._guarded(self._engine["restore"], state)

    @contextlib.contextmanager
    def _room(self) -> Iterator[None]:
        """Give the script what its variables need once more, as text."""
        self._runtime.set_max_memory(_KEEP_MEMORY)
        try:
            yield
        finally:
            self._runtime.set_max_memory(MAX_MEMORY)

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


def unknown_functions(code: str) -> list[str]:
    """Return the functions of SAS ESP that a script uses and that are not there."""
    used = set(_ESP.findall(_SKIPPED.sub(" ", code)))
    known = {name for part in _prelude() for name in _DEFINED.findall(part.decode())}
    return sorted(name for name in used - known if not re.search(rf"function\s+{name}\b", code))


def without_length(code: str) -> str:
    """Replace the operator `#` by a power, which binds as tightly and can be given a meaning."""
    return _SKIPPED.sub(lambda match: "__length^" if match[0] == "#" else match[0], code)


def _program(code: str) -> bytes:
    return f"local __length = ...; {without_length(code)}".encode()


def _required(code: str, options: Options) -> list[str]:
    """Return the modules that run before the script: those asked for anywhere in it."""
    asked = [match[1] for match in _REQUIRE.finditer(code) if match[1] in options.modules]
    return list(dict.fromkeys([*options.require, *asked]))


@cache
def _prelude() -> list[bytes]:
    """Return the texts of the world of a script, the prelude first."""
    return [(files(__package__) / name).read_bytes() for name in _PARTS]


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
