"""How long a silence may last."""

import pytest

from espha.ha.failure_detector import Patience

TICK_S = 0.1


def ticks_until_over(patience: Patience) -> int:
    for count in range(1, 1000):
        patience.tick()
        if patience.over:
            return count
    raise AssertionError("it waits for ever")


def breathe(patience: Patience, ticks: int, times: int) -> None:
    """Hear a sign of life after so many ticks, again and again."""
    for _ in range(times):
        for _ in range(ticks):
            patience.tick()
        patience.heard()


def test_a_regular_sender_gets_what_was_asked_for() -> None:
    patience = Patience(0.5, TICK_S)
    breathe(patience, 1, 100)
    assert ticks_until_over(patience) == 5


def test_an_irregular_sender_gets_several_times_its_longest_pause() -> None:
    patience = Patience(0.5, TICK_S)
    breathe(patience, 4, 1)
    assert ticks_until_over(patience) == 16


def test_old_pauses_are_forgotten() -> None:
    patience = Patience(0.5, TICK_S)
    breathe(patience, 4, 1)
    breathe(patience, 1, 600)
    assert ticks_until_over(patience) == 5


def test_patience_has_an_end() -> None:
    patience = Patience(0.5, TICK_S)
    breathe(patience, 90, 1)
    assert patience.limit_s == pytest.approx(10)


def test_a_sign_of_life_ends_the_silence() -> None:
    patience = Patience(0.5, TICK_S)
    ticks_until_over(patience)
    patience.heard()
    assert not patience.over
