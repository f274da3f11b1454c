"""The log's clock against wall clocks that jump; time is counted by the test."""

import threading

import pytest

from espha.engine.clock import LogClock

NOW = 1_800_000_000_000
DAY = 86_400_000


class World:
    """A machine whose wall clock is `off` from real time, and brokers, which may be off as well."""

    def __init__(self, *, off: int = 0, broker: int | None = 0) -> None:
        self.counted, self.off, self.broker = 0.0, off, broker
        self.asked = 0
        self.clock = LogClock(self.ask, lambda: int(NOW + self.counted + self.off), self.count)
        self.settle()

    def count(self) -> float:
        """Return the time that nobody can turn."""
        return self.counted

    def ask(self) -> int | None:
        """As a broker."""
        self.asked += 1
        return None if self.broker is None else int(NOW + self.counted + self.broker)

    def settle(self) -> None:
        """Wait for the answer."""
        for thread in threading.enumerate():
            if thread.name == "clock":
                thread.join(10)

    def wait(self, ms: int) -> None:
        """Let time go by, with a look at the clock every 100 ms."""
        for _ in range(ms // 100):
            self.counted += 100
            self.clock.real()
            self.settle()

    def away(self, last: int = NOW) -> int:
        """Return how far the next record's clock is from real time."""
        return self.clock.next(last, 0) - int(NOW + self.counted)


def test_it_is_the_wall_clock_where_that_is_right() -> None:
    world = World()
    world.wait(5_000)
    assert world.away() == 0
    assert world.asked == 1


def test_it_comes_to_a_wall_clock_that_is_near_without_a_jump() -> None:
    world = World()
    world.off = 800
    world.wait(1_000)
    assert 0 < world.away() <= 100
    world.wait(10_000)
    assert world.away() == 800


@pytest.mark.parametrize("jump", [DAY, -DAY, 5_000, -5_000])
def test_a_jump_that_brokers_do_not_see_moves_nothing(jump: int) -> None:
    world = World()
    world.wait(1_000)
    world.off = jump
    world.wait(60_000)
    assert world.away() == 0


@pytest.mark.parametrize("jump", [DAY, 5_000])
def test_a_jump_that_brokers_see_is_followed(jump: int) -> None:
    """The machine had the wrong time before, or was asleep."""
    world = World()
    world.wait(20_000)
    world.off = world.broker = jump
    world.wait(20_000)
    assert world.away() == jump


@pytest.mark.parametrize("off", [DAY, -DAY])
def test_an_engine_that_starts_with_a_wrong_clock_believes_the_brokers(off: int) -> None:
    world = World(off=off)
    assert world.away(last=NOW - 8 * 3_600_000) == 0


def test_a_clock_that_is_right_is_kept_though_a_broker_is_wrong() -> None:
    assert World(broker=DAY).away(last=NOW - 1_000) == 0
    assert World(broker=-DAY).away(last=NOW - 1_000) == pytest.approx(0, abs=1_000)


def test_after_a_long_time_off_the_clock_goes_on_at_once() -> None:
    assert World().away(last=NOW - 30 * DAY) == 0


def test_without_a_witness_the_count_goes_on() -> None:
    world = World(broker=None)
    world.off = DAY
    world.wait(60_000)
    assert world.away() == 0


def test_a_log_that_is_ahead_is_never_put_back_and_never_stands_still() -> None:
    world = World()
    last = NOW + DAY
    assert world.clock.next(last, 100) == last + 50


def test_brokers_are_asked_until_one_has_answered() -> None:
    """Else a clock that is wrong at the start would be believed for good."""
    world = World(off=DAY, broker=None)
    for _ in range(3):
        assert world.away() == DAY
        world.wait(11_000)
        world.settle()
    world.broker = 0
    world.wait(11_000)
    world.away()
    world.settle()
    assert world.away() == 0
