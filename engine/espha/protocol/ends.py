"""Hearing of the end of another process at once, whatever the main loop waits for."""

import contextlib
import os
import select
import socket
import struct
import threading
from collections.abc import Callable

_PIDFD_THREAD = os.O_EXCL
"""Since Linux 6.9: tell of the end of the process's first thread.

A process that is killed is gone when its memory is cleared, and its connections are closed then,
too. Its first thread may have ended before. On two full cores that has shown no gain for a JVM.
"""
_CREDENTIALS = struct.Struct("3i")


def wait_for_end(pid: int) -> None:
    """Wait until a process has ended, or begins to; whoever is its parent.

    Raises:
        ProcessLookupError: there is none.
    """
    descriptor = _opened(pid)
    try:
        _wait(descriptor, select.POLLIN)
    finally:
        os.close(descriptor)


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
        _wait(connection.fileno(), select.POLLRDHUP)
        then()

    threading.Thread(target=wait, name="end", daemon=True).start()
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    when_ended(_CREDENTIALS.unpack(told)[0], then)


def _opened(pid: int) -> int:
    try:
        return os.pidfd_open(pid, _PIDFD_THREAD)
    except ProcessLookupError:
        raise
    except OSError:  # an older kernel does not know the flag
        return os.pidfd_open(pid)


def _wait(descriptor: int, event: int) -> None:
    poll = select.poll()
    poll.register(descriptor, event)
    poll.poll()
