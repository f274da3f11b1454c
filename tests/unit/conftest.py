"""What unit tests share."""

import gc
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest


def _open() -> set[int]:
    return {int(one.name) for one in Path("/proc/self/fd").iterdir()}


@pytest.fixture
def dead_hold_nothing() -> Iterator[None]:
    """Close what the test has left open, as the kernel does when a process is killed.

    For tests that play processes which die: their descriptors are those of this process.
    """
    before = _open()
    yield
    gc.collect()  # what closes by itself does so now, and not when the number is another file's
    for descriptor in _open() - before:
        with suppress(OSError):
            os.close(descriptor)
