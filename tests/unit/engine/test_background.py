"""Work beside the main loop."""

import threading

import pytest

from espha.engine.background import Background


def test_where_there_is_no_room_for_a_thread_whoever_waits_does_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fence that nobody has made must not count as made."""

    def crowded(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    done: list[str] = []
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", crowded)
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
