"""What a real Kafka says of its disks and controllers, and a broker that has lost its volume."""

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from espha.kafka.reader import Offsets
from espha.kafka.writer import FencedWriter, Record
from espha.local import servers
from espha_operator.reconcile.kafka_talk import Quorum, TalkError, talk
from espha_operator.status.storage import Claim, may_format
from support.replicas import LIMIT_S
from support.servers import Kafka, wait_until

pytestmark = pytest.mark.component


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    folder: Path = tmp_path_factory.mktemp("kafka")
    made = Kafka(folder, replicas=3)
    made.start()
    yield made
    made.stop()


def write(kafka: Kafka, *records: Record) -> None:
    writer = FencedWriter(kafka.bootstrap, f"test-{uuid.uuid4().hex}")
    writer.fence()
    writer.commit(records)


def quorum(kafka: Kafka) -> Quorum:
    """What the controllers say; nothing while they do not answer."""
    try:
        with talk(kafka.bootstrap) as asked:
            return asked.quorum()
    except TalkError:
        return Quorum()


def allowed(kafka: Kafka, *empty: int) -> set[int]:
    """Which of the brokers with an empty volume may begin."""
    claims = [
        Claim(f"data-demo-kafka-{broker}", "kafka", servers=None if broker in empty else 3)
        for broker in range(3)
    ]
    told = quorum(kafka)
    return set(may_format(3, claims, told.ends, told.leader, told.certain)[1])


def test_records_go_and_keys_are_found(kafka: Kafka) -> None:
    kafka.make_topics(log := f"t{uuid.uuid4().hex[:6]}.M", positions := f"{log[:-2]}.P")
    write(kafka, *(Record(log, b"x") for _ in range(10)))
    with talk(kafka.bootstrap) as asked:
        assert asked.ids([log, "none"]) == {log: Offsets(kafka.bootstrap).topic_id(log)}
        asked.delete_before({log: 7})
        assert Offsets(kafka.bootstrap).first(log) == 7
        assert asked.keys(positions) == set()
        asked.mark_trimmed(positions)
        write(kafka, Record(positions, b"{}", key=b"topic adapter"))
        assert asked.keys(positions) == {b"trimmed", b"topic adapter"}
        # A broker that got no processor time for a second is missing for a moment.
        wait_until(lambda: asked.absent() == frozenset(), LIMIT_S, "all brokers are in sync")


def test_brokers_tell_how_full_their_volumes_are(kafka: Kafka) -> None:
    usage = shutil.disk_usage(kafka.servers[0].folder)
    with talk(kafka.bootstrap) as asked:
        rooms = asked.rooms()
    assert sorted(rooms) == [0, 1, 2]
    for total, used in rooms.values():
        assert total == usage.total
        assert 0 < used < total


def test_a_kafka_that_does_not_answer_is_a_sentence() -> None:
    with pytest.raises(TalkError, match=r"Kafka at 127\.0\.0\.1:1: "), talk("127.0.0.1:1"):
        pass


def test_a_broker_that_has_lost_its_volume_is_filled_by_the_others(kafka: Kafka) -> None:
    """It waits for the others' word; two that are empty never get it."""
    kafka.make_topics(log := f"t{uuid.uuid4().hex[:6]}.M")
    write(kafka, *(Record(log, str(number).encode()) for number in range(100)))
    lost = kafka.servers[2]
    lost.kill()
    shutil.rmtree(lost.folder / "data")
    wait_until(lambda: allowed(kafka, 2) == {2}, 60, "the others hold all that is certain")
    assert allowed(kafka, 1, 2) == set()
    servers._format([kafka.servers[0].folder, kafka.servers[1].folder, lost.folder])
    lost.start()
    wait_until(kafka.whole, 120, "all copies are there again")
    assert Offsets(kafka.bootstrap).written(log) == 101
    topics = AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=10).topics
    assert log in topics
