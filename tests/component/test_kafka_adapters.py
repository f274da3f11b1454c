"""Adapters of other Kafka clusters as processes, killed while they work."""

import contextlib
import os
import random
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from espha.kafka.writer import FencedWriter, Record
from support.adapters import Adapters, counters, stopped_at_the_end
from support.replicas import active_of
from support.servers import Kafka, ZooKeeper, wait_until

pytestmark = pytest.mark.component

PARTITIONS = 3
KILLS = int(os.environ.get("ESPHA_KAFKA_KILLS", "6"))
"""How many there are in each test; a campaign wants more."""


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Another cluster, of one broker."""
    cluster = Kafka(tmp_path_factory.mktemp("far"), replicas=1)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


class Site(Adapters):
    """Topics on both clusters, and adapters between them."""

    def __init__(self, kafka: Kafka, far: Kafka, zookeeper: ZooKeeper, folder: Path) -> None:
        super().__init__(kafka, zookeeper, folder)
        self.far, self.topic = far, f"far-{self.prefix}"
        admin = AdminClient({"bootstrap.servers": far.bootstrap})
        admin.create_topics([NewTopic(self.topic, PARTITIONS)])[self.topic].result(30)

    def far_topic(self, **settings: object) -> dict[str, object]:
        """Return the settings of an adapter of the other cluster's topic."""
        return {"kafka": {"servers": self.far.bootstrap, "topic": self.topic, **settings}}


@pytest.fixture
def site(kafka: Kafka, far: Kafka, zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Site]:
    """Empty topics; adapters of the test end with it."""
    with stopped_at_the_end(Site(kafka, far, zookeeper, tmp_path)) as made:
        yield made


def test_a_topic_of_others_is_published_once_although_adapters_are_killed(site: Site) -> None:
    """Others write in transactions, of which some are aborted; the active process is killed."""
    layout = {"opcode": False, "flags": False, "autogenField": False}
    site.start_pair("feed", **site.far_topic(format=layout))
    producer = Producer(
        {"bootstrap.servers": site.far.bootstrap, "transactional.id": f"test-{site.topic}"}
    )
    producer.init_transactions(30)
    chance, count = random.Random(3), 0
    for _ in range(KILLS):
        for _ in range(10):
            aborted = chance.random() < 0.2
            some = range(count, count + chance.randint(1, 50))
            producer.begin_transaction()
            for number in some:
                value = "aborted" if aborted else f"{number},1,2,3"
                producer.produce(site.topic, value, partition=number % PARTITIONS)
            if aborted:
                producer.flush(30)  # else they might never have been on the topic
                producer.abort_transaction(30)
            else:
                producer.commit_transaction(30)
                count = some.stop
        site.kill_active()
        wait_until(lambda: len(active_of(site.replicas)) == 1, 60, "an active input adapter")

    wait_until(lambda: len(site.published()) >= count, 60, "every row is published")
    found = counters(site.published())
    assert sorted(found) == list(range(count))
    for partition in range(PARTITIONS):
        of_partition = [number for number in found if number % PARTITIONS == partition]
        assert of_partition == sorted(of_partition)


def test_another_cluster_gets_each_row_once_although_both_sides_are_killed(
    site: Site, far: Kafka
) -> None:
    """SIGKILL of the adapter at random moments, and of the other cluster's broker."""
    site.start("copy", "output", **site.far_topic())
    wait_until(lambda: site.replicas[0].is_in("active"), 120, "the adapter is active")
    writer = FencedWriter(site.kafka.bootstrap, f"test-{uuid.uuid4().hex}")
    writer.fence()
    chance, count = random.Random(7), 0
    for kill in range(KILLS):
        for _ in range(10):
            some = range(count, count + chance.randint(1, 50))
            texts = [f"I,N, {number},{number},1,2,3,0.500000" for number in some]
            writer.commit(Record(site.output_topic, text.encode()) for text in texts)
            count = some.stop
        if kill % 3 == 1:
            far.servers[0].kill()
            far.servers[0].start()
            far.servers[0].wait()
        else:
            site.kill_active()
    reader = Far(site)
    with contextlib.closing(reader):
        wait_until(lambda: reader.more() >= count, 120, "every row is on the other cluster")
    found = [number for numbers in reader.rows.values() for number in numbers]
    assert sorted(found) == list(range(count))
    for numbers in reader.rows.values():
        assert numbers == sorted(numbers)
    assert all(reader.rows.values()), "keys decide the partition"


class Far:
    """Reads what is committed on the other cluster's topic."""

    def __init__(self, site: Site) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": site.far.bootstrap,
                "group.id": "test",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        places = [
            TopicPartition(site.topic, partition, OFFSET_BEGINNING)
            for partition in range(PARTITIONS)
        ]
        self._consumer.assign(places)
        self.rows: Mapping[int, list[int]] = {one: [] for one in range(PARTITIONS)}

    def more(self) -> int:
        """Read on; return how many rows there are."""
        for message in self._consumer.consume(1000, 0.5):
            if message.error() is None:
                number = int(message.value().split(b",")[3])
                self.rows[message.partition()].append(number)
            else:
                assert message.error().code() != KafkaError._FATAL
        return sum(map(len, self.rows.values()))

    def close(self) -> None:
        """End the connection."""
        self._consumer.close()
