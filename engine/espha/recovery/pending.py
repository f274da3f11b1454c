"""A checkpoint that a forked process of the worker takes, as the engine sees it."""

import os
import threading
from collections.abc import Callable

from pydantic import ValidationError

from espha.protocol.checkpoint import CheckpointOrder, CheckpointReport

_REPORT_BYTES = 1 << 16


class Pending:
    """Waits for a report, in a thread of its own.

    The report comes through a pipe, which the worker opens by its path under `/proc`. It ends when
    the forked process ends, in whatever way. So nothing is left behind when either one is killed.
    """

    def __init__(self, path: str = "", offset: int = 0) -> None:
        """Open the pipe; `order` goes to the worker, then `wait` or `drop` follows.

        Args:
            path: file to write the state to; empty: only its digest is wanted.
            offset: where in the file it begins.

        Raises:
            OSError: there is no free file descriptor.
        """
        self._read, self._write = os.pipe()
        report = f"/proc/{os.getpid()}/fd/{self._write}"
        self.order = CheckpointOrder(report=report, path=path, offset=offset)

    def wait(self, done: Callable[[CheckpointReport], None]) -> None:
        """Have `done` called with the report, in another thread; the worker has begun.

        Where there is no room for a thread, it is called at once, with an error.
        """
        os.close(self._write)
        waiting = threading.Thread(target=self._wait, args=(done,), name="snapshot", daemon=True)
        try:
            waiting.start()
        except RuntimeError as error:
            os.close(self._read)
            done(CheckpointReport(error=f"nobody can wait for it: {error}"))

    def drop(self) -> None:
        """Wait no more: the worker has not begun."""
        os.close(self._write)
        os.close(self._read)

    def _wait(self, done: Callable[[CheckpointReport], None]) -> None:
        with os.fdopen(self._read, "rb") as pipe:
            line = pipe.read(_REPORT_BYTES)
        try:
            report = CheckpointReport.model_validate_json(line)
        except ValidationError:
            report = CheckpointReport(error="the process that took it has ended without a word")
        done(report)
