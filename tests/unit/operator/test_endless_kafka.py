"""A Kafka that always has one more answer keeps nobody."""

import time
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.errors import KafkaTimeoutError

from espha_operator.reconcile import kafka_talk
from espha_operator.reconcile.kafka_talk import KafkaTalk, TalkError

PLACE = TopicPartition("demo.P", 0)
# So many answers, of a hundredth of a second each, stand for no end of them.
MANY = 300


class Consumer:
    """Gives a record at a time."""

    def __init__(self, **_: Any) -> None:
        """Begin at the beginning."""
        self.at = 0

    def assign(self, _: object) -> None:
        """Stay."""

    def seek_to_beginning(self, _: object) -> None:
        """Stay."""

    def end_offsets(self, _: object) -> dict[TopicPartition, int]:
        """Return the end."""
        return {PLACE: MANY}

    def position(self, _: object) -> int:
        """Return how far it is."""
        return self.at

    def poll(self, _: float) -> dict[TopicPartition, list[SimpleNamespace]]:
        """Give the next one."""
        time.sleep(0.01)
        self.at += 1
        return {PLACE: [SimpleNamespace(key=b"%d" % self.at)]}

    def close(self) -> None:
        """End."""


class Admin:
    """Names many brokers, none of which answers."""

    def __init__(self, **_: Any) -> None:
        """Connect."""

    def describe_cluster(self) -> dict[str, list[dict[str, int]]]:
        """Name them."""
        return {"brokers": [{"broker_id": number} for number in range(MANY)]}

    def describe_log_dirs(self, brokers: list[int]) -> None:
        """Answer not."""
        time.sleep(0.01)
        raise KafkaTimeoutError(f"{brokers}")


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> KafkaTalk:
    """A connection to such a Kafka."""
    monkeypatch.setattr(kafka_talk, "KafkaConsumer", Consumer)
    monkeypatch.setattr(kafka_talk, "_Admin", Admin)
    monkeypatch.setattr(kafka_talk, "WHOLE", 0.5)
    return KafkaTalk("kafka:9092")


def test_a_topic_without_an_end_is_given_up(kafka: KafkaTalk) -> None:
    with pytest.raises(TalkError, match="no end of answers"):
        kafka.keys(PLACE.topic)


def test_brokers_without_an_end_are_given_up(kafka: KafkaTalk) -> None:
    with pytest.raises(TalkError, match="no end of answers"):
        kafka.rooms()
