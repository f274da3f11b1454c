"""Another Kafka cluster, played for tests of adapters that read from it and write to it."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, KafkaError, TopicPartition


class FarMessage:
    """What a consumer returns."""

    def __init__(
        self, partition: int, offset: int, value: bytes | None, error: KafkaError | None = None
    ) -> None:
        self._told = partition, offset, value, error

    def partition(self) -> int:
        """Return its partition."""
        return self._told[0]

    def offset(self) -> int:
        """Return its offset."""
        return self._told[1]

    def value(self) -> bytes | None:
        """Return what it says."""
        return self._told[2]

    def error(self) -> KafkaError | None:
        """Return what it is, where it is no message."""
        return self._told[3]


class FarTopic:
    """A topic with its consumers, which read on from where they are assigned."""

    def __init__(self, partitions: int = 2) -> None:
        self.identity = "topic-1"
        self.values: list[list[bytes | None]] = [[] for _ in range(partitions)]
        self.first = [0] * partitions
        self.errors: list[KafkaError] = []
        self.assigned: dict[int, int] = {}
        self.connections = 0

    def consumer(self, _: object) -> "FarTopic":
        """Connect; it takes the place of `committed_reader`."""
        self.connections += 1
        self.assigned = {}
        return self

    def list_topics(self, topic: str, _: float) -> SimpleNamespace:
        """Return what partitions there are."""
        known = SimpleNamespace(error=None, partitions=dict.fromkeys(range(len(self.values))))
        return SimpleNamespace(topics={topic: known})

    def describe_topics(self, asked: Any, **_: object) -> dict[str, Any]:
        """Return Kafka's id of the topic."""
        told = SimpleNamespace(result=lambda: SimpleNamespace(topic_id=self.identity))
        return dict.fromkeys(asked.topics, told) if hasattr(asked, "topics") else {"far": told}

    def get_watermark_offsets(
        self, asked: TopicPartition, _: float = 0.0, cached: bool = False
    ) -> tuple[int, int]:
        """Return the first offset, and the one behind the last; nothing is out of date here."""
        partition = asked.partition
        return self.first[partition], self.first[partition] + len(self.values[partition])

    def assign(self, places: Sequence[TopicPartition]) -> None:
        """Read these partitions."""
        self.assigned = {}
        self.incremental_assign(places)

    def incremental_assign(self, places: Sequence[TopicPartition]) -> None:
        """Read these, too."""
        for one in places:
            begin = one.offset == OFFSET_BEGINNING
            self.assigned[one.partition] = self.first[one.partition] if begin else one.offset

    def consume(self, most: int, _: float) -> list[FarMessage]:
        """Return what is there, one partition after the other, then errors."""
        found: list[FarMessage] = []
        for partition, place in self.assigned.items():
            rest = self.values[partition][place - self.first[partition] :]
            taken = rest[: most - len(found)]
            found += [FarMessage(partition, place + at, value) for at, value in enumerate(taken)]
            self.assigned[partition] = place + len(taken)
        while self.errors and len(found) < most:
            found.append(FarMessage(0, 0, None, self.errors.pop()))
        return found

    def close(self) -> None:
        """End the connection."""
