"""How long a supervisor waits before the next life, and what Kafka has to do with it."""

import threading

import pytest

from espha.ha.pauses import Pauses

TICK_S = 0.1


class Brokers:
    """Brokers that answer, or not, as a test says; it may say so before a tick comes."""

    def __init__(self) -> None:
        self.answers = (True, True)
        self.ticks = 0
        self.then: dict[int, tuple[bool, bool]] = {}

    def tick(self) -> None:
        """Let a tick pass."""
        self.ticks += 1
        self.answers = self.then.get(self.ticks, self.answers)


class Stop(threading.Event):
    """Does not wait; adds up for how long it should have."""

    waited_s = 0.0

    def wait(self, timeout: float | None = None) -> bool:
        """Return at once."""
        self.waited_s += timeout or 0.0
        return self.is_set()


class Scene:
    """Pauses, and what they cost."""

    def __init__(self) -> None:
        self.brokers, self.stop = Brokers(), Stop()
        self.pauses = Pauses(self.stop, self.brokers, TICK_S)

    def rest(self, at_least_s: float = 0.0) -> float:
        """Return how long the next pause is (s)."""
        before = self.stop.waited_s
        assert not self.pauses.rest(at_least_s)
        return round(self.stop.waited_s - before, 3)

    def change(self, ticks: int, first: bool, second: bool) -> None:
        """Let brokers answer, or not, in so many ticks."""
        self.brokers.then[self.brokers.ticks + ticks] = first, second


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_pauses_become_longer_until_something_works(scene: Scene) -> None:
    assert [scene.rest() for _ in range(8)] == [0.3, 0.6, 1.2, 2.4, 4.8, 9.6, 19.2, 30.0]
    scene.pauses.reset()
    assert scene.rest() == 0.3
    assert scene.rest(at_least_s=7.0) == 7.0


def test_a_pause_ends_when_kafka_answers_again(scene: Scene) -> None:
    """And what went wrong while it was away is forgotten."""
    scene.change(1, first=False, second=False)
    long = [scene.rest() for _ in range(8)]
    assert long[-1] == 30.0
    scene.change(4, first=False, second=True)
    assert scene.rest() == 0.4
    assert scene.rest() == 0.3
    scene.change(2, first=True, second=True)
    assert scene.rest() == 0.2, "it is the other one that was needed"


def test_kafka_that_comes_back_in_the_middle_of_a_life_counts_too(scene: Scene) -> None:
    scene.change(1, first=False, second=False)
    for _ in range(8):
        scene.rest()
    scene.change(5, first=True, second=True)
    for _ in range(10):
        scene.pauses.tick()  # a life that had begun without it
    assert scene.rest() == 0.3
    assert scene.rest() == 0.6


def test_what_the_dead_ask_for_is_waited_for_all_the_same(scene: Scene) -> None:
    scene.change(1, first=False, second=False)
    scene.change(3, first=True, second=True)
    assert scene.rest(at_least_s=2.0) == 2.0
    assert scene.rest() == 0.3


def test_the_end_of_all_ends_a_pause(scene: Scene) -> None:
    scene.stop.set()
    assert scene.pauses.rest(5.0)
    assert scene.stop.waited_s == TICK_S


def test_without_an_election_nobody_asks_kafka() -> None:
    stop = Stop()
    pauses = Pauses(stop, None, TICK_S)
    pauses.tick()
    assert not pauses.rest(0.0)
    assert round(stop.waited_s, 3) == 0.3
