"""A topic of another cluster: rows and position in one transaction of that cluster."""

import errno
import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Final

import structlog
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic

from espha.adapters.config import ConfigError, Job
from espha.adapters.copying import Taken
from espha.adapters.formats.outgoing import outgoing
from espha.adapters.kafka_output.spec import OutputKafka
from espha.adapters.output_records import Rejected
from espha.connectors.files import record_style
from espha.kafka.reader import CLIENT_TUNING, LogError, Offsets, last_matching
from espha.kafka.writer import (
    ANY_PARTITION,
    Fenced,
    FencedWriter,
    Record,
    TooLarge,
    WriterFailed,
)
from espha.model import Window
from espha.model.events import BadRecord
from espha.protocol.records import ID_HEADER, position_key
from espha.protocol.status import OutputProgress
from espha.records.text import json_object, quoted_row, split

_ANSWER_S: Final = 10.0
_LOG = structlog.get_logger()
_POSITIONS: Final = {"cleanup.policy": "compact", "retention.ms": "-1"}


class KafkaTarget:
    """See `espha.adapters.copying.Target`."""

    def __init__(self, job: Job, kafka: OutputKafka, identity: str) -> None:
        """Connect, keep an earlier process of this adapter from writing, and read its position.

        Raises:
            ConfigError: a secret is missing, or the position is one in another topic.
            OSError: the cluster is away, or refuses.
        """
        self._job, self._kafka, self._identity = job, kafka, identity
        self._settings = kafka.client_settings()
        self._key = position_key(f"{job.prefix} {job.topic}", job.name)
        self._outgoing = outgoing(job.window, kafka.format)
        self._key_of = key_reader(job.window) if kafka.keyed else _no_key
        self._rejected = 0
        self.offset = 0
        self._writer: FencedWriter | None = self._open()

    def append(self, records: Sequence[Taken], offset: int) -> None:
        """Write records and position in one transaction; see `espha.adapters.copying.Target`."""
        if self._writer is None:
            self._writer = self._open()
        if offset <= self.offset:
            return  # a commit whose answer was lost has written them
        fresh = [one for one in records if one.offset >= self.offset]
        made = [(one, self._outgoing.payload(one)) for one in fresh]
        rows = [record for one, found in made if (record := self._record(one, found))]
        try:
            self._writer.commit([*rows, self._position(offset)])
        except TooLarge:
            self._writer = None
            largest = max(len(record.value) for record in rows)
            raise ConfigError(
                f"{self._kafka.name} takes no message of {largest} bytes, the largest one up to "
                f"offset {offset} of {self._job.topic}: raise its max.message.bytes"
            ) from None
        except Fenced:
            raise
        except WriterFailed as error:
            self._writer = None  # what became of the transaction, its position tells
            raise OSError(errno.EIO, str(error)) from None
        self.offset = offset
        for _, found in made:
            if isinstance(found, Rejected):
                self._rejected += 1
                _LOG.warning("record rejected", offset=found.offset, reason=found.reason)

    def settle(self) -> None:
        """Nothing is due: what was appended is there."""

    def progress(self, rows: int) -> OutputProgress:
        """Return what the status shows; see `espha.adapters.copying.Target`."""
        return OutputProgress(rows=rows, rejected=self._rejected, offset=self.offset)

    def _record(self, taken: Taken, found: bytes | Rejected) -> Record | None:
        """Return the message for a record; None: its readers could not read what it would be."""
        topic, headers = self._kafka.topic, ((ID_HEADER, taken.id),) if taken.id else ()
        if isinstance(found, Rejected):
            as_json = self._kafka.format.type == "json"
            return Record(topic, found.line(), headers) if as_json else None
        key = self._key_of(taken)
        if key is None:
            return Record(topic, found, headers)
        return Record(topic, found, headers, key, ANY_PARTITION)

    def _position(self, offset: int) -> Record:
        content = {
            "adapter": self._job.name,
            "topic": self._job.topic,
            "id": self._identity,
            "offset": offset,
        }
        value = json.dumps(content, separators=(",", ":")).encode()
        return Record(self._kafka.positions, value, key=self._key)

    def _open(self) -> FencedWriter:
        kafka, job = self._kafka, self._job
        try:
            self._find_topics()
            writer = FencedWriter(
                kafka.servers, f"espha.{job.prefix}.out.{job.name}", self._settings
            )
            writer.fence()
            # Behind the open transactions of other adapters nothing is seen.
            Offsets(kafka.servers, self._settings).settled(kafka.positions)
            found = last_matching(
                kafka.servers,
                kafka.positions,
                lambda message: message.key() == self._key,
                self._settings,
            )
        except KafkaException as error:
            raise OSError(errno.EIO, error.args[0].str()) from None
        except (LogError, WriterFailed) as error:
            raise OSError(errno.EIO, str(error)) from None
        if found is not None:
            self.offset = self._offset_of(json.loads(found.value()))
        return writer

    def _offset_of(self, position: dict[str, Any]) -> int:
        if position["id"] != self._identity:
            raise ConfigError(
                f"{self._kafka.name}: what adapter {self._job.name!r} has written there is of "
                f"another topic that was called {self._job.topic}. To write this one from its "
                "beginning, give the adapter another name"
            )
        return int(position["offset"])

    def _find_topics(self) -> None:
        """Look that the topic is there; make that of the positions where it is not."""
        kafka = self._kafka
        admin = AdminClient({**CLIENT_TUNING, "bootstrap.servers": kafka.servers, **self._settings})
        asked = admin.describe_topics(
            TopicCollection([kafka.topic, kafka.positions]), request_timeout=_ANSWER_S
        )
        if not _is_there(asked[kafka.topic]):
            raise OSError(errno.ENOENT, f"there is no topic {kafka.topic}; make it")
        if not _is_there(asked[kafka.positions]):
            made = admin.create_topics(
                [NewTopic(kafka.positions, 1, config=_POSITIONS)], request_timeout=_ANSWER_S
            )
            made[kafka.positions].result()


def key_reader(window: Window) -> Callable[[Taken], bytes | None]:
    """Return the function that reads the key of a window's record; None: it is no row.

    The key is the fields of the window's key as CSV, in the order of the schema.
    """
    places = [place for place, field in enumerate(window.fields) if field.key]
    names = [field.name for field in window.fields if field.key]
    as_json = record_style(window).format == "json"

    def read(taken: Taken) -> bytes | None:
        try:
            text = taken.value.decode()
            if as_json:
                content = json_object(text)
                cells = [_text(content.get(name)) for name in names]
            else:
                row = split(text.rstrip("\r\n"))[2:]
                cells = [row[place] for place in places]
        except (BadRecord, UnicodeDecodeError, IndexError):
            return None
        return quoted_row(cells).encode()

    return read


def _text(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def _no_key(_: Taken) -> None:
    return None


def _is_there(described: "Future[Any]") -> bool:
    try:
        described.result()
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return False
        raise
    return True
