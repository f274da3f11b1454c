"""Work beside the main loop."""

import threading

import pytest

from espha.engine.background import Background
from support.processes import room_for


def test_where_there_is_no_room_for_a_thread_whoever_waits_does_it() -> None:
    """A fence that nobody has made must not count as made."""
    done: list[str] = []
    with room_for(0):
        fence = Background(lambda: done.append(threading.current_thread().name), "fence")
    assert done == []
    for _ in range(2):
        fence.wait()
        assert done == [threading.current_thread().name]


def test_what_it_raises_is_raised_to_whoever_waits() -> None:
    def refused() -> None:
        raise ValueError("another one leads")

    with pytest.raises(ValueError, match="another one leads"):
        Background(refused, "fence").wait()
