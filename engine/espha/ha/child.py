"""A supervised child process: started, told its role, listened to, and waited for."""

import contextlib
import json
import os
import threading
from collections.abc import Callable
from typing import Any

from espha.ha.spawner import Spawner

Status = dict[str, Any]


class Child:
    """Has `spawner` start a child; calls `on_status` for each status line, `on_exit` at its end.

    Both are called from threads of this object. Make it in the main thread: what it starts asks
    the kernel to be killed when the thread that started it ends.
    """

    def __init__(
        self,
        spawner: Spawner,
        on_status: Callable[[Status], None],
        on_exit: Callable[[int], None],
    ) -> None:
        self._telling = threading.Lock()
        stdin, told = os.pipe()
        status, reported = os.pipe()
        self._stdin = os.fdopen(told, "wb", buffering=0)
        self._process = spawner.start(stdin, reported)
        os.close(stdin)
        os.close(reported)
        threading.Thread(target=self._listen, args=(status, on_status), daemon=True).start()
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
        with contextlib.suppress(BrokenPipeError, ValueError), self._telling:
            self._stdin.write(json.dumps(what).encode() + b"\n")

    def kill(self) -> None:
        """End the child at once; safe at any moment by the protocol."""
        self._process.kill()

    def _listen(self, read_end: int, on_status: Callable[[Status], None]) -> None:
        with os.fdopen(read_end, "rb") as lines:
            for line in lines:
                with contextlib.suppress(ValueError):  # cut off by a kill
                    on_status(json.loads(line))

    def _wait(self, on_exit: Callable[[int], None]) -> None:
        on_exit(self._process.wait())
        self.kill()  # what the child left behind
        with self._telling:
            self._stdin.close()


def reap_orphans(child: int | None) -> None:
    """Collect ended processes that a container hands to process 1; never the child itself."""
    with contextlib.suppress(ChildProcessError):
        while True:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None or ended.si_pid in (0, child):
                return
            os.waitpid(ended.si_pid, os.WNOHANG)
