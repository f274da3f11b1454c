"""How long a silence may last."""

import pytest

from espha.ha.failure_detector import FailureDetector

TICK_S = 0.1


def ticks_until_over(detector: FailureDetector) -> int:
    for count in range(1, 1000):
        detector.tick()
        if detector.suspected:
            return count
    raise AssertionError("it waits for ever")


def breathe(detector: FailureDetector, ticks: int, times: int) -> None:
    """Hear a sign of life after so many ticks, again and again."""
    for _ in range(times):
        for _ in range(ticks):
            detector.tick()
        detector.heartbeat()


def test_a_regular_sender_gets_what_was_asked_for() -> None:
    detector = FailureDetector(0.5, TICK_S)
    breathe(detector, 1, 100)
    assert ticks_until_over(detector) == 5


def test_an_irregular_sender_gets_several_times_its_longest_pause() -> None:
    detector = FailureDetector(0.5, TICK_S)
    breathe(detector, 4, 1)
    assert ticks_until_over(detector) == 16


def test_old_pauses_are_forgotten() -> None:
    detector = FailureDetector(0.5, TICK_S)
    breathe(detector, 4, 1)
    breathe(detector, 1, 600)
    assert ticks_until_over(detector) == 5


def test_patience_has_an_end() -> None:
    detector = FailureDetector(0.5, TICK_S)
    breathe(detector, 90, 1)
    assert detector.limit_s == pytest.approx(10)


def test_nobody_waits_for_less_than_was_asked_for() -> None:
    """The operator lets sessions, and with them this, last for up to a minute."""
    detector = FailureDetector(30, TICK_S)
    assert ticks_until_over(detector) == 300


def test_a_sign_of_life_ends_the_silence() -> None:
    detector = FailureDetector(0.5, TICK_S)
    ticks_until_over(detector)
    detector.heartbeat()
    assert not detector.suspected
