"""Connectors of class kafka where there is a broker."""

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from espha.connectors.files import record_layout, record_style
from espha.model import Window
from espha.model.events import BadRecord, Event
from espha.offline.arrivals import Arrival
from espha.offline.outside.common import NotReached
from espha.records.text import event_writer, record_reader

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition

SECONDS: Final = 5.0
"""How long to wait for a broker."""

_LACKING: Final = "it needs the package confluent-kafka: pip install espha[engine]"


def consumed(name: str, window: Window, properties: Mapping[str, str]) -> Iterator[Arrival]:
    """Return the records that a topic has by now, as events.

    Raises:
        NotReached: the broker or the topic cannot be reached.
    """
    try:
        from confluent_kafka import KafkaException, TopicPartition

        from espha.kafka.reader import committed_reader
    except ImportError:
        raise NotReached(_LACKING) from None
    topic, partition = _topic(properties), int(properties.get("kafkapartition") or 0)
    settings = {
        **_settings(properties),
        "group.id": properties.get("kafkaconsumergroupid") or "espha-run",
    }
    try:
        consumer = committed_reader(settings)
        place = TopicPartition(topic, partition)
        first, end = consumer.get_watermark_offsets(place, timeout=SECONDS)
    except KafkaException as error:
        raise NotReached(_unreached(properties, error)) from None
    place.offset = _offset(properties.get("kafkainitialoffset", ""), first, end)
    consumer.assign([place])
    return _records(name, window, consumer, place, end)


def _records(
    name: str, window: Window, consumer: "Consumer", place: "TopicPartition", end: int
) -> Iterator[Arrival]:
    from confluent_kafka import KafkaError

    read = record_reader(window, record_layout(window))
    at, quiet = place.offset, time.monotonic() + SECONDS
    try:
        while at < end and time.monotonic() < quiet:
            message = consumer.poll(1.0)
            if message is None:
                continue
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                return
            if error is not None:
                raise OSError(str(error))
            at, quiet = (message.offset() or 0) + 1, time.monotonic() + SECONDS
            try:
                event = read((message.value() or b"").decode("utf-8", "surrogateescape"))
            except BadRecord as refusal:
                yield Arrival(window.path, name, at, None, refusal.reason)
            else:
                yield Arrival(window.path, name, at, event)
    finally:
        consumer.close()


class TopicSink:
    """Writes what leaves a window into a topic; see `espha.offline.sinks.Sink`."""

    def __init__(self, name: str, window: Window, properties: Mapping[str, str]) -> None:
        """Connect.

        Raises:
            NotReached: the broker cannot be reached.
        """
        try:
            from confluent_kafka import KafkaException, Producer
        except ImportError:
            raise NotReached(_LACKING) from None
        self._topic = _topic(properties)
        self.name, self.window, self.goal = name, window.path, f"topic {self._topic}"
        self.written = 0
        self._write = event_writer(window.fields, record_style(window))
        try:
            self._producer = Producer(_settings(properties))
            self._producer.list_topics(timeout=SECONDS)
        except KafkaException as error:
            raise NotReached(_unreached(properties, error)) from None

    def write(self, events: Iterable[Event]) -> None:
        """Write events, in order."""
        for event in events:
            value = self._write(event).encode("utf-8", "surrogateescape")
            try:
                self._producer.produce(self._topic, value)
            except BufferError:
                self._flushed()
                self._producer.produce(self._topic, value)
            self.written += 1

    def flush(self) -> None:
        """Let the broker have everything; raises like `write`."""
        self._flushed()

    def _flushed(self) -> None:
        if self._producer.flush(SECONDS):
            raise OSError("the broker did not take all records")

    def close(self) -> None:
        """End; raises like `write`."""
        self._flushed()


def _topic(properties: Mapping[str, str]) -> str:
    topic = properties.get("kafkatopic", "").strip()
    if not topic or not properties.get("kafkahostport", "").strip():
        raise NotReached("properties 'kafkahostport' and 'kafkatopic' say where the records are")
    return topic


def _settings(properties: Mapping[str, str]) -> dict[str, Any]:
    given = dict(
        pair.partition("=")[::2]
        for pair in properties.get("kafkaglobalconfig", "").split(";")
        if "=" in pair
    )
    return {
        **given,
        "bootstrap.servers": properties["kafkahostport"],
        "socket.timeout.ms": int(SECONDS * 1000),
        "log_level": 0,
        "logger": None,
    }


def _offset(text: str, first: int, end: int) -> int:
    word = text.strip().lower()
    if word in {"largest", "latest"}:
        return end
    return min(max(first, int(word)), end) if word.isdecimal() else first


def _unreached(properties: Mapping[str, str], error: Exception) -> str:
    return f"{properties['kafkahostport']} could not be reached: {error}"
