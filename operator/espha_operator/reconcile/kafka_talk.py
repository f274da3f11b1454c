"""What is asked of Kafka beside the topics: disks, copies, controllers; and records deleted.

confluent-kafka cannot ask for log directories and quorums; kafka-python can.
"""

import base64
import logging
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Producer
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

# Seconds that Kafka may take for an answer.
ANSWER = 4.0
# Seconds for all questions over one connection: brokers could name ever more brokers, or records.
WHOLE = 60.0
# Every topic has this one partition.
_PARTITION = 0
# Written where no adapter has kept a position, before rows are deleted for the first time: from
# then on, who finds no position is new.
_TRIMMED = b"trimmed"
_LOG = logging.getLogger(__name__)
# Of a broker that is away the operator's own sentences tell.
logging.getLogger("kafka").setLevel(logging.CRITICAL)


class TalkError(Exception):
    """Kafka does not answer, or refuses; the text says what."""


@dataclass(frozen=True)
class Quorum:
    """The controllers, as the active one sees them.

    Attributes:
        leader: the active controller; -1: none is known.
        certain: offset below which everything is on a majority.
        ends: by voter, the offset behind the last record that it is known to have; -1: unknown.
    """

    leader: int = -1
    certain: int = -1
    ends: Mapping[int, int] = field(default_factory=dict)


class _Admin(KafkaAdminClient):  # type: ignore[misc]
    """An admin client that leaves no thread behind when Kafka does not answer."""

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except BaseException:
            if hasattr(self, "_net"):
                self._closed = False  # set after it has connected, and asked for by `close`
                self.close()
            raise


class KafkaTalk:
    """Questions and orders to one Kafka, over connections of its own."""

    def __init__(self, bootstrap: str) -> None:
        """Connect."""
        self._bootstrap, self._until = bootstrap, time.monotonic() + WHOLE
        self._settings = {
            "bootstrap_servers": bootstrap.split(","),
            "client_id": "espha-operator",
            "request_timeout_ms": ANSWER * 1000,
        }
        self._admin = _Admin(**self._settings, bootstrap_timeout_ms=ANSWER * 1000)

    def close(self) -> None:
        """End the connections."""
        self._admin.close()

    def rooms(self) -> dict[int, tuple[int, int]]:
        """Return for each broker the bytes of its volume: all, and used.

        Brokers before Kafka 3.3 (KIP-827) do not tell them.

        Raises:
            TalkError: it takes too long.
        """
        found = {}
        for broker in self._admin.describe_cluster()["brokers"]:
            number = broker["broker_id"]
            self._expect_time()
            try:
                (answer,) = self._admin.describe_log_dirs(brokers=[number])
            except (KafkaError, OSError):
                continue  # one that is away says nothing of the others
            for one in answer["log_dirs"]:
                if one["total_bytes"] > 0 and one["usable_bytes"] >= 0:
                    found[number] = one["total_bytes"], one["total_bytes"] - one["usable_bytes"]
        return found

    def absent(self) -> frozenset[int]:
        """Return the brokers that lack in the copies in sync of a partition."""
        return frozenset(
            replica
            for topic in self._admin.describe_topics()
            for partition in topic["partitions"]
            for replica in set(partition["replica_nodes"]) - set(partition["isr_nodes"])
        )

    def quorum(self) -> Quorum:
        """Return the state of the controllers."""
        partition = self._admin.describe_metadata_quorum()["topics"][0]["partitions"][0]
        if partition["error"]:
            return Quorum()
        return Quorum(
            leader=partition["leader_id"],
            certain=partition["high_watermark"],
            ends={one["replica_id"]: one["log_end_offset"] for one in partition["current_voters"]},
        )

    def ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return Kafka's ids of topics that exist, as engines write them in their snapshots."""
        found = self._admin.describe_topics(list(topics))
        return {one["name"]: written_id(one["topic_id"]) for one in found if not one["error_code"]}

    def delete_before(self, offsets: Mapping[str, int]) -> None:
        """Delete the records of topics that lie before an offset.

        Raises:
            KafkaError: a broker refuses.
        """
        if offsets:
            self._admin.delete_records(
                {TopicPartition(topic, _PARTITION): at for topic, at in offsets.items()}
            )

    def keys(self, topic: str) -> set[bytes]:
        """Return the keys on a small topic.

        Raises:
            TalkError: it cannot be read to its end, or that takes too long.
        """
        place = TopicPartition(topic, _PARTITION)
        consumer = KafkaConsumer(
            **self._settings,
            group_id=None,
            enable_auto_commit=False,
            isolation_level="read_committed",
        )
        try:
            consumer.assign([place])
            consumer.seek_to_beginning(place)
            end = consumer.end_offsets([place])[place]
            found: set[bytes] = set()
            while (at := consumer.position(place)) < end:
                self._expect_time()
                found |= {one.key for one in consumer.poll(ANSWER * 1000).get(place, []) if one.key}
                if consumer.position(place) == at:
                    raise TalkError(f"topic {topic} cannot be read beyond offset {at}")
        finally:
            consumer.close()
        return found

    def mark_trimmed(self, positions: str) -> None:
        """Note on the topic of positions that from now on rows are deleted.

        Raises:
            TalkError: Kafka has not taken it in time; it may yet.
        """
        producer = Producer({"bootstrap.servers": self._bootstrap, "acks": "all"}, logger=_LOG)
        producer.produce(positions, b"", _TRIMMED, partition=_PARTITION)
        if producer.flush(ANSWER):
            raise TalkError(f"topic {positions} takes no record")

    def _expect_time(self) -> None:
        if time.monotonic() > self._until:
            raise TalkError(f"Kafka at {self._bootstrap} has no end of answers")


@contextmanager
def talk(bootstrap: str) -> Iterator[KafkaTalk]:
    """Connect to Kafka for a block.

    Raises:
        TalkError: it does not answer, or not as Kafka does.
    """
    try:
        kafka = KafkaTalk(bootstrap)
        try:
            yield kafka
        finally:
            kafka.close()
    except (KafkaError, OSError, ValueError, LookupError) as error:
        text = f"{type(error).__name__}: {error}"[:300]
        raise TalkError(f"Kafka at {bootstrap}: {text}") from None


def written_id(told: Any) -> str:
    """Return a topic's id as librdkafka writes it: in base64 with `+` and `/`.

    Kafka's own tools write `-` and `_` there.
    """
    return base64.b64encode(uuid.UUID(str(told)).bytes).decode().rstrip("=")
