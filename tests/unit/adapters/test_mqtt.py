"""Adapters of MQTT, without a broker: acknowledgements, positions, settings and secrets."""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from paho.mqtt.client import MQTTMessage
from pydantic import ValidationError

from espha.adapters.acknowledged import Acknowledged, KeptOffset
from espha.adapters.config import ConfigError
from espha.adapters.copying import Taken
from espha.adapters.formats.outgoing import Outgoing
from espha.adapters.mqtt_broker import MqttBroker
from espha.adapters.mqtt_input.deliveries import Deliveries, Delivery
from espha.adapters.mqtt_input.run import Messages, Position
from espha.adapters.mqtt_input.spec import InputMqtt
from espha.adapters.mqtt_output.link import Message
from espha.adapters.mqtt_output.run import Output
from espha.adapters.mqtt_output.spec import OutputMqtt
from espha.adapters.output_records import Rejected
from espha.adapters.receiving import Parcel
from espha.adapters.remembered import digest

PLACE: Mapping[str, Any] = {"broker": "broker:1883"}


class _Session:
    """What a broker of a session is told."""

    def __init__(self) -> None:
        self.told: list[int] = []
        self.deliveries = Deliveries()

    def connect(self, *, known: bool = True) -> None:
        """Connect again."""
        self.deliveries.end()
        self.deliveries.begin(self.told.append, known=known)

    def send(self, number: int, *, again: bool = False) -> Delivery | None:
        """Send a message."""
        return self.deliveries.take(number, again=again)

    def first(self, number: int) -> Delivery:
        """Send a message that is new."""
        found = self.send(number)
        assert found is not None
        return found


def test_a_message_is_acknowledged_when_its_rows_are_committed() -> None:
    session = _Session()
    session.connect()
    one, two = session.first(1), session.first(2)
    assert session.told == []
    session.deliveries.committed(one)
    session.deliveries.committed(two)
    assert session.told == [1, 2]
    assert session.send(1) is not None  # the number is the next message's now


def test_what_comes_again_before_its_commit_is_taken_once() -> None:
    session = _Session()
    session.connect()
    one = session.first(1)
    session.connect()
    assert session.send(1, again=True) is None
    session.deliveries.committed(one)
    assert session.told == [1]


def test_what_was_committed_without_a_connection_is_acknowledged_when_it_comes_again() -> None:
    session = _Session()
    session.connect()
    one, two = session.first(1), session.first(2)
    session.deliveries.end()
    session.deliveries.committed(one)
    session.connect()
    session.deliveries.committed(two)
    assert session.told == []  # the broker sends both again, whatever it is told meanwhile
    assert session.send(1, again=True) is None
    assert session.send(2, again=True) is None
    assert session.told == [1, 2]


def another_message_comes(session: _Session, before: Delivery) -> None:
    """Have message 1 come, which is not the one that came under that number before."""
    after = session.first(1)
    session.deliveries.committed(before)
    assert session.told == []
    session.deliveries.committed(after)
    assert session.told == [1]


def test_in_a_new_session_a_number_is_another_message() -> None:
    session = _Session()
    session.connect()
    before = session.first(1)
    session.connect(known=False)
    another_message_comes(session, before)


@pytest.mark.parametrize("committed", [True, False])
def test_a_number_that_is_not_sent_again_is_another_message(committed: bool) -> None:
    """A broker may know the session, and not the message: it was restored, or has expired it."""
    session = _Session()
    session.connect()
    before = session.first(1)
    session.deliveries.end()
    if committed:
        session.deliveries.committed(before)
    session.connect(known=True)
    another_message_comes(session, before)


class _AsItIs:
    def records(self, payload: bytes, _: str) -> list[bytes]:
        return [payload]


def test_the_broker_says_whether_it_sends_again() -> None:
    source = Messages(InputMqtt(**PLACE, topic="a"), _AsItIs(), Position("in"), "in")
    waiting = []
    for again in (False, False, True):
        message = MQTTMessage(mid=1)
        message.qos, message.dup = 1, again
        source._take(message)
        waiting.append(source._waiting.qsize())
    assert waiting == [1, 2, 2]


def test_a_message_whose_id_is_known_is_not_published_again() -> None:
    source = Messages(InputMqtt(**PLACE, topic="a", ids=2), _AsItIs(), Position("in"), "in")
    position = source.position
    found: list[int] = []
    for name in ("a", "b", "a", "c", "a", ""):
        parcel = Parcel([b"x"], 1, digest(name) if name else "")
        rows, position = source.accept(parcel, position)
        found.append(len(rows))
    assert found == [1, 1, 0, 1, 1, 1]  # two are remembered
    assert (position.requests, position.rows) == (5, 5)
    assert position.ids == (digest("c"), digest("a"))
    assert position.progress(1).position == "5 messages, 5 rows"
    assert Position.of("in", {"requests": 5, "rows": 5, "ids": " ".join(position.ids)}) == position


class _Kept:
    """A position; what of it was kept lives on."""

    def __init__(self) -> None:
        self.now = Acknowledged("topic", 0)
        self.kept: list[int] = []

    def keep(self, offset: int) -> None:
        self.now = replace(self.now, offset=offset)
        self.kept.append(offset)


class _Payloads:
    """Rejects what is called bad."""

    def payload(self, record: Taken) -> bytes | Rejected:
        if record.value == b"bad":
            return Rejected(record.offset, "it is bad", "bad")
        return record.value


class _Broker:
    """Acknowledges as many messages as it is told to, then fails."""

    def __init__(self, *counts: int) -> None:
        self.taken: list[Message] = []
        self._counts = list(counts)

    def send(self, messages: Sequence[Message]) -> int:
        count = min(self._counts.pop(0), len(messages)) if self._counts else len(messages)
        if not count:
            raise OSError("away")
        self.taken += messages[:count]
        return count


def output(broker: _Broker, kept: _Kept, *, as_json: bool = False) -> Output:
    return Output(cast(Outgoing, _Payloads()), broker, cast(KeptOffset, kept), as_json)


def records(*values: str) -> list[Taken]:
    ids = [b"m0", b""]
    return [Taken(at, value.encode(), ids[at % 2]) for at, value in enumerate(values)]


def test_the_position_follows_what_the_broker_has_acknowledged() -> None:
    kept, broker = _Kept(), _Broker(2, 0)
    target = output(broker, kept)
    rows = records("a", "b", "c", "d")
    with pytest.raises(OSError, match="away"):
        target.append(rows, 5)
    assert kept.kept == [2]
    target.append(rows, 5)
    assert [one.payload for one in broker.taken] == [b"a", b"b", b"c", b"d"]
    assert [one.id for one in broker.taken] == ["m0", "topic-1", "m0", "topic-3"]
    assert kept.kept == [2, 4, 5]


@pytest.mark.parametrize(("as_json", "written"), [(False, 2), (True, 3)])
def test_what_cannot_be_written_is_counted_once(as_json: bool, written: int) -> None:
    kept, broker = _Kept(), _Broker(1, 0)
    target = output(broker, kept, as_json=as_json)
    rows = records("a", "bad", "b")
    with pytest.raises(OSError, match="away"):
        target.append(rows, 3)
    target.append(rows, 3)
    assert len(broker.taken) == written
    assert target.progress(3).rejected == 1
    assert target.progress(3).rows == 2
    assert target.offset == 3


@pytest.mark.parametrize("topic", ["a", "a/b", "+", "#", "a/+/b", "a/#", "+/+", "$share/g/a", "/a"])
def test_topics_to_subscribe_to(topic: str) -> None:
    assert InputMqtt(**PLACE, topic=topic).topic == topic


@pytest.mark.parametrize("topic", ["", "a+", "a#", "a/#/b", "#/a", "a/+b"])
def test_topics_that_cannot_be_are_refused(topic: str) -> None:
    with pytest.raises(ValidationError):
        InputMqtt(**PLACE, topic=topic)
    if topic != "":
        with pytest.raises(ValidationError):
            OutputMqtt(**PLACE, topic=topic)


def test_secrets_come_from_the_environment() -> None:
    plain, encrypted = MqttBroker(**PLACE), MqttBroker(**PLACE, tls=True)
    assert plain.security({"MQTT_CA": "x"}) is None
    assert plain.login({}) is None
    assert plain.login({"MQTT_USERNAME": "u", "MQTT_PASSWORD": "p"}) == ("u", "p")
    assert encrypted.security({}) is not None
    with pytest.raises(ConfigError, match="MQTT_CA is no certificate"):
        encrypted.security({"MQTT_CA": "secret"})
    with pytest.raises(ConfigError, match="MQTT_CERTIFICATE needs MQTT_KEY"):
        encrypted.security({"MQTT_CERTIFICATE": "secret"})
    with pytest.raises(ConfigError, match="no certificate and its key") as said:
        encrypted.security({"MQTT_CERTIFICATE": "secret", "MQTT_KEY": "secret"})
    assert "secret" not in str(said.value)


class _Waiting:
    """Makes records where waiting holds up nobody."""

    def records(self, payload: bytes, where: str) -> list[bytes]:
        assert threading.current_thread() is not threading.main_thread()
        return [payload]


@pytest.mark.parametrize("type_", ["avro", "protobuf"])
def test_a_schema_registry_that_is_waited_for_holds_up_no_connection(type_: str) -> None:
    schema = {"registry": {"url": "http://127.0.0.1:1", "subject": "in"}}
    given = {**PLACE, "topic": "t", "format": {"type": type_, type_: schema}}
    messages = Messages(InputMqtt.model_validate(given), _Waiting(), Position("a"), "")
    assert asyncio.run(messages._rows(b"x", "here")) == [b"x"]
