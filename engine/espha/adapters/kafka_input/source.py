"""Records of a Kafka topic that others write: read on from a position, committed ones only."""

import errno
import threading
import time
from collections.abc import Mapping
from typing import Any, NoReturn

import structlog
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from espha.adapters.config import Held, Job
from espha.adapters.formats.incoming import incoming, topic_form
from espha.adapters.formats.refused import not_a_row
from espha.adapters.kafka_input.position import Position
from espha.adapters.kafka_input.spec import InputKafka
from espha.kafka.reader import (
    CLIENT_TUNING,
    LogError,
    committed_reader,
    described,
    records_behind,
)
from espha.protocol.status import Lag

_AT_ONCE = 100
_POLL_BYTES = 256 << 10
_ANSWER_S = 5.0
_LOOK_S = 10.0
"""How often partitions are looked for that were added to the topic."""
_PASSING = frozenset(
    {
        KafkaError._PARTITION_EOF,
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.REQUEST_TIMED_OUT,
    }
)
"""Errors that the client gets over by itself, as long as one broker answers."""

_LOG = structlog.get_logger()


class KafkaSource:
    """The records as rows; see `espha.adapters.publishing.Source`."""

    def __init__(self, job: Job, kafka: InputKafka, found: Mapping[str, Any] | None) -> None:
        """Read on from a position that `Position.to_header` wrote; None: there is none.

        Raises:
            ConfigError: a secret is missing.
            LogError: the adapter begins with the end of the topic, and no broker tells it.
        """
        self.name = kafka.name
        self._kafka = kafka
        self._settings = {
            **CLIENT_TUNING,
            "bootstrap.servers": kafka.servers,
            **kafka.client_settings(),
        }
        self._incoming = incoming(job.window, kafka.format)
        self._form = topic_form(job.window)
        self._consumer: Consumer | None = None
        self._partitions: set[int] = set()
        self._looked = 0.0
        self._trouble: KafkaError | None = None
        self._offsets: dict[int, int] = {}
        self._ends_seen: dict[int, int] = {}
        self._start = Position(job.name, kafka.topic)
        if found is not None:
            self.advance(found)
        elif kafka.start == "last":
            self._begin_at_end()

    def _begin_at_end(self) -> None:
        try:
            self._connect(at_end=True)
        except (OSError, Held) as error:
            raise LogError(f"{self.name}: {error}") from None

    @property
    def position(self) -> Position:
        """Where the next poll goes on."""
        start = self._start
        return Position(
            start.adapter,
            start.topic,
            start.identity,
            dict(self._offsets),
            generation=start.generation,
        )

    def advance(self, position: Mapping[str, Any]) -> None:
        """Go to a position that another adapter has published."""
        self.close()
        self._start = Position.from_object(position)
        self._offsets = dict(self._start.offsets or {})

    def behind(self) -> Lag | None:
        """Return how many messages wait, as far as the last answer of each broker tells."""
        if self._consumer is None:
            return None
        count = 0
        for partition in self._partitions:
            place = TopicPartition(self._kafka.topic, partition)
            reached = max(self._offsets.get(partition, 0), self._ends_seen.get(partition, 0))
            count += records_behind(self._consumer, place, reached)
        return Lag(count, "records")

    def committed(self) -> None:
        """Nobody waits for it: the position is ours."""

    def close(self) -> None:
        """Let go of the connection; the next poll makes another one."""
        if self._consumer is not None:
            consumer, self._consumer = self._consumer, None
            threading.Thread(target=consumer.close, name="close-source", daemon=True).start()

    def poll(self) -> list[tuple[bytes, Position]]:
        """Return what is there now, about 256 kB at most.

        Raises:
            Held: the topic does not hold what comes next.
            OSError: the cluster is away, or refuses.
        """
        consumer = self._consumer or self._connect()
        if self._trouble:
            self._fail(self._trouble)
        if time.monotonic() - self._looked > _LOOK_S:
            self._add_partitions(consumer)
        rows = self._take(consumer)
        if rows:
            value, last = rows[-1]
            rows[-1] = value, _whole(last, self.position)
        elif self._trouble:
            self._fail(self._trouble)
        return rows

    def _take(self, consumer: Consumer) -> list[tuple[bytes, Position]]:
        rows: list[tuple[bytes, Position]] = []
        size = 0
        while size < _POLL_BYTES:
            messages = [one for one in consumer.consume(_AT_ONCE, 0) if self._good(one)]
            for message in messages:
                try:
                    found = self._rows(message)
                except OSError:
                    # It cannot be read now: what came before it is published, and it comes again.
                    self.close()
                    if not rows:
                        raise
                    return rows
                size += len(message.value() or b"")
                rows += found
            if not messages:
                break
        return rows

    def _rows(self, message: Message) -> list[tuple[bytes, Position]]:
        partition, offset, value = message.partition(), message.offset(), message.value()
        if offset < self._offsets.get(partition, 0):
            return []
        where = f"topic {self._kafka.topic}, partition {partition}, offset {offset}"
        records = self._incoming.records(value, where) if value else []
        if not records:
            records = [not_a_row(f"{where}: the message is empty", value or b"", self._form)]
        self._offsets[partition] = offset + 1
        light = Position(self._start.adapter, self._kafka.topic, "", None, partition, offset)
        return [(record, light) for record in records]

    def _good(self, message: Message) -> bool:
        error = message.error()
        if error is None:
            return True
        if error.code() == KafkaError._PARTITION_EOF:
            self._ends_seen[message.partition()] = message.offset()
        if error.code() in _PASSING and not error.fatal():
            return False
        # What came before it is good: it is said when that is published.
        self._trouble = self._trouble or error
        return False

    def _connect(self, *, at_end: bool = False) -> Consumer:
        """Connect, and assign all partitions at the position."""
        self._trouble, self._ends_seen = None, {}
        consumer = committed_reader(
            {
                **self._settings,
                "group.id": "espha-reader",  # required by the client, unused
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 20,
                "fetch.max.bytes": 8 << 20,
                "queued.max.messages.kbytes": 16_384,
            }
        )
        try:
            partitions = self._ask_partitions(consumer)
            self._recognise(self._identity())
            if at_end:
                self._offsets = {one: self._ends(consumer, one)[1] for one in partitions}
            consumer.assign(self._places(consumer, partitions))
        except (KafkaException, OSError, Held) as error:
            threading.Thread(target=consumer.close, name="close-source", daemon=True).start()
            if isinstance(error, KafkaException):
                self._fail(error.args[0])
            raise
        self._consumer, self._partitions, self._looked = consumer, partitions, time.monotonic()
        return consumer

    def _ask_partitions(self, consumer: Consumer) -> set[int]:
        topic = self._kafka.topic
        found = consumer.list_topics(topic, _ANSWER_S).topics[topic]
        if found.error is not None:
            raise KafkaException(found.error)
        return set(found.partitions)

    def _add_partitions(self, consumer: Consumer) -> None:
        self._looked = time.monotonic()
        try:
            new = self._ask_partitions(consumer) - self._partitions
        except KafkaException:
            return  # the consumer notices itself what lasts
        if new:
            _LOG.info("partitions were added", topic=self._kafka.topic, partitions=sorted(new))
            consumer.incremental_assign(self._places(consumer, new))
            self._partitions |= new

    def _identity(self) -> str:
        """Return Kafka's id of the topic; empty: the cluster tells none."""
        found = described(AdminClient(self._settings), self._kafka.topic, _ANSWER_S)
        identity = str(found.topic_id)
        return "" if set(identity) <= {"A", "="} else identity

    def _recognise(self, identity: str) -> None:
        """Begin anew where the topic is not the one that the position is about."""
        start, topic = self._start, self._kafka.topic
        known = start.identity or identity
        if start.topic == topic and known == (identity or known):
            self._start = Position(start.adapter, topic, known, None, generation=start.generation)
            return
        _LOG.warning(
            "this is another topic than the one that was read: it is read from its beginning",
            topic=topic,
            before=start.topic,
            generation=start.generation + 1,
        )
        self._offsets = {}
        self._start = Position(
            start.adapter, topic, identity, None, generation=start.generation + 1
        )

    def _places(self, consumer: Consumer, partitions: set[int]) -> list[TopicPartition]:
        """Return where to read on, having looked that this is still there.

        Raises:
            Held: a partition ends before what was published of it.
        """
        places = []
        for partition in sorted(partitions):
            place = self._offsets.get(partition)
            if place is not None:
                first, end = self._ends(consumer, partition)
                if place > end:
                    raise Held(
                        f"partition {partition} ends at offset {end}, but all below {place} was "
                        "published: the topic has lost its end. To go on with what is there, give "
                        "the adapter another name"
                    )
                if place < first:
                    _LOG.warning(
                        "retention has removed records that were never read",
                        topic=self._kafka.topic,
                        partition=partition,
                        wanted=place,
                        first=first,
                    )
                    self._offsets[partition] = place = first
            offset = OFFSET_BEGINNING if place is None else place
            places.append(TopicPartition(self._kafka.topic, partition, offset))
        return places

    def _ends(self, consumer: Consumer, partition: int) -> tuple[int, int]:
        asked = TopicPartition(self._kafka.topic, partition)
        first, end = consumer.get_watermark_offsets(asked, _ANSWER_S)
        return int(first), int(end)

    def _fail(self, error: KafkaError) -> NoReturn:
        self.close()  # the next connection looks what has become of the topic
        raise OSError(errno.EIO, error.str())


def _whole(last: Position, here: Position) -> Position:
    """Return the position behind a record, with all partitions."""
    return Position(
        here.adapter,
        here.topic,
        here.identity,
        here.offsets,
        last.partition,
        last.offset,
        here.generation,
    )
