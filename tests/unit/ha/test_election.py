"""A stay in the election on a machine without room."""

import itertools
import threading

import pytest

from espha.ha.election import Membership
from support.processes import descriptors
from support.servers import wait_until


@pytest.mark.parametrize("room", range(4))
def test_without_room_for_its_threads_a_stay_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """The next life tries again, on a machine that has even less room otherwise."""
    before, start, begun = set(threading.enumerate()), threading.Thread.start, itertools.count()
    held = descriptors()

    def crowded(thread: threading.Thread) -> None:
        if next(begun) >= room:
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", crowded)
        with pytest.raises(RuntimeError, match="new thread"):
            Membership("127.0.0.1:1", "/e", "a", 1000, lambda: None)
    wait_until(lambda: set(threading.enumerate()) <= before, 60, "no thread is left")
    wait_until(lambda: descriptors() <= held, 60, "no descriptor is left")
