"""Python scripts, each in a process of its own; `espha.scripts.process` is what runs there.

The process can be killed: by its limits, or from here when it does not answer. So this side holds
what is needed to begin anew: a state of the script, and the calls since then. They are replayed
in a new process, which then is where the old one was before the call that it did not survive.

Calls go out in pieces of a block, and the process may answer a part of a piece. Where a piece ends
makes no difference to the script.
"""

import ast
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from espha.scripts.common import MAX_CODE, Answer, Call, Input, Options, ScriptError
from espha.scripts.host import BEGIN_SECONDS, SECONDS, GoneError, Host, SilentError
from espha.scripts.process import imports

CALLS_KEPT: Final = 256
"""Calls that are replayed at most, or as many as the state has values; then it is asked for."""

MOST_KEPT: Final = 1 << 16

PIECE: Final = 256
"""Calls that go out at once."""

_LIVES: Final = 2
"""Processes that a call, or a beginning, is tried in: one may be killed for no fault of its own."""

_LEVELS: Final = {"trace": 10, "debug": 10, "warn": 30, "warning": 30, "error": 40, "critical": 50}
_LOG = logging.getLogger(__name__)

_Given = list[Any]
"""A call as the process takes it."""


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
        options: Options = Options(),  # noqa: B008 - it cannot change
        seconds: float = SECONDS,
    ) -> None:
        """Prepare the script; see `espha.scripts.lua.LuaScript` for the arguments.

        Args:
            code: the text.
            function: name of the function that `call` calls.
            window: path of the window.
            inputs: where rows come from.
            outputs: names that are read from the rows that come out.
            options: what else there is to say.
            seconds: how long to wait for an answer.
        """
        self._setup = {
            "code": code,
            "function": function,
            "window": window,
            "inputs": [[each.window, list(each.fields)] for each in inputs],
            "outputs": list(outputs),
            "options": {
                name: dict(value) if isinstance(value, Mapping) else value
                for name, value in options._asdict().items()
            },
        }
        every = (code, *options.modules.values(), *options.snippets.values())
        self._modules = sorted({name for text in every for name in _imported(text)})
        self._window = window
        self._seconds = seconds
        self._host: Host | None = None
        self._state: Any = None
        self._since: list[list[_Given]] = []
        self._kept = 0
        self._broken = ""
        """Why there is no way to begin anew."""

    def call(self, call: Call) -> Answer:
        """Call the function; see `Script`."""
        (answer,) = self.call_block((call,))
        if isinstance(answer, ScriptError):
            raise answer
        return answer

    def call_block(self, calls: Sequence[Call]) -> list[Answer | ScriptError]:
        """Call the function for one event after the other; see `Script`."""
        answers: list[Answer | ScriptError] = []
        for at in range(0, len(calls), PIECE):
            piece = [
                [function, port, opcode, flags, clock, token, values]
                for values, opcode, flags, port, clock, token, function in calls[at : at + PIECE]
            ]
            answers += self._piece(piece)
        return answers

    def _piece(self, calls: list[_Given], lives: int = _LIVES) -> list[Answer | ScriptError]:
        if self._broken:
            return [ScriptError(self._broken)] * len(calls)
        try:
            answers = self._asked(self._begun(calls[0]), calls)
        except ScriptError as error:
            if self._broken:
                return [error] * len(calls)
            if len(calls) == 1:
                again = _has_died(error) and lives > 1 and not self._unkept
                return self._piece(calls, lives - 1) if again else [error]
            # The one that fails is to be found: the process is where it was before the piece.
            return [answer for call in calls for answer in self._piece([call])]
        self._since.append(calls)
        self._kept += len(calls)
        if self._kept >= self._bound():
            self._settle()
        return answers

    def _asked(self, host: Host, calls: list[_Given], *, silent: bool = False) -> list[Any]:
        answers: list[Any] = []
        while len(answers) < len(calls):
            rest = calls[len(answers) :]
            part = self._ask(host, "calls", rest, silent=silent)
            if not isinstance(part, list) or not 0 < len(part) <= len(rest):
                self.close()
                raise ScriptError("the script's process gave no answer")
            answers += [[] if answer is None else answer for answer in part]
        return answers

    def _ask(self, host: Host, what: str, message: Any = None, *, silent: bool = False) -> Any:
        seconds = self._seconds if what == "calls" else BEGIN_SECONDS
        try:
            good, answer, lines = host.ask(what, message, seconds)
        except ScriptError:
            self.close()
            raise
        if not silent:
            for level, context, text in lines:
                number = _LEVELS.get(level.lower(), logging.INFO)
                _LOG.log(number, "%s: %s%s", self._window, context and f"{context}: ", text)
        if not good:
            if what == "calls":  # some of them may have been made
                self.close()
            raise ScriptError(answer)
        return answer

    def _bound(self) -> int:
        values = len(self._state[-1]) if self._state else 0
        return min(max(CALLS_KEPT, values), MOST_KEPT)

    def _settle(self) -> None:
        """Ask for the state, so that there is less to replay."""
        try:
            self.state()
        except ScriptError as error:
            self._kept = 0
            if self._host is None and sum(map(len, self._since)) < MOST_KEPT:
                return  # another process comes to where this one was
            # It goes on without; if it is asked for, or the process dies, that is an error.
            self._state, self._since = None, []
            self._unkept = str(error)

    _unkept = ""
    """Why the variables of the running process cannot be kept."""

    def state(self) -> Any:
        """Return the variables; None before the first call."""
        if self._since or self._unkept:
            first = self._since[0][0] if self._since else None
            try:
                answer = self._ask(self._begun(first), "state")
            except ScriptError as error:
                if not _has_died(error):
                    raise
                answer = self._ask(self._begun(first), "state")
            self._state, self._since, self._kept, self._unkept = answer, [], 0, ""
        return self._state

    def restore(self, state: Any) -> None:
        """Put the variables back, in a new process when the script is called next."""
        self.close()
        self._state, self._since, self._kept = state, [], 0
        self._broken = self._unkept = ""

    def close(self) -> None:
        """End the process."""
        if self._host is not None:
            self._host.kill()
            self._host = None

    def _begun(self, call: _Given | None) -> Host:
        """Return the process, which is where it was before the call."""
        if self._host is not None:
            return self._host
        if self._unkept:
            self._broken = f"the script cannot begin anew: {self._unkept}"
        if call is None or self._broken:
            raise ScriptError(self._broken or "there was no call yet")
        first = self._since[0][0] if self._since else call
        for lives in range(_LIVES, 0, -1):
            try:
                host = self._loaded(first)
                break
            except ScriptError as error:
                self.close()
                if _has_died(error) and lives > 1:
                    continue
                self._broken = str(error)
                raise
        for calls in self._since:
            self._asked(host, calls, silent=True)
        return host

    def _loaded(self, first: _Given) -> Host:
        """Start a process, and bring it to where the calls since then begin."""
        moment = self._state[0] if self._state else first[4:6]
        host = self._host = Host(self._modules)
        self._ask(host, "load", [self._setup, moment], silent=self._state is not None)
        if self._state is None:
            self._ask(host, "begin", silent=bool(self._since))
        else:
            self._ask(host, "restore", self._state)
        return host


def _has_died(error: ScriptError) -> bool:
    """Whether a process has died, for no reason that lies in the script; one may be killed."""
    return isinstance(error, GoneError) and not isinstance(error, SilentError)


def _imported(text: str) -> Iterable[str]:
    try:
        return [name for name, _ in imports.imported(ast.parse(text)) if imports.known(name)]
    except (SyntaxError, ValueError, MemoryError, RecursionError):  # it says so when it is loaded
        return []


def check_python(code: str, *functions: str, modules: Collection[str] = ()) -> None:
    """Check a script without running it.

    Args:
        code: the text.
        functions: names of the functions that must be there.
        modules: names of the modules of the model.

    Raises:
        ScriptError: too long, not Python, without a function, or with imports that scripts cannot
            have.
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
        missing = list(imports.unknown(tree, frozenset(modules)))
    except RecursionError:
        raise ScriptError("the script is nested too deeply") from None
    if missing:
        name, line = missing[0]
        raise ScriptError(f"line {line}: module {name!r} is not one of those for scripts")
    names = set(_defined(tree.body))
    for function in functions:
        if function not in names and "*" not in names:
            raise ScriptError(f"the script has no function {function!r}")


def _defined(body: Iterable[ast.stmt]) -> Iterable[str]:
    """Yield the names that the main part of a script gives to something."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While):
            for part in ("body", "orelse", "finalbody"):
                yield from _defined(getattr(node, part, ()))
        else:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                    yield inner.id
