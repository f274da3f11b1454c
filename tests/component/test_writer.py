"""The fenced writer and the exact readers, against a real Kafka of three brokers."""

import time
import uuid
from itertools import pairwise

import pytest

from espha.kafka.broker_time import broker_time
from espha.kafka.reader import Offsets, last_record, read_range, records_backwards
from espha.kafka.writer import Fenced, FencedWriter, Record, WriterFailed
from espha.pipeline.fitting import size_of
from espha.protocol.sizes import RECORD_BYTES
from support.servers import Kafka, wait_until

pytestmark = pytest.mark.component


@pytest.fixture
def topic(kafka: Kafka) -> str:
    """A new, empty topic."""
    name = f"topic-{uuid.uuid4().hex[:8]}"
    kafka.make_topics(name)
    return name


def values(kafka: Kafka, topic: str, writer: FencedWriter) -> list[bytes]:
    """Return what a topic shows once the writer's last commit, and its marker, are there."""
    offsets = Offsets(kafka.bootstrap)
    wait_until(lambda: offsets.end(topic) >= writer.committed, 30, "the commit's marker")
    end = offsets.end(topic)
    return [message.value() for message in read_range(kafka.bootstrap, topic, 0, end)]


def test_a_fenced_writer_commits_nothing(kafka: Kafka, topic: str) -> None:
    """I1: after a newer holder fenced, the older one fails for good and nothing of it shows."""
    old, new = (FencedWriter(kafka.bootstrap, f"id-{topic}") for _ in range(2))
    old.fence()
    old.commit([Record(topic, b"1")])
    new.fence()
    with pytest.raises(Fenced):
        old.commit([Record(topic, b"lost")])
    new.commit([Record(topic, b"2")])
    with pytest.raises(WriterFailed):
        old.commit([Record(topic, b"lost again")])
    assert values(kafka, topic, new) == [b"1", b"2"]


def test_an_open_transaction_is_aborted_by_the_next_holder(kafka: Kafka, topic: str) -> None:
    """What a dead holder left open never becomes visible and holds nobody up."""
    dead = FencedWriter(kafka.bootstrap, f"id-{topic}")
    dead.fence()
    dead._producer.begin_transaction()
    dead._produce(Record(topic, b"open"), None)
    dead._producer.flush()
    heir = FencedWriter(kafka.bootstrap, f"id-{topic}")
    heir.fence()
    heir.commit([Record(topic, b"after")])
    assert values(kafka, topic, heir) == [b"after"]


def test_the_last_record_is_found_behind_markers_and_aborted_records(
    kafka: Kafka, topic: str
) -> None:
    """Control markers and aborted records take offsets: the last record is not at end - 1."""
    assert last_record(kafka.bootstrap, topic) is None
    writer = FencedWriter(kafka.bootstrap, f"id-{topic}")
    writer.fence()
    for number in range(3):
        writer.commit([Record(topic, b"%d" % number, (("n", b"%d" % number),))])
    writer._producer.begin_transaction()
    for _ in range(200):
        writer._produce(Record(topic, b"aborted"), None)
    writer._producer.flush()
    writer._producer.abort_transaction()
    last = last_record(kafka.bootstrap, topic)
    assert last is not None
    assert last.value() == b"2"
    assert last.headers() == [("n", b"2")]
    backwards = [message.offset() for message in records_backwards(kafka.bootstrap, topic)]
    assert len(backwards) == 3
    assert all(newer > older for newer, older in pairwise(backwards))


def test_a_broker_says_what_time_it_is(kafka: Kafka) -> None:
    """On a topic of which brokers stamp the records; elsewhere it would be this machine's word."""
    name = uuid.uuid4().hex[:8]
    kafka.make_topics(name, f"{name}.warm-up")
    told = broker_time(kafka.bootstrap, f"{name}.warm-up")
    assert told == pytest.approx(time.time() * 1000, abs=60_000)
    assert broker_time(kafka.bootstrap, name) is None


def test_the_largest_record_can_be_written_and_read(kafka: Kafka, topic: str) -> None:
    """Whatever engines write, brokers take, copy to each other, and hand over."""
    headers = (("espha-id", b"t:1:0"), ("espha-reason", b"y" * 1000))
    value = b"x" * (RECORD_BYTES - size_of(b"", headers))
    writer = FencedWriter(kafka.bootstrap, f"id-{topic}")
    writer.fence()
    writer.commit([Record(topic, value, headers)])
    assert values(kafka, topic, writer) == [value]
