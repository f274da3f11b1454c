"""The order log `<prefix>.M`: what the active engine decided, batch by batch."""

from collections.abc import Iterator

from confluent_kafka import KafkaError
from pydantic import ValidationError

from espha.kafka.reader import LogError, Offsets, check, reader
from espha.protocol.order import OrderRecord

_LOOK_MS = 30
"""A take-over waits as long until the client says that it is past what a dead engine left open."""


class OrderLog:
    """Follows the order log from an offset on, in order, without a gap."""

    def __init__(self, bootstrap: str, topic: str, start: int = 0) -> None:
        self.topic, self._bootstrap = topic, bootstrap
        self._offsets = Offsets(bootstrap)
        first = self._offsets.first(topic)
        self.cut = range(start, first)
        """Offsets that were asked for and that retention has removed."""
        self._reached = max(start, first)
        self._consumer = reader(bootstrap, {topic: self._reached}, _LOOK_MS)

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
                records.append(self._decode(message.offset(), message.value()))
                self._reached = message.offset() + 1
            elif message.error().code() == KafkaError._PARTITION_EOF:
                self._reached = max(self._reached, message.offset())
        return records

    def at(self, end: int) -> bool:
        """Tell whether every record below the stable offset `end` has been returned.

        Only transactions write here, one after the other, so what stands right before a stable
        offset is a transaction's marker. The client says only with its next look, when the broker
        has waited in vain for more, that it has passed that one.
        """
        return self._reached >= end - 1

    def end(self) -> int:
        """Return the last stable offset of the log."""
        return self._offsets.end(self.topic)

    def read_to(self, end: int, limit: int) -> Iterator[list[OrderRecord]]:
        """Yield what stands before offset `end` and has not been returned yet."""
        while not self.at(end):
            yield self.poll(1.0, limit)

    def reopen(self, start: int) -> None:
        """Follow again, from offset `start` on."""
        self._reached = start
        self._consumer = reader(self._bootstrap, {self.topic: start}, _LOOK_MS)

    def close(self) -> None:
        """Stop following."""
        self._consumer.close()

    def _decode(self, offset: int, value: bytes) -> OrderRecord:
        try:
            return OrderRecord.model_validate_json(value)
        except ValidationError as error:
            raise LogError(
                f"topic {self.topic}, offset {offset}: not an order record ({error.error_count()} "
                "errors); something else wrote to this topic"
            ) from None
