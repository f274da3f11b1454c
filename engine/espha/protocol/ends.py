"""Hearing of the end of another process at once, whatever the main loop waits for."""

import contextlib
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

_PIDFD_THREAD = os.O_EXCL
"""Since Linux 6.9: tell of the end of a thread."""
_THREADS = 3
"""How many threads are watched. The last one to end clears the memory first; so two would do."""
_LOOK_AGAIN_MS = 1000
"""For threads, where there are fewer: a process may just have begun."""
_LOOK_S = 0.1
_EXITING = 0x4
_KILLED = 1 << 8
_PROC = Path("/proc")
_CREDENTIALS = struct.Struct("3i")


def wait_for_end(pid: int) -> None:
    """Wait until a process has ended, or begins to; whoever is its parent.

    A process that is killed is gone, and its connections are closed, when the kernel has cleared
    its memory: some 20 ms for a JVM, and more for a large state. All of its threads but one have
    ended before. Where the kernel tells of threads, their end is heard of.

    Where this process has no descriptor left, it looks again and again.

    Raises:
        ProcessLookupError: there is none.
    """
    with contextlib.ExitStack() as watched:
        whole = _closing(_opened(pid), watched)
        while True:
            with contextlib.ExitStack() as until:
                threads = _threads(pid, until)
                limit_ms = None if len(threads) == _THREADS else _LOOK_AGAIN_MS
                ended = _wait(select.POLLIN, whole, *threads, limit_ms=limit_ms)
            if whole in ended or (ended and _is_ending(pid)):
                return


def be_heard() -> None:
    """Have threads by whose end others hear at once when this process is killed.

    One of two is not the last one to end.
    """
    for _ in range(2):
        threading.Thread(target=threading.Event().wait, name="be-heard", daemon=True).start()


def when_ended(pid: int, then: Callable[[], None]) -> None:
    """Have `then` called, in a thread of its own, when a process ends, or has ended."""

    def wait() -> None:
        with contextlib.suppress(ProcessLookupError):
            wait_for_end(pid)
        then()

    threading.Thread(target=wait, name="end", daemon=True).start()


def when_closed(connection: socket.socket, then: Callable[[], None]) -> None:
    """Have `then` called when the process at the other end of a Unix socket ends, or closes it.

    It is called in threads of their own, and may be called twice.
    """

    def wait() -> None:
        _wait(select.POLLRDHUP, connection.fileno())
        then()

    threading.Thread(target=wait, name="end", daemon=True).start()
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    when_ended(_CREDENTIALS.unpack(told)[0], then)


def _opened(pid: int) -> int:
    while True:
        try:
            return os.pidfd_open(pid)
        except ProcessLookupError:
            raise
        except OSError:
            os.kill(pid, 0)
            time.sleep(_LOOK_S)


def _threads(pid: int, until: contextlib.ExitStack) -> list[int]:
    """Return descriptors of the oldest threads behind the first one, which are open `until` then.

    The first one's end is told together with the whole process's (since Linux 6.15).
    """
    descriptors = []
    with contextlib.suppress(OSError):  # it has ended, or the kernel does not know the flag
        for task in islice((_PROC / str(pid) / "task").iterdir(), 1, 1 + _THREADS):
            descriptors.append(_closing(os.pidfd_open(int(task.name), _PIDFD_THREAD), until))
    return descriptors


def _closing(descriptor: int, until: contextlib.ExitStack) -> int:
    until.callback(os.close, descriptor)
    return descriptor


def _is_ending(pid: int) -> bool:
    """Tell whether a process is about to end: a thread may end without it."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
        status = (_PROC / str(pid) / "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    except OSError:  # no descriptor is left: the end of the whole process tells
        return False
    state, *fields = stat.rpartition(")")[2].split()
    pending = next(line for line in status.splitlines() if line.startswith("SigPnd:"))
    killed = int(pending.split()[1], 16) & _KILLED
    return state in "ZX" or bool(int(fields[5]) & _EXITING) or bool(killed)


def _wait(event: int, *descriptors: int, limit_ms: int | None = None) -> list[int]:
    """Wait for an event; return the descriptors that have it, none where it takes too long."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, event)
    return [descriptor for descriptor, _ in poll.poll(limit_ms)]
