"""Results on a topic of another Kafka cluster."""

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from espha.adapters.config import ConfigError, Job
from espha.adapters.copying import Taken
from espha.adapters.kafka_output import target
from espha.adapters.kafka_output.spec import OutputKafka
from espha.adapters.kafka_output.target import KafkaTarget, key_reader
from espha.adapters.output_records import Rejected
from espha.kafka.reader import ClientSettings
from espha.kafka.writer import ANY_PARTITION, Record, TooLarge, WriterFailed
from support.outputs import outbound

WINDOW = outbound("id*:int64,name:string")
JOB = Job("copy", "", "x", WINDOW, "x.O", "x.P", cast(Any, None))


class _Cluster:
    """A cluster that holds what is committed, and may lose answers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.records: list[Record] = []
        self.topics = {"far"}
        self.fences = 0
        self.fails: list[Exception] = []
        self.answer_lost = False
        for name in ("FencedWriter", "Offsets", "AdminClient"):
            monkeypatch.setattr(target, name, lambda *_: self)
        monkeypatch.setattr(target, "last_matching", self._last)

    def fence(self) -> None:
        self.fences += 1

    def settled(self, _: str) -> int:
        return 0

    def describe_topics(self, asked: Any, **_: object) -> dict[str, SimpleNamespace]:
        return {
            topic: SimpleNamespace(result=self._told(topic)) for topic in ("far", "espha-positions")
        }

    def _told(self, topic: str) -> Any:
        def result() -> None:
            if topic not in self.topics:
                raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))

        return result

    def create_topics(self, asked: Any, **_: object) -> dict[str, SimpleNamespace]:
        self.topics |= {one.topic for one in asked}
        return {one.topic: SimpleNamespace(result=lambda: None) for one in asked}

    def commit(self, records: list[Record]) -> None:
        if self.fails:
            raise self.fails.pop()
        self.records += records
        if self.answer_lost:
            self.answer_lost = False
            raise WriterFailed("timed out")

    def _last(self, _: str, topic: str, wanted: Any, __: ClientSettings) -> SimpleNamespace | None:
        for record in reversed(self.records):
            message = SimpleNamespace(
                key=lambda record=record: record.key, value=lambda record=record: record.value
            )
            if record.topic == topic and wanted(message):
                return message
        return None

    @property
    def rows(self) -> list[bytes]:
        return [record.value for record in self.records if record.topic == "far"]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> _Cluster:
    """One with the topic, and none for positions."""
    return _Cluster(monkeypatch)


def opened(identity: str = "id-1", **settings: object) -> KafkaTarget:
    told = {"servers": "far:9092", "topic": "far", **settings}
    return KafkaTarget(JOB, OutputKafka.model_validate(told), identity)


def taken(*numbers: int) -> list[Taken]:
    return [Taken(one, b"I,N, %d,n" % one, b"x.I:%d:0" % one) for one in numbers]


def test_rows_and_position_are_one_transaction(cluster: _Cluster) -> None:
    made = opened()
    made.append(taken(0, 2), 4)
    first, second, position = cluster.records
    assert (first.value, first.key, first.partition) == (b"I,N, 0,n", b"0", ANY_PARTITION)
    assert second.headers == (("espha-id", b"x.I:2:0"),)
    assert json.loads(position.value)["offset"] == 4
    assert "espha-positions" in cluster.topics
    again = opened()
    assert again.offset == 4
    assert cluster.fences == 2


def test_a_commit_whose_answer_was_lost_is_not_made_twice(cluster: _Cluster) -> None:
    made = opened()
    cluster.answer_lost = True
    with pytest.raises(OSError, match="timed out"):
        made.append(taken(0, 1), 2)
    made.append(taken(0, 1), 2)
    made.append(taken(2), 3)
    assert cluster.rows == [b"I,N, 0,n", b"I,N, 1,n", b"I,N, 2,n"]


def test_a_commit_that_failed_is_made_again(cluster: _Cluster) -> None:
    made = opened()
    cluster.fails = [WriterFailed("away")]
    with pytest.raises(OSError, match="away"):
        made.append(taken(0, 1), 2)
    made.append(taken(0, 1), 2)
    assert len(cluster.rows) == 2
    assert cluster.fences == 2


def test_a_message_that_the_topic_does_not_take_is_named(cluster: _Cluster) -> None:
    cluster.fails = [TooLarge("too large")]
    with pytest.raises(ConfigError, match=r"takes no message of 8 bytes.*raise its max.message"):
        opened().append(taken(0), 1)
    assert cluster.records == []


def test_the_position_of_another_topic_is_refused(cluster: _Cluster) -> None:
    opened().append(taken(0), 1)
    with pytest.raises(ConfigError, match=r"another topic that was called x\.O"):
        opened("id-2")


def test_a_topic_that_is_not_there_is_waited_for(cluster: _Cluster) -> None:
    cluster.topics.clear()
    with pytest.raises(OSError, match="there is no topic far; make it"):
        opened()


def test_objects_of_json_and_what_is_no_row(cluster: _Cluster) -> None:
    made = opened(format={"type": "json"})
    made.append([*taken(5), Taken(6, b"nothing")], 7)
    row, bad = cluster.rows
    assert json.loads(row) == {"opcode": "I", "flags": "N", "id": 5, "name": "n"}
    assert json.loads(bad)["offset"] == 6
    assert made.progress(2).rejected == 1


def test_keys_are_the_fields_of_the_windows_key() -> None:
    two = outbound("id*:int64,name*:string,value:double")
    read = key_reader(two)
    assert read(Taken(0, b'I,N, 1,"a,b",0.5')) == b'1,"a,b"'
    assert read(Taken(0, b"I,N")) is None
    as_json = key_reader(outbound("id*:int64,name:string", "json"))
    assert as_json(Taken(0, b'{"opcode": "I", "id": 7}')) == b"7"


def test_without_keys_all_go_to_one_partition(cluster: _Cluster) -> None:
    opened(keyed=False).append(taken(1), 2)
    assert (cluster.records[0].key, cluster.records[0].partition) == (None, 0)


def test_what_readers_of_another_format_could_not_read_is_left_out(
    cluster: _Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers of Avro would stop at an object of JSON; the record stays on the window's topic."""
    made = opened()
    monkeypatch.setattr(
        made._outgoing, "payload", lambda one: Rejected(one.offset, "no row", "text")
    )
    made.append(taken(0), 1)
    assert cluster.rows == []
    assert made.progress(1).rejected == 1
    assert opened().offset == 1
