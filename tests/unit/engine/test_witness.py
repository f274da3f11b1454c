"""Since when a standby has seen input that nobody orders."""

import pytest

from espha.engine.witness import Witness
from espha.protocol.activity import Doing
from unit.engine.played_log import PlayedLog


class Kafka(PlayedLog):
    """All topics, as far as the standby can read them."""

    def __init__(self) -> None:
        super().__init__()
        self.input: set[str] = set()
        self.places = {"a": 1, "b": 1}

    def waiting(self) -> set[str]:
        """Return the topics of which input waits."""
        return self.input

    def next_offsets(self) -> dict[str, int]:
        """Return where topics go on."""
        return self.places


class Scene:
    """A standby, and a clock."""

    def __init__(self) -> None:
        self.now = 100.0
        self.kafka, self.doing = Kafka(), Doing()
        self.witness = Witness(self.kafka, self.kafka, self.doing, lambda: self.now)

    def look(self, seconds: float, *ordered: str) -> float | None:
        """Look as often as an engine does, while input of topics is ordered all the time.

        Return for how long input has waited.
        """
        until = self.now + seconds
        while self.now < until:
            for topic in ordered:
                self.kafka.places[topic] += 1
                self.kafka.written += 2
            self.witness.look()
            if ordered:  # the newest record is on its way at each look
                self.kafka.read = self.kafka.written - 2
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
    scene.kafka.input = {"a"}
    assert scene.look(3) == 3
    scene.kafka.input = set()
    assert scene.look(0.2) is None


def test_what_is_ordered_now_and_then_waits_from_then_on(scene: Scene) -> None:
    scene.kafka.input = {"a"}
    scene.look(2)
    scene.kafka.places["a"] += 1
    assert scene.look(1) == pytest.approx(1, abs=0.11)


def test_a_topic_that_nobody_takes_is_told_though_others_are_ordered(scene: Scene) -> None:
    """It may be their turn, so it is told some seconds later."""
    scene.kafka.input = {"a", "b"}
    assert scene.look(10, "a") is None
    assert scene.look(2, "a") == 2
    scene.kafka.places["b"] += 1
    assert scene.look(5, "a") is None


def test_who_takes_all_topics_in_turns_takes_them(scene: Scene) -> None:
    scene.kafka.input = {"a", "b"}
    for _ in range(10):
        assert scene.look(9, "a") is None
        assert scene.look(0.1, "a", "b") is None


def test_where_nothing_is_ordered_any_more_it_is_told_at_once(scene: Scene) -> None:
    """Whatever came of one topic a moment before."""
    scene.kafka.input = {"b"}
    assert scene.look(3, "a") is None
    scene.kafka.read = scene.kafka.written
    assert scene.look(1) == pytest.approx(1, abs=0.11)


def test_an_order_record_without_input_takes_none(scene: Scene) -> None:
    """An active engine that gets no input proves now and then that it leads."""
    scene.kafka.input = {"a"}
    scene.look(3)
    scene.kafka.written += 2
    scene.kafka.read += 2
    assert scene.look(3) == 6


def test_who_is_behind_says_nothing(scene: Scene) -> None:
    scene.kafka.input, scene.kafka.read = {"a"}, 5
    assert scene.look(3) is None


def test_who_gets_behind_says_nothing_any_more(scene: Scene) -> None:
    scene.kafka.input = {"a"}
    scene.look(3)
    scene.kafka.written += 2
    assert scene.look(2) is None


def test_who_cannot_read_the_order_log_says_nothing(scene: Scene) -> None:
    scene.kafka.input, scene.kafka.answers = {"a"}, False
    assert scene.look(3) is None


def test_input_of_the_usual_age_costs_no_question(scene: Scene) -> None:
    scene.kafka.input = {"a", "b"}
    for _ in range(20):
        scene.look(0.15)
        scene.kafka.places["a"] += 1
        scene.kafka.places["b"] += 1
    assert scene.kafka.asked == 0
