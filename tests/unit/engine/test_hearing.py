"""Whether a standby hears the order log, by a clock of the test's own."""

import pytest

from espha.engine.hearing import Hearing
from espha.engine.position import Position
from unit.engine.played_log import PlayedLog


class Scene(PlayedLog):
    """A standby at order record 3, an order log, and other replicas."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.others = 100.0, 3
        at = Position(sequence=3)
        self.hearing = Hearing(self, at, lambda: self.others, lambda: self.now)

    def passes(self, seconds: float, heard: bool = False) -> bool:
        """Listen for so long, and hear something at the end, or do not; tell whether it is deaf."""
        for _ in range(round(seconds * 100)):
            self.now += 0.01
            deaf = self.hearing.is_deaf(False)
        return self.hearing.is_deaf(True) if heard else deaf


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_log_that_goes_on_costs_no_question(scene: Scene) -> None:
    for _ in range(10):
        assert not scene.passes(6, heard=True)
    assert scene.asked == 0


def test_a_log_that_has_no_more_is_heard(scene: Scene) -> None:
    """Nobody is active."""
    assert not scene.passes(60)
    assert scene.asked > 10


def test_who_does_not_hear_what_is_there_is_deaf(scene: Scene) -> None:
    scene.written = 9
    assert not scene.passes(10.5), "it may be on its way"
    assert scene.passes(2)
    assert scene.passes(60)
    assert not scene.passes(0.01, heard=True)


def test_what_comes_between_two_looks_was_on_its_way(scene: Scene) -> None:
    scene.written = 9
    for _ in range(5):
        assert not scene.passes(11, heard=True)


def test_whom_kafka_does_not_answer_asks_others(scene: Scene) -> None:
    scene.answers = False
    assert not scene.passes(60), "nobody is answered"
    scene.others = 4
    assert scene.passes(5)
    scene.answers = True
    assert scene.passes(3), "a broker that is cut off from the others tells of nothing newer"
    scene.others = 3
    assert not scene.passes(3)


def test_who_cannot_ask_others_goes_by_what_kafka_says() -> None:
    """No thread is left to ask with; that is no reason to end."""
    asked: list[str] = []

    def newest() -> int:
        asked.append("others")
        raise RuntimeError("can't start new thread")

    crowded = Scene()
    crowded.hearing = Hearing(crowded, Position(sequence=3), newest, lambda: crowded.now)
    assert not crowded.passes(30)
    assert asked


def test_who_led_or_was_frozen_has_not_listened(scene: Scene) -> None:
    scene.written = 9
    scene.now += 3600
    assert not scene.passes(9)
    assert scene.asked == 0


def test_who_is_deaf_and_freezes_is_deaf_still(scene: Scene) -> None:
    scene.written = 9
    assert scene.passes(20)
    scene.now += 3600
    assert scene.passes(1)
