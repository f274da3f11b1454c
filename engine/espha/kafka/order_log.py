"""The order log `<prefix>.M`: what the active engine decided, batch by batch."""

import contextlib
from collections.abc import Callable, Iterable, Iterator

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition
from pydantic import BaseModel, Field, ValidationError

from espha.kafka.reader import (
    PARTITION,
    STANDSTILL_S,
    LogError,
    Offsets,
    Standstill,
    check,
    read_range,
    reader,
    records_backwards,
)
from espha.protocol.order import FORMAT, OrderRecord

_LOOK_MS = 30
"""For so long a broker waits for a new record before it says that there is none."""
_QUICK_MS = 1
"""The same in a take-over, which waits for that word behind what a dead engine left open."""
_WARM_S = 0.5

_STEP_S = 0.5


class StrayError(LogError):
    """Something else than an engine has written a record to the order log.

    Attributes:
        numbered: it says that it has a number, so it may be an order record that is damaged.
    """

    def __init__(self, text: str, *, numbered: bool = False) -> None:
        super().__init__(text)
        self.numbered = numbered


def _refuse(stray: StrayError) -> None:
    raise stray


class OrderLog:
    """Follows the order log from an offset on, in order, without a gap."""

    def __init__(self, bootstrap: str, topic: str, start: int = 0) -> None:
        self.topic = topic
        self._offsets = Offsets(bootstrap)
        first = self._offsets.first(topic)
        self.cut = range(start, first)
        """Offsets that were asked for and that retention has removed."""
        self._reached = max(start, first)
        self._usual = reader(bootstrap, {topic: self._reached}, _LOOK_MS)
        self._quick = reader(bootstrap, {}, _QUICK_MS)
        self._consumer = self._usual
        self.at_stray: Callable[[StrayError], None] = _refuse
        """Called where a record is no order record, and all before it were returned; it is passed
        over then, unless this raises, or it has a number."""

    @property
    def reached(self) -> int:
        """Offset below which every record has been returned."""
        return self._reached

    def poll(self, timeout: float, limit: int) -> list[OrderRecord]:
        """Wait up to `timeout` seconds for a record; return up to `limit` that are at hand."""
        messages = [message] if (message := self._consumer.poll(timeout)) else []
        if messages:
            messages += self._consumer.consume(limit - 1, 0)
        records = []
        for message in messages:
            if check(message):
                try:
                    records.append(decoded(self.topic, message.offset(), message.value()))
                except StrayError as stray:
                    if records:
                        self._assign(message.offset())
                        break
                    self.at_stray(stray)
                    if stray.numbered:
                        raise
                self._reached = message.offset() + 1
            elif message.error().code() == KafkaError._PARTITION_EOF:
                self._reached = max(self._reached, message.offset())
        return records

    @property
    def behind(self) -> int:
        """How many order records are known to be there that have not been returned, about.

        Costs no question to a broker: each answer with records says where the end is. A record
        takes two offsets, one for the marker of its transaction.
        """
        place = TopicPartition(self.topic, PARTITION)
        _, high = self._consumer.get_watermark_offsets(place, cached=True)
        return max(0, (int(high) - self._reached) // 2)

    def at(self, end: int) -> bool:
        """Tell whether every record below the stable offset `end` has been returned.

        Only transactions write here, one after the other, so what stands right before a stable
        offset is a transaction's marker. The client says only with its next look, when the broker
        has waited in vain for more, that it has passed that one.
        """
        return self._reached >= end - 1

    def end(self, limit_s: float = STANDSTILL_S) -> int:
        """Return the last stable offset of the log.

        Raises:
            LogError: the brokers have not answered for `limit_s`.
        """
        return self._offsets.end(self.topic, limit_s)

    def read_to(self, end: int, limit: int) -> Iterator[list[OrderRecord]]:
        """Yield what stands before offset `end` and has not been returned yet.

        Raises:
            LogError: records were returned that the log no longer holds, or nothing comes any more.
        """
        # The marker behind the last record may come a moment after the record.
        if self._reached > end + 1:
            raise LogError(
                f"topic {self.topic} ends at offset {end}, and records up to {self._reached - 1} "
                "were read: it has lost its end, so the state is rebuilt from what is there"
            )
        standstill = Standstill(f"topic {self.topic}, waiting for offset {end}")
        while not self.at(end):
            standstill.look(self._reached)
            yield self.poll(_STEP_S, limit)

    def hurry(self) -> None:
        """Have the broker say at once from now on when there is nothing more; costs it time."""
        self._usual.unassign()
        self._consumer = self._quick
        self._assign(self._reached)

    def keep_warm(self) -> None:
        """Keep what `hurry` needs from growing cold: it shall cost no connection then."""
        with contextlib.suppress(KafkaException):
            self._quick.assign([TopicPartition(self.topic, PARTITION, self._reached)])
            self._quick.poll(_WARM_S)
            self._quick.unassign()

    def reopen(self, start: int) -> None:
        """Follow again, from offset `start` on."""
        self._reached = start
        self._consumer = self._usual
        self._assign(start)

    def close(self) -> None:
        """Stop following; `reopen` costs little then."""
        self._consumer.unassign()

    def _assign(self, start: int) -> None:
        self._consumer.assign([TopicPartition(self.topic, PARTITION, start)])


def resumed_behind(bootstrap: str, topic: str, offset: int) -> dict[str, int]:
    """Return which inputs an order log has go on, and where, before it names any of their records.

    Args:
        bootstrap: Kafka's servers.
        topic: the order log.
        offset: from there on it is read.
    """
    offsets = Offsets(bootstrap)
    found: dict[str, int] = {}
    named: set[str] = set()
    start = max(offset, offsets.first(topic))
    for record in order_records(topic, read_range(bootstrap, topic, start, offsets.end(topic))):
        found |= {one.topic: one.offset for one in record.resumes if one.topic not in named}
        named |= {one.topic for one in record.inputs}
    return found


def last_order_record(bootstrap: str, topic: str, end: int | None = None) -> OrderRecord | None:
    """Return the newest order record before offset `end` (None: of all); None: there is none."""
    return next(order_records(topic, records_backwards(bootstrap, topic, end)), None)


def order_records(topic: str, messages: Iterable[Message]) -> Iterator[OrderRecord]:
    """Yield the order records among the records of an order log."""
    for message in messages:
        try:
            yield decoded(topic, message.offset(), message.value())
        except StrayError as stray:
            if stray.numbered:
                raise


def decoded(topic: str, offset: int, value: bytes) -> OrderRecord:
    """Return the order record that stands at an offset.

    Raises:
        StrayError: it is none, or is damaged.
        LogError: it is of a format that this espha does not know.
    """
    try:
        record = OrderRecord.model_validate_json(value)
        if record.format <= FORMAT:
            return record
        newer: _Newer | None = _Newer(format=record.format, runtime=record.runtime)
    except ValidationError as error:
        wrong, newer = error.error_count(), _newer(value)
    place = f"topic {topic}, offset {offset}"
    if newer:
        raise LogError(
            f"{place}: an order record of format {newer.format}, and this espha reads formats "
            f"1 to {FORMAT}. It takes the espha that wrote it, or a newer one: {newer.runtime}"
        )
    text = f"{place}: not an order record ({wrong} errors); something else wrote to this topic"
    raise StrayError(text, numbered=_is_numbered(value))


class _Newer(BaseModel):
    """What every format has: enough to say who can read it."""

    format: int = Field(gt=FORMAT)
    runtime: str


class _Numbered(BaseModel):
    """What every order record has, and nothing else on its topic: to pass it would leave a gap."""

    sequence: int


def _is_numbered(value: bytes) -> bool:
    try:
        return bool(_Numbered.model_validate_json(value))
    except ValidationError:
        return False


def _newer(value: bytes) -> _Newer | None:
    try:
        return _Newer.model_validate_json(value)
    except ValidationError:
        return None
