"""Publishers in Python, each in a process of its own; `child` is what runs there."""

import json
import os
import selectors
import subprocess
import sys
import time
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from espha.scripts.publishers import child
from espha.scripts.publishers.common import MAX_EVENTS, SECONDS, Published, PublisherError

_MAX_ANSWER: Final = 64 * 1024 * 1024


class PythonPublisher:
    """One loaded script."""

    def __init__(
        self,
        code: str,
        function: str,
        *,
        init: str,
        home: Path,
        variables: Mapping[str, str],
        seconds: float = SECONDS,
    ) -> None:
        """Start the process and load the script there.

        Args:
            code: the text.
            function: name of the function that makes events.
            init: name of the function that is called before; empty: none.
            home: the folder whose files the script may read.
            variables: its environment.
            seconds: how long to wait for an answer.

        Raises:
            PublisherError: the script cannot be used.
        """
        self._seconds = seconds
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-s", "-B", "-X", "utf8", child.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"TZ": "UTC", "LC_ALL": "C", "OPENBLAS_NUM_THREADS": "1"},
            start_new_session=True,
        )
        assert self._process.stdout is not None  # noqa: S101 - it was asked for
        self._out = self._process.stdout.fileno()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._out, selectors.EVENT_READ)
        self.close = weakref.finalize(self, _end, self._process, self._selector)
        setup = {"code": code, "publish": function, "init": init, "home": str(home)}
        self._ask({**setup, "variables": dict(variables)})

    def publish(self, now: int) -> Published:
        """Call the function; see `Publisher`."""
        answer = self._ask({"now": now})
        if len(answer["events"]) > MAX_EVENTS:
            raise PublisherError(f"more than {MAX_EVENTS} events in one call")
        return Published(answer["events"], answer["done"])

    def _ask(self, message: Mapping[str, Any]) -> Any:
        assert self._process.stdin is not None  # noqa: S101 - it was asked for
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
            good, answer = json.loads(self._line())
        except (OSError, ValueError):
            raise PublisherError("the script's process has ended") from None
        if not good:
            raise PublisherError(answer)
        return answer

    def _line(self) -> bytes:
        parts: list[bytes] = []
        size, end = 0, time.monotonic() + self._seconds
        while not parts or not parts[-1].endswith(b"\n"):
            if not self._selector.select(max(0.0, end - time.monotonic())):
                raise PublisherError(f"the script gave no answer within {self._seconds:g} seconds")
            part = os.read(self._out, 1 << 20)
            size += len(part)
            if not part or size > _MAX_ANSWER:
                raise PublisherError("the script's process has ended, or said too much")
            parts.append(part)
        return b"".join(parts)


def _end(process: "subprocess.Popen[bytes]", selector: selectors.BaseSelector) -> None:
    selector.close()
    process.kill()
    process.communicate()
