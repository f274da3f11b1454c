"""Hearing of the end of another process at once, whatever the main loop waits for."""

import os
import select
import threading
from collections.abc import Callable


def when_closed(descriptor: int, then: Callable[[], None]) -> None:
    """Have `then` called, in a thread of its own, when the other end of a connection is closed."""
    _when(descriptor, select.POLLRDHUP, then)


def when_ended(pid: int, then: Callable[[], None]) -> None:
    """Have `then` called, in a thread of its own, when a process has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        then()
        return
    _when(descriptor, select.POLLIN, then)


def _when(descriptor: int, event: int, then: Callable[[], None]) -> None:
    poll = select.poll()
    poll.register(descriptor, event)

    def wait() -> None:
        poll.poll()
        then()

    threading.Thread(target=wait, name="end", daemon=True).start()
