"""The other end of a script's process: it is started and asked here."""

import base64
import json
import os
import selectors
import signal
import subprocess
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from espha.scripts import process
from espha.scripts.common import ScriptError
from espha.scripts.process import imports
from espha.scripts.process.common import KEEP_SECONDS
from espha.scripts.process.common import SECONDS as WORK_SECONDS

SECONDS: Final = 10.0
"""How long to wait for an answer; the process stops itself earlier, after two seconds of work."""

BEGIN_SECONDS: Final = 120.0
"""The same while it starts, and imports what the script needs, and where it writes or puts back all
variables: others may have the processor."""

MAX_ANSWER: Final = 64 * 1024 * 1024
"""Bytes of an answer."""

_ROOT: Final = str(Path(__file__).resolve().parents[2])


class GoneError(ScriptError):
    """The process does not answer, or has ended, for no reason that lies in the script.

    Another one may well answer.
    """


class SilentError(GoneError):
    """It does not answer in time."""


class Host:
    """A running process."""

    def __init__(self, modules: Sequence[str]) -> None:
        """Start it, with the modules that the script imports."""
        packages = any(name.partition(".")[0] in imports.PACKAGES for name in modules)
        path = [_ROOT, *(each for each in sys.path if each.endswith("site-packages") and packages)]
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-s",
                "-S",
                "-B",
                "-X",
                "utf8",
                "-m",
                process.__name__,
                *modules,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={
                # Hashes of texts decide the order of Python's own sets, so their seed is fixed.
                "PYTHONHASHSEED": "0",
                "TZ": "UTC",
                "LC_ALL": "C",
                "PYTHONPATH": os.pathsep.join(path),
                "OPENBLAS_NUM_THREADS": "1",
            },
            cwd="/",
            start_new_session=True,
        )
        assert self._process.stdin is not None  # noqa: S101 - it was asked for
        assert self._process.stdout is not None  # noqa: S101 - it was asked for
        self._in = self._process.stdin
        self._out = self._process.stdout.fileno()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._out, selectors.EVENT_READ)
        self._encode = json.JSONEncoder(default=_given).encode
        self._decode = json.JSONDecoder(object_hook=_taken).decode
        self._owner, self._work_seconds = os.getpid(), WORK_SECONDS
        self.kill = weakref.finalize(self, _end, self._process, self._selector)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def ask(self, what: str, message: Any, seconds: float) -> tuple[bool, Any, list[Any]]:
        """Ask for something and wait so long for the answer, and what the script logged.

        Raises:
            ScriptError: there is none.
        """
        if os.getpid() != self._owner:
            raise RuntimeError("only the process that has started a script's process can ask it")
        self._work_seconds = KEEP_SECONDS.get(what, WORK_SECONDS)
        try:
            self._in.write(self._encode([what, message]).encode() + b"\n")
            self._in.flush()
        except OSError:
            raise self._ending() from None
        line = self._line(seconds)
        decode = self._decode if what == "calls" else json.loads
        try:
            good, answer, log = decode(line.decode())
        except (ValueError, KeyError, TypeError, RecursionError):
            raise ScriptError("the script's process gave no answer that can be read") from None
        return bool(good), answer, log

    def _line(self, seconds: float) -> bytes:
        parts: list[bytes] = []
        size = 0
        while not parts or not parts[-1].endswith(b"\n"):
            if not self._selector.select(seconds):
                raise SilentError(f"the script gave no answer within {seconds:g} seconds")
            part = os.read(self._out, 1 << 20)
            size += len(part)
            if not part:
                raise self._ending()
            if size > MAX_ANSWER:
                raise ScriptError(f"the script's answer has more than {MAX_ANSWER} bytes")
            parts.append(part)
        return b"".join(parts)

    def _ending(self) -> ScriptError:
        try:
            code = self._process.wait(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return ScriptError("the script's process closed its output")
        if code == -signal.SIGVTALRM:
            return ScriptError(f"the script worked for more than {self._work_seconds:g} seconds")
        return GoneError(f"the script's process ended with code {code}")


def _end(process: "subprocess.Popen[bytes]", selector: selectors.BaseSelector) -> None:
    selector.close()
    process.kill()
    process.communicate()


def _given(value: Any) -> Any:
    """Write what JSON does not know: bytes."""
    return {"b": base64.b64encode(value).decode()}


def _taken(pairs: dict[str, Any]) -> Any:
    """Read what is no JSON value: bytes, and the reason why a call failed."""
    return ScriptError(pairs["e"]) if "e" in pairs else base64.b64decode(pairs["b"])
