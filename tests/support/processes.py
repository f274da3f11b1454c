"""What this process holds, and what it has no room for."""

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def descriptors() -> int:
    """Return how many file descriptors are open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def crowded(*_: object) -> None:
    """Be a machine without room for one more thread."""
    raise RuntimeError("can't start new thread")


@contextmanager
def room_for(threads: int) -> Iterator[None]:
    """Be a machine with room for so many more threads."""
    start, begun = threading.Thread.start, itertools.count()

    def limited(thread: threading.Thread) -> None:
        if next(begun) >= threads:
            crowded()
        start(thread)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(threading.Thread, "start", limited)
        yield
