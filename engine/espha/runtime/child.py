"""A supervised child process: started, told its role, listened to, and waited for."""

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from typing import Any

from espha.runtime.control import STATUS_FD_VARIABLE

Status = dict[str, Any]


class Child:
    """Runs `command`; calls `on_status` for each status line and `on_exit` once at its end.

    Both are called from threads of this object. Start it from the main thread: the child asks
    the kernel to be killed when the thread that started it ends.
    """

    def __init__(
        self,
        command: list[str],
        on_status: Callable[[Status], None],
        on_exit: Callable[[int], None],
    ) -> None:
        self._telling = threading.Lock()
        read_end, write_end = os.pipe()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            pass_fds=(write_end,),
            env={**os.environ, STATUS_FD_VARIABLE: str(write_end)},
            start_new_session=True,
        )
        os.close(write_end)
        self.pid = self._process.pid
        threading.Thread(target=self._listen, args=(read_end, on_status), daemon=True).start()
        threading.Thread(target=self._wait, args=(on_exit,), daemon=True).start()

    def make_active(self) -> None:
        """Tell the child that it is elected; a child that has just died is no error."""
        self._tell({"role": "active"})

    def make_standby(self) -> None:
        """Tell the child to hand over: to finish what it does, and to report `standby` then."""
        self._tell({"role": "standby"})

    def ask_snapshot(self) -> None:
        """Ask the child to write its state now; a child that has just died is no error."""
        self._tell({"snapshot": True})

    def _tell(self, what: dict[str, Any]) -> None:
        stdin = self._process.stdin
        if stdin is not None:
            with contextlib.suppress(BrokenPipeError, ValueError), self._telling:
                stdin.write(json.dumps(what).encode() + b"\n")
                stdin.flush()

    def kill(self) -> None:
        """End the child and its process group at once; safe at any moment by the protocol."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def _listen(self, read_end: int, on_status: Callable[[Status], None]) -> None:
        with os.fdopen(read_end, "rb") as lines:
            for line in lines:
                with contextlib.suppress(ValueError):  # cut off by a kill
                    on_status(json.loads(line))

    def _wait(self, on_exit: Callable[[int], None]) -> None:
        on_exit(self._process.wait())
        self.kill()  # what the child left behind: a JVM, Spark's Python workers


def reap_orphans(child: int) -> None:
    """Collect ended processes that a container hands to process 1; never the child itself."""
    with contextlib.suppress(ChildProcessError):
        while True:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None or ended.si_pid in (0, child):
                return
            os.waitpid(ended.si_pid, os.WNOHANG)
