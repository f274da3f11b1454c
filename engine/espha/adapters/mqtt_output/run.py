"""Publishes the rows of a window to a broker of MQTT.

The broker acknowledges each message, and the position follows on the topic of positions. After a
kill, what was not kept is sent again, under the same ids.
"""

from collections.abc import Sequence
from typing import Final, Protocol

import structlog

from espha.adapters.acknowledged import KeptOffset
from espha.adapters.config import Job
from espha.adapters.copying import Taken, copy
from espha.adapters.formats.outgoing import Outgoing, outgoing
from espha.adapters.mqtt_output.link import Link, Message
from espha.adapters.mqtt_output.spec import OutputMqtt
from espha.adapters.output_records import Rejected
from espha.protocol.status import OutputProgress

_AT_ONCE: Final = 500
"""Messages between two positions that are kept: so many come again after a kill, at most."""
_LOG = structlog.get_logger()


def run(job: Job, given: OutputMqtt) -> None:
    """Run the adapter until the process is ended; see `espha.adapters.config.Runner`."""
    made = outgoing(job.window, given.format)
    link = Link(given, f"espha.{job.prefix}.out.{job.name}")
    name = f"mqtt {given.topic} of {given.broker}"
    as_json = given.format.type == "json"
    copy(job, name, lambda identity: Output(made, link, KeptOffset(job, identity), as_json))


class Way(Protocol):
    """How messages get to the broker."""

    def send(self, messages: Sequence[Message]) -> int:
        """Publish messages; return how many of them, from the first on, are acknowledged.

        Returns all of them, or fewer where the connection has ended: the others are to be sent
        again.

        Raises:
            ConfigError: the broker takes no such message.
            OSError: it is away, or refuses; nothing was acknowledged.
        """
        ...


class Output:
    """Rows as messages; see `espha.adapters.copying.Target`."""

    def __init__(self, made: Outgoing, way: Way, kept: KeptOffset, as_json: bool) -> None:
        """Go on behind what was acknowledged.

        Args:
            made: makes payloads of records.
            way: leads to the broker.
            kept: the position.
            as_json: payloads are JSON, so a record that is no row can be written as well.
        """
        self._made, self._way, self._kept, self._as_json = made, way, kept, as_json
        self._reached = kept.now.offset
        self._rejected = 0

    @property
    def offset(self) -> int:
        """Offset of the first record that was not acknowledged."""
        return self._kept.now.offset

    def append(self, records: Sequence[Taken], offset: int) -> None:
        """Send the records; see `espha.adapters.copying.Target`."""
        rest = [record for record in records if record.offset >= self._reached]
        while rest:
            batch = rest[:_AT_ONCE]
            self._send(batch)
            self._kept.keep(self._reached)
            rest = [record for record in rest if record.offset >= self._reached]
        self._reached = max(self._reached, offset)
        if self._reached > self.offset:
            self._kept.keep(self._reached)

    def settle(self) -> None:
        """Nothing is due: what was appended is acknowledged."""

    def progress(self, rows: int) -> OutputProgress:
        """Return what the status shows; see `espha.adapters.copying.Target`."""
        written = rows - self._rejected
        return OutputProgress(rows=written, rejected=self._rejected, offset=self.offset)

    def _send(self, batch: Sequence[Taken]) -> None:
        made = [(record, self._made.payload(record)) for record in batch]
        written = [
            (record, Message(self._id(record), self._payload(found)))
            for record, found in made
            if self._as_json or not isinstance(found, Rejected)
        ]
        count = self._way.send([message for _, message in written]) if written else 0
        self._reached = written[count][0].offset if count < len(written) else batch[-1].offset + 1
        for record, found in made:
            if isinstance(found, Rejected) and record.offset < self._reached:
                self._rejected += 1
                _LOG.warning("record rejected", offset=found.offset, reason=found.reason)

    def _payload(self, found: bytes | Rejected) -> bytes:
        return found.line() if isinstance(found, Rejected) else found

    def _id(self, record: Taken) -> str:
        """Return the message id, or what tells the record from all others."""
        return record.id.decode() or f"{self._kept.now.topic_id}-{record.offset}"
