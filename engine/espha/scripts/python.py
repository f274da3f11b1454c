"""Python scripts, each in a process of its own; `espha.scripts.child` is what runs there.

The process can be killed: by its limits, or from here when it does not answer. So this side holds
what is needed to begin anew: a state of the script, and the calls since then. They are replayed
in a new process, which then is where the old one was before the call that it did not survive.
"""

import ast
import base64
import json
import os
import selectors
import signal
import subprocess
import sys
import weakref
from collections.abc import Sequence
from typing import Any, Final

from espha.scripts import child
from espha.scripts.common import MAX_CODE, Call, Input, Row, ScriptError

SECONDS: Final = 10.0
"""How long to wait for an answer; the process stops itself earlier, after two seconds of work."""

CALLS_KEPT: Final = 256
"""Calls that are replayed at most; then the state is asked for."""

MAX_ANSWER: Final = 64 * 1024 * 1024
"""Bytes of an answer."""

_Message = list[Any]


class PythonScript:
    """One script; its process starts with the first call."""

    def __init__(
        self,
        code: str,
        function: str,
        window: str,
        inputs: Sequence[Input],
        outputs: Sequence[str],
        *,
        seconds: float = SECONDS,
    ) -> None:
        """Prepare the script; see `espha.scripts.lua.LuaScript` for the arguments.

        Args:
            code: the text.
            function: name of the function that `call` calls.
            window: path of the window.
            inputs: where rows come from.
            outputs: names that are read from the rows that come out.
            seconds: how long to wait for an answer.
        """
        self._setup = {
            "code": code,
            "function": function,
            "window": window,
            "inputs": [[each.window, list(each.fields)] for each in inputs],
            "outputs": list(outputs),
        }
        self._outputs = tuple(outputs)
        self._seconds = seconds
        self._process: _Process | None = None
        self._state: Any = None
        self._since: list[_Message] = []

    def call(self, call: Call) -> list[Row] | bool:
        """Call the function; see `Script`."""
        row = [_given(value) for value in call.values]
        message = ["call", call.port, [call.opcode, call.flags], [call.clock, call.token], row]
        good, answer = self._ask(message)
        self._since.append(message)
        if len(self._since) >= CALLS_KEPT:
            self.state()
        if not good:
            raise ScriptError(answer)
        if answer is None or isinstance(answer, bool):
            return [] if answer is None else answer
        return [dict(zip(self._outputs, map(_taken, values), strict=True)) for values in answer]

    def state(self) -> Any:
        """Return the variables; None before the first call."""
        if self._since:
            good, answer = self._ask_twice(["state"])
            if not good:
                raise ScriptError(answer)
            self._state, self._since = answer, []
        return self._state

    def restore(self, state: Any) -> None:
        """Put the variables back, in a new process when the script is called next."""
        self.close()
        self._state, self._since = state, []

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _ask_twice(self, message: _Message) -> tuple[bool, Any]:
        """Ask a new process, with the same calls behind it, when the first one is gone."""
        try:
            return self._ask(message)
        except ScriptError:
            return self._ask(message)

    def _ask(self, message: _Message) -> tuple[bool, Any]:
        if self._process is None:
            self._process = self._started()
        try:
            return self._process.ask(message)
        except ScriptError:
            self.close()
            raise

    def _started(self) -> "_Process":
        process = _Process(self._seconds)
        messages = [["load", self._setup]]
        if self._state is not None:
            messages.append(["restore", self._state])
        for message in messages:
            good, reason = process.ask(message)
            if not good:
                process.kill()
                raise ScriptError(reason)
        for message in self._since:
            process.ask(message)
        return process


class _Process:
    """A running child."""

    def __init__(self, seconds: float) -> None:
        # Hashes of texts decide the order of sets, so their seed is fixed.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-s", "-S", "-B", "-X", "utf8", child.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C"},
            cwd="/",
            start_new_session=True,
        )
        assert self._process.stdout is not None  # noqa: S101 - it was asked for
        self._seconds = seconds
        self._out = self._process.stdout.fileno()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._out, selectors.EVENT_READ)
        self.kill = weakref.finalize(self, _end, self._process, self._selector)

    def ask(self, message: _Message) -> tuple[bool, Any]:
        """Send a message and wait for its answer.

        Raises:
            ScriptError: there is none.
        """
        assert self._process.stdin is not None  # noqa: S101 - it was asked for
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise ScriptError(self._ending()) from None
        good, answer = json.loads(self._line())
        return bool(good), answer

    def _line(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        while not parts or not parts[-1].endswith(b"\n"):
            if not self._selector.select(self._seconds):
                raise ScriptError(f"the script gave no answer within {self._seconds:g} seconds")
            part = os.read(self._out, 1 << 20)
            size += len(part)
            if not part:
                raise ScriptError(self._ending())
            if size > MAX_ANSWER:
                raise ScriptError(f"the script's answer has more than {MAX_ANSWER} bytes")
            parts.append(part)
        return b"".join(parts)

    def _ending(self) -> str:
        try:
            code = self._process.wait(timeout=self._seconds)
        except subprocess.TimeoutExpired:
            return "the script's process closed its output"
        if code == -signal.SIGVTALRM:
            return f"the script worked for more than {child.SECONDS:g} seconds"
        return f"the script's process ended with code {code}"


def _end(process: "subprocess.Popen[bytes]", selector: selectors.BaseSelector) -> None:
    selector.close()
    process.kill()
    process.communicate()


def check_python(code: str, *functions: str) -> None:
    """Check a script without running it.

    Raises:
        ScriptError: too long, not Python, without one of these functions, or with variables that
            would be lost.
    """
    if len(code) > MAX_CODE:
        raise ScriptError(f"the script has {len(code)} characters; at most {MAX_CODE} are read")
    try:
        tree = ast.parse(code, "script")
    except SyntaxError as error:
        raise ScriptError(f"line {error.lineno}: {error.msg}") from None
    except (ValueError, MemoryError, RecursionError):
        raise ScriptError("the script is not Python, or is nested too deeply") from None
    try:
        child.refuse_what_hides_state(tree)
    except child.Refused as refusal:
        raise ScriptError(str(refusal)) from None
    except RecursionError:
        raise ScriptError("the script is nested too deeply") from None
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for function in functions:
        if function not in names:
            raise ScriptError(f"the script has no function {function!r}")


def _given(value: Any) -> Any:
    if type(value) is bytes:
        return {"b": base64.b64encode(value).decode()}
    return value


def _taken(value: Any) -> Any:
    if isinstance(value, dict):
        return base64.b64decode(value["b"])
    return tuple(value) if isinstance(value, list) else value
