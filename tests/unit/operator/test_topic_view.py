"""Kafka is asked beside the steps: whatever it does, they go on."""

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from espha_operator.api.deployment import Deployment
from espha_operator.reconcile import kafka_talk, topic_view
from espha_operator.reconcile.topic_view import TopicView
from espha_operator.status.facts import TopicFacts
from support.servers import wait_until
from unit.operator import samples

DEMO = samples.deployment()
WELL = TopicFacts(brokers=3)


class _Kafka:
    """A Kafka that may hang, or answer with something that nobody has foreseen."""

    def __init__(self) -> None:
        self.asked = 0
        self.goes_on = threading.Event()
        self.goes_on.set()

    def ensure(self, deployment: Deployment, names: Iterable[str], **_: Any) -> TopicFacts:
        """Answer, some time."""
        self.asked += 1
        self.goes_on.wait()
        return WELL


@pytest.fixture
def kafka() -> Iterator[_Kafka]:
    made = _Kafka()
    yield made
    made.goes_on.set()


class _Play:
    def __init__(self, kafka: _Kafka) -> None:
        self.now, self.kafka = 100.0, kafka
        self.view = TopicView(lambda: self.now)

    def look(self, seconds: float = 0.0) -> TopicFacts | None:
        self.now += seconds
        return self.view.look(self.kafka, DEMO, samples.MODEL, change=True)

    def until(self, wanted: TopicFacts) -> None:
        wait_until(lambda: self.look() == wanted, 30, "the answer is there", 0.01)


@pytest.fixture
def play(kafka: _Kafka) -> _Play:
    return _Play(kafka)


def test_a_kafka_that_hangs_holds_up_nobody_and_is_asked_once(play: _Play, kafka: _Kafka) -> None:
    kafka.goes_on.clear()
    assert play.look() is None
    wait_until(lambda: kafka.asked == 1, 30, "it is asked", 0.01)
    assert play.look(topic_view.DEADLINE / 2) is None
    late = play.look(topic_view.DEADLINE)
    assert late is not None
    assert "has not answered" in late.error
    assert kafka.asked == 1
    kafka.goes_on.set()
    play.until(WELL)


def test_what_was_known_stays_true_while_it_is_asked_again(play: _Play, kafka: _Kafka) -> None:
    play.look()
    play.until(WELL)
    kafka.goes_on.clear()
    assert play.look(topic_view.LATER + 1) == WELL
    wait_until(lambda: kafka.asked == 2, 30, "it is asked again", 0.01)
    assert play.look() == WELL


def test_one_that_does_not_answer_is_asked_ever_more_rarely(
    play: _Play, kafka: _Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at_once(*_: Any, **__: Any) -> Future[TopicFacts]:
        kafka.asked += 1
        answer: Future[TopicFacts] = Future()
        answer.set_exception(KeyError("min.insync.replicas"))
        return answer

    monkeypatch.setattr(topic_view, "submit", at_once)
    for _ in range(600):
        facts = play.look(1.0)
    assert facts is not None
    assert "KeyError" in facts.error
    assert 600 / topic_view.LONGEST <= kafka.asked <= 100


def test_a_kafka_that_does_not_answer_leaves_no_thread_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its volumes are asked for again and again, for days perhaps."""
    monkeypatch.setattr(kafka_talk, "ANSWER", 0.2)
    before = set(threading.enumerate())
    with pytest.raises(kafka_talk.TalkError), kafka_talk.talk("127.0.0.1:1"):
        pass
    wait_until(lambda: set(threading.enumerate()) <= before, 30, "all threads have ended", 0.05)
