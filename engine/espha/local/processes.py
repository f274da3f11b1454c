"""Processes by identity: a signal reaches the one that is meant, or nobody.

A process id is used again sooner or later, after a reboot at once. So a process is named by its id,
the moment of its start and the boot of the machine, and is signalled through a descriptor (pidfd)
that was opened before these were compared.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict

_PROC = Path("/proc")
_LOOK_S = 0.05
MARK = "ESPHA_LOCAL_ID"
"""The variable by which everything that a deployment has started is known."""


class Identity(BaseModel):
    """One process of one boot of the machine.

    Attributes:
        pid: its id.
        started: clock ticks from boot to its start.
        boot: the kernel's id of the boot.
    """

    model_config = ConfigDict(frozen=True)

    pid: int
    started: int
    boot: str

    @property
    def alive(self) -> bool:
        """Whether it runs; one that has ended and waits for its parent does not."""
        return self.boot == boot_id() and _start_of(self.pid) == self.started

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal; False: it has ended, and nobody was signalled."""
        return _signal(self.pid, number, lambda: self.alive)


def boot_id() -> str:
    """Return what tells this boot of the machine from others."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def identify(pid: int) -> Identity | None:
    """Return the identity of a process that runs; None when it has ended."""
    started = _start_of(pid)
    return None if started is None else Identity(pid=pid, started=started, boot=boot_id())


def family(pid: int) -> list[int]:
    """Return a process and all its descendants, parents first."""
    found = [pid]
    for place in found:
        found += children(place)
    return found


def children(pid: int) -> list[int]:
    """Return the process ids of a process's children."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in (_PROC / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError):
                found += [int(child) for child in (task / "children").read_text().split()]
    return found


def name_of(pid: int) -> str:
    """Return what `ps` shows for a process; nothing when it has ended."""
    try:
        return (_PROC / str(pid) / "comm").read_text().strip()
    except OSError:
        return ""


def sweep(mark: str, grace_s: float) -> int:
    """End everything that carries a deployment's mark; return how many processes that were.

    Args:
        mark: the value of `MARK` in their environment.
        grace_s: how long they may take to end by themselves before they are killed.
    """
    met: set[int] = set()
    deadline = time.monotonic() + grace_s
    while found := list(_marked(mark)):
        number = signal.SIGTERM if time.monotonic() < deadline else signal.SIGKILL
        for pid in found:
            if number == signal.SIGKILL or pid not in met:
                _signal(pid, number, lambda pid=pid: _has_mark(pid, mark))  # type: ignore[misc]
            met.add(pid)
        time.sleep(_LOOK_S)
    return len(met)


def _marked(mark: str) -> Iterator[int]:
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            pid = int(entry.name)
            if _has_mark(pid, mark) and _start_of(pid) is not None:
                yield pid


def _has_mark(pid: int, mark: str) -> bool:
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False
    return f"{MARK}={mark}".encode() in environment.split(b"\0")


def _signal(pid: int, number: signal.Signals, meant: Callable[[], bool]) -> bool:
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not meant():
            return False
        signal.pidfd_send_signal(descriptor, number)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _start_of(pid: int) -> int | None:
    """Return a process's start in clock ticks since boot; None for one that has ended."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in "ZX" else int(fields[18])
