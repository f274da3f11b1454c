"""Rows from a Kafka topic that others write."""

import json
from collections.abc import Sequence
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError

from espha.adapters.config import ConfigError, Held, Job
from espha.adapters.kafka_cluster import KafkaTopic
from espha.adapters.kafka_input import source
from espha.adapters.kafka_input.position import Position
from espha.adapters.kafka_input.source import KafkaSource
from espha.adapters.kafka_input.spec import InputKafka
from espha.protocol.status import Lag
from support.far_kafka import FarMessage, FarTopic
from support.outputs import outbound

JOB = Job("feed", "", "x", outbound("id*:int64"), "x.I", "x.P", cast(Any, None))
KAFKA = {"servers": "far:9092", "topic": "far"}


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> FarTopic:
    """A topic of two partitions, empty."""
    topic = FarTopic()
    monkeypatch.setattr(source, "committed_reader", topic.consumer)
    monkeypatch.setattr(source, "AdminClient", lambda _: topic)
    return topic


def opened(position: bytes | None = None, **settings: object) -> KafkaSource:
    found = json.loads(position) if position else None
    return KafkaSource(JOB, InputKafka.model_validate({**KAFKA, **settings}), found)


def values(rows: Sequence[tuple[bytes, Position]]) -> list[bytes]:
    return [value for value, _ in rows]


def rows(*numbers: int) -> list[bytes | None]:
    return [b"I,N,%d" % number for number in numbers]


def test_the_last_row_carries_all_partitions_and_each_row_its_place(far: FarTopic) -> None:
    far.values = [rows(1, 2), rows(3)]
    found = opened().poll()
    assert values(found) == rows(1, 2, 3)
    headers = [json.loads(position.to_header()) for _, position in found]
    assert headers[0] == {"adapter": "feed", "topic": "far", "partition": 0, "offset": 0}
    assert headers[-1]["next"] == {"0": 2, "1": 1}
    assert (headers[-1]["partition"], headers[-1]["offset"]) == (1, 0)


def test_whoever_goes_on_reads_behind_the_position(far: FarTopic) -> None:
    far.values = [rows(1, 2), rows(3)]
    *_, (_, last) = opened().poll()
    far.values[0] += rows(4)
    far.values[1] += rows(5)
    assert values(opened(last.to_header()).poll()) == rows(4, 5)


def test_a_standby_goes_to_where_the_active_one_is(far: FarTopic) -> None:
    standby = opened()
    far.values = [rows(1, 2), rows(3)]
    *_, (_, last) = opened().poll()
    standby.advance(json.loads(last.to_header()))
    assert standby.poll() == []
    assert standby.position.offsets == {0: 2, 1: 1}


def test_partitions_that_are_added_are_read_from_their_beginning(
    far: FarTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = opened()
    assert made.poll() == []
    far.values.append(rows(7))
    far.first.append(0)
    monkeypatch.setattr(source, "_LOOK_S", -1.0)
    assert values(made.poll()) == rows(7)


def test_a_topic_that_was_made_anew_is_read_from_its_beginning(far: FarTopic) -> None:
    far.values = [rows(1, 2), rows(3)]
    *_, (_, last) = opened().poll()
    far.identity, far.values = "topic-2", [rows(8), rows(9)]
    found = opened(last.to_header()).poll()
    assert values(found) == rows(8, 9)
    assert found[-1][1].generation == 2


def test_what_retention_has_removed_is_left_out(far: FarTopic) -> None:
    far.values = [rows(1), []]
    *_, (_, last) = opened().poll()
    far.first, far.values = [5, 0], [rows(6), []]
    assert values(opened(last.to_header()).poll()) == rows(6)


def test_a_partition_that_has_lost_its_end_is_waited_for(far: FarTopic) -> None:
    far.values = [rows(1, 2), []]
    *_, (_, last) = opened().poll()
    far.values[0].pop()
    made = opened(last.to_header())
    with pytest.raises(Held, match="partition 0 ends at offset 1, but all below 2 was published"):
        made.poll()
    far.values[0] += rows(2, 3)
    assert values(made.poll()) == rows(3)


def test_start_last_leaves_out_what_was_there(far: FarTopic) -> None:
    far.values = [rows(1, 2), rows(3)]
    made = opened(start="last")
    assert json.loads(made.position.to_header())["next"] == {"0": 2, "1": 1}
    far.values[1] += rows(4)
    assert values(made.poll()) == rows(4)


def test_an_error_is_said_behind_the_rows_before_it(far: FarTopic) -> None:
    far.values[0] = rows(1)
    far.errors = [KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)]
    made = opened()
    assert values(made.poll()) == rows(1)
    with pytest.raises(OSError, match="authorization"):
        made.poll()
    far.values[0] += rows(2)
    assert values(made.poll()) == rows(2)
    assert far.connections == 2


def test_an_error_within_a_transaction_makes_a_new_connection(far: FarTopic) -> None:
    """Who gathers a transaction drops the error; the next poll has to find what it was about."""
    made = opened()
    made.poll()
    far.errors = [KafkaError(KafkaError._AUTO_OFFSET_RESET)]
    with pytest.raises(OSError, match="offset"):
        made.poll()
    made.poll()
    assert far.connections == 2


def test_a_message_that_cannot_be_read_now_comes_again(
    far: FarTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.values[0] = rows(1, 2, 3)
    made = opened()
    read, away = made._incoming.records, [True, True]

    def records(payload: bytes, where: str) -> list[bytes]:
        if payload == b"I,N,2" and away:
            away.pop()
            raise OSError("the registry is away")
        return read(payload, where)

    monkeypatch.setattr(made._incoming, "records", records)
    assert values(made.poll()) == rows(1)
    with pytest.raises(OSError, match="away"):
        made.poll()
    assert values(made.poll()) == rows(2, 3)


def test_what_is_no_row_becomes_a_record_that_says_where_it_was(far: FarTopic) -> None:
    far.values[1] = [None, b'"x', *rows(1)]
    first, second, third = values(opened().poll())
    assert first.startswith(b'not a row,"topic far, partition 1, offset 0: the message is empty"')
    assert second.startswith(b'not a row,"topic far, partition 1, offset 1: ')
    assert third == b"I,N,1"


def test_secrets_come_from_the_environment_and_are_named_when_they_lack() -> None:
    place = {**KAFKA, "tls": True, "sasl": "SCRAM-SHA-512"}
    topic = KafkaTopic.model_validate(place)
    with pytest.raises(ConfigError, match="sasl SCRAM-SHA-512 needs REMOTE_KAFKA_USERNAME"):
        topic.client_settings({})
    told = {"REMOTE_KAFKA_USERNAME": "u", "REMOTE_KAFKA_PASSWORD": "p", "REMOTE_KAFKA_CA": "pem"}
    assert topic.client_settings(told) == {
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "u",
        "sasl.password": "p",
        "ssl.ca.pem": "pem",
    }
    assert KafkaTopic.model_validate(KAFKA).client_settings(told) == {
        "security.protocol": "plaintext"
    }


def test_messages_that_wait_are_counted_without_markers_at_the_end(far: FarTopic) -> None:
    """The end of a partition that was reached lies behind the markers of transactions."""
    made = opened()
    assert made.behind() is None
    far.values = [rows(1, 2), rows(3)]
    made.poll()
    far.values = [rows(1, 2, 4), rows(3, 5, 6)]
    assert made.behind() == Lag(3, "records")
    made._good(cast(Any, FarMessage(1, 3, None, KafkaError(KafkaError._PARTITION_EOF))))
    assert made.behind() == Lag(1, "records")
    assert made.position.progress(0).position == "far, next offsets 0: 2, 1: 1"
