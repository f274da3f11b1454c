"""When a standby is in sync, by a clock of the test's own."""

import pytest

from espha.engine.lag import FAR, LATE_S, Lag


class World:
    """A standby that looks at the log ten times a second."""

    def __init__(self) -> None:
        self.now = 100.0
        self.lag = Lag(lambda: self.now)

    def look(self, waiting: int, seconds: float = 0.1) -> bool:
        """Let time pass; look all the while; return whether it is in sync at the end."""
        until, answer = self.now + seconds, False
        while self.now < until:
            self.now += 0.1
            answer = self.lag.look(waiting)
        return answer


def test_who_has_not_been_at_the_end_is_not_in_sync() -> None:
    world = World()
    assert not world.look(3)
    assert world.look(0)


def test_who_is_a_little_late_stays_in_sync() -> None:
    world = World()
    world.look(0)
    assert world.look(50, LATE_S - 0.5)
    assert world.lag.records == 50
    assert world.lag.ms == pytest.approx((LATE_S - 0.5) * 1000, abs=150)
    assert world.look(1)
    assert world.lag.ms == 0


def test_who_is_late_for_long_is_not_in_sync_until_it_has_come_to_the_end() -> None:
    world = World()
    world.look(0)
    assert not world.look(50, LATE_S + 0.5)
    assert not world.look(5)
    assert world.look(2)


def test_who_is_far_behind_is_not_in_sync_at_once() -> None:
    world = World()
    world.look(0)
    assert not world.look(FAR + 1)


def test_who_was_frozen_gets_the_time_to_catch_up() -> None:
    """It is suspected for being silent, not for this."""
    world = World()
    world.look(0)
    world.now += 20
    assert world.look(FAR)
    assert not world.look(FAR, LATE_S + 0.5)


def test_who_computes_for_long_is_not_taken_for_frozen() -> None:
    """A standby that takes longer for each batch than the active engine falls behind for good."""
    world = World()
    world.look(0)
    answers = []
    for waiting in range(3, 10):
        world.now += 2.0
        world.lag.worked(1.9)
        answers.append(world.lag.look(waiting))
    assert answers == [True, *[False] * 6]
    assert world.lag.ms == pytest.approx(14_000, abs=150)


def test_who_does_not_hear_of_what_there_is_is_not_in_sync() -> None:
    """Whatever it knows itself, and until it hears again."""
    world = World()
    world.look(0)
    assert not world.lag.look(0, deaf=True)
    assert not world.lag.look(0, deaf=True)
    assert world.look(0)
