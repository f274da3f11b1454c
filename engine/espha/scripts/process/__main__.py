"""The process: confine it, then serve."""

import datetime
import importlib
import json
import resource
import signal
import sys
from base64 import b64decode
from collections.abc import Callable
from typing import Any, Final

from espha.scripts.process import imports
from espha.scripts.process.common import KEEP_SECONDS, SECONDS, Refused
from espha.scripts.process.loaded import Loaded
from espha.scripts.process.values import reason

MEMORY: Final = 512 * 1024 * 1024
"""Bytes of address space, and as many again for packages."""

_LATER: Final = (
    "_strptime", "heapq", "weakref", "locale", "linecache", "tokenize", "numbers", "copy",
    "encodings.ascii", "encodings.cp1252", "encodings.latin_1", "encodings.utf_16",
    "encodings.utf_8_sig",
)  # fmt: skip
"""Modules that Python's library imports when they are needed, which is refused later."""

_REPORTED: Final = frozenset(
    {"compile", "exec", "sys._getframe", "object.__getattr__", "object.__setattr__",
     "object.__delattr__", "builtins.id"}
)  # fmt: skip
"""Reported operations that a script may do; namedtuple and dataclasses need them."""


def _audit(event: str, _: Any) -> None:
    if event not in _REPORTED:
        raise Refused(f"a script cannot do this: {event}")


def _confine(packages: int) -> None:
    datetime.datetime.strptime("2000", "%Y")
    memory = MEMORY * (1 + packages)
    for limit, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 3),
    ):
        resource.setrlimit(limit, (value, value))
    sys.addaudithook(_audit)


def _given(pairs: dict[str, Any]) -> Any:
    return b64decode(pairs["b"]) if pairs.keys() == {"b"} else pairs


class _Server:
    """Answers messages."""

    def __init__(self, modules: list[str]) -> None:
        self._modules = modules
        self._loaded: Loaded | None = None
        self._bytes = json.JSONDecoder(object_hook=_given).decode

    def answer(self, line: str) -> str:
        """Return the answer to a line."""
        name, rest = (self._bytes if line.startswith('["calls"') else json.loads)(line)
        _arm(KEEP_SECONDS.get(name, SECONDS))
        try:
            answer = self._obey(name, rest)
            text = f"[true,{answer},{self._log()}]"
        except BaseException as error:
            text = json.dumps([False, reason(error), []])
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        return text

    def _obey(self, name: str, rest: Any) -> str:
        if name == "load":
            setup, moment = rest
            self._loaded = Loaded(setup, moment, self._modules)
            return "null"
        if self._loaded is None:
            raise Refused("there is no script")
        if name == "calls":
            return self._loaded.calls(rest, _arm)
        if name == "state":
            return json.dumps(self._loaded.state())
        if name == "restore":
            self._loaded.restore(rest)
        else:
            self._loaded.begin()
        return "null"

    def _log(self) -> str:
        if self._loaded is None or not self._loaded.world.lines:
            return "[]"
        lines, self._loaded.world.lines = self._loaded.world.lines, []
        return json.dumps(lines)


def _arm(seconds: float = SECONDS) -> None:
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)


def _serve(read: Callable[[], str], write: Callable[[str], object], modules: list[str]) -> None:
    server = _Server(modules)
    while line := read():
        write(server.answer(line) + "\n")


def main(modules: list[str]) -> None:
    """Serve until standard input ends.

    Args:
        modules: what the script imports, as far as there is a module of that name.
    """
    source, target = sys.stdin, sys.stdout
    sys.stdin = sys.stdout = None
    tops = sorted({name.partition(".")[0] for name in modules} & set(imports.PACKAGES))
    parts = [part for top in tops for part in imports.WITH_PACKAGE.get(top, ())]
    for name in (*_LATER, *modules, *tops, *parts):
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    _confine(len(tops))

    def write(text: str) -> None:
        target.write(text)
        target.flush()

    _serve(source.readline, write, modules)


if __name__ == "__main__":
    main(sys.argv[1:])
