"""The processes of a child: whether one is frozen, whether they compute, and their end.

An engine is more than one process: a fork server, its JVM, and below that Spark's workers and what
scripts run in. Each can be stopped, or hang, by itself.
"""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_NANO = 1e-9
_JVM = "java"
_LOOK_AGAIN = 30
"""Ticks after which the descendants are looked for again."""


class Times(NamedTuple):
    """Processor time, in seconds.

    One that waits for the processor is not idle, however little of it it gets.
    """

    ran_s: float
    waited_s: float
    """How long it could have run, but for others."""


class Family:
    """A process and all its descendants, as of lately."""

    def __init__(self, root: int | None) -> None:
        """Look below `root`; None: there is nobody."""
        self._root = root
        self._members: list[int] = []
        self._looks = 0
        self._stopped: set[int] = set()

    def tick(self) -> None:
        """Look who is stopped; call it in steady steps."""
        if self._looks % _LOOK_AGAIN == 0:
            self._members = self.members()
        self._looks += 1
        self._stopped = {pid for pid in self._members if _state(pid) in "Tt"}

    @property
    def stopped(self) -> set[int]:
        """Who was stopped (by SIGSTOP, or a debugger) at the last look."""
        return self._stopped

    def members(self) -> list[int]:
        """Return all of them, parents first."""
        found = [self._root] if self._root else []
        for pid in found:
            found += _children(pid)
        return found

    def times(self) -> dict[int, Times]:
        """Return for each thread how long it has run, and waited to run."""
        return {
            int(task.name): Times(int(fields[0]) * _NANO, int(fields[1]) * _NANO)
            for pid in self.members()
            for task in _tasks(pid)
            if len(fields := _read(task / "schedstat").split()) > 1
        }

    def kill_below(self) -> bool:
        """Kill all descendants, frozen or not, but for a JVM that is not: it can serve again.

        Returns:
            Whether that can be: nothing that is still there was frozen.
        """
        members = self.members()
        spared = {pid for pid in members if _name(pid) == _JVM and _state(pid) not in "Tt"}
        for pid in members[1:]:
            if pid not in spared:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        frozen = {pid for pid in self._stopped if _name(pid) == _JVM or pid == self._root}
        return not frozen


def between(before: dict[int, Times], after: dict[int, Times]) -> Times:
    """Return the sums of what has come between two answers of `Family.times`."""
    none = Times(0.0, 0.0)
    return Times(
        sum(now.ran_s - before.get(task, none).ran_s for task, now in after.items()),
        sum(now.waited_s - before.get(task, none).waited_s for task, now in after.items()),
    )


def _children(pid: int) -> list[int]:
    return [int(child) for task in _tasks(pid) for child in _read(task / "children").split()]


def _tasks(pid: int) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        yield from (_PROC / str(pid) / "task").iterdir()


def _name(pid: int) -> str:
    return _read(_PROC / str(pid) / "comm").strip()


def _state(pid: int) -> str:
    """Return the state's letter; "X" for one that is gone."""
    return _read(_PROC / str(pid) / "stat").rpartition(")")[2].strip()[:1] or "X"


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
