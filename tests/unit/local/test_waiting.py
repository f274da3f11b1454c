"""A wait ends when nothing has moved for long."""

import itertools

import pytest

from espha.local import waiting
from espha.local.waiting import wait_until


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Time that passes by sleeping alone, and how much of it somebody waited for a processor."""
    now = [0.0, 0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("time.sleep", sleep)
    monkeypatch.setattr(waiting, "_stalled", lambda: now[0] * now[1])
    return now


def test_it_gives_up_when_nothing_moves(clock: list[float]) -> None:
    with pytest.raises(AssertionError, match="nothing has moved for 10 s: tea"):
        wait_until(lambda: False, 10, "tea", each_s=0.5)
    assert 10 <= clock[0] <= 11


def test_it_goes_on_while_something_moves(clock: list[float]) -> None:
    progress = itertools.count()
    wait_until(lambda: clock[0] > 100, 10, "tea", each_s=0.5, moved=lambda: next(progress))


def test_time_without_a_processor_hardly_counts(clock: list[float]) -> None:
    clock[1] = 0.8
    with pytest.raises(AssertionError):
        wait_until(lambda: False, 10, "tea", each_s=0.5)
    assert 50 <= clock[0] <= 52


def test_a_machine_that_is_busy_for_ever_does_not_wait_for_ever(clock: list[float]) -> None:
    clock[1] = 1.0
    with pytest.raises(AssertionError):
        wait_until(lambda: False, 10, "tea", each_s=0.5)
    assert 100 <= clock[0] <= 102
