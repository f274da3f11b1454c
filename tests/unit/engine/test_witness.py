"""Since when a standby has seen input that nobody orders."""

import pytest

from espha.engine.position import Position
from espha.engine.witness import Witness
from espha.kafka.reader import LogError
from espha.protocol.activity import Doing


class Kafka:
    """Both topics, as far as the standby can read them."""

    def __init__(self) -> None:
        self.input, self.read, self.answers = False, True, True
        self.asked = 0

    def waiting(self) -> bool:
        """Tell whether input waits."""
        return self.input

    def at(self, end: int) -> bool:
        """Tell whether the order log is read."""
        return self.read

    def end(self, limit_s: float) -> int:
        """Return the log's end, or do not answer."""
        self.asked += 1
        if not self.answers:
            raise LogError("no answer")
        return 7


class Scene:
    """A standby at order record 3, and a clock."""

    def __init__(self) -> None:
        self.now = 100.0
        self.kafka, self.at, self.doing = Kafka(), Position(sequence=3), Doing()
        self.witness = Witness(self.kafka, self.kafka, self.at, self.doing, lambda: self.now)

    def look(self, seconds: float) -> float | None:
        """Look as often as an engine does; return for how long input has waited."""
        until = self.now + seconds
        while self.now < until:
            self.witness.look()
            self.now += 0.005
        since = self.doing.unordered_since
        return None if since is None else round(self.now - since, 1)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_nothing_waits_where_there_is_no_input(scene: Scene) -> None:
    assert scene.look(5) is None
    assert scene.kafka.asked == 0


def test_input_that_nobody_orders_is_told(scene: Scene) -> None:
    scene.kafka.input = True
    assert scene.look(3) == 3
    scene.kafka.input = False
    assert scene.look(0.2) is None


def test_what_is_ordered_now_and_then_waits_from_then_on(scene: Scene) -> None:
    scene.kafka.input = True
    scene.look(2)
    scene.at.sequence += 1
    assert scene.look(1) == pytest.approx(1, abs=0.11)


def test_who_is_behind_says_nothing(scene: Scene) -> None:
    scene.kafka.input, scene.kafka.read = True, False
    assert scene.look(3) is None


def test_who_cannot_read_the_order_log_says_nothing(scene: Scene) -> None:
    scene.kafka.input, scene.kafka.answers = True, False
    assert scene.look(3) is None


def test_input_of_the_usual_age_costs_no_question(scene: Scene) -> None:
    scene.kafka.input = True
    for _ in range(20):
        scene.look(0.15)
        scene.at.sequence += 1
    assert scene.kafka.asked == 0
