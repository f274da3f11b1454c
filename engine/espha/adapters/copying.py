"""Output adapters: a topic's committed records, each one once, to a target."""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import structlog
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from espha.adapters.common import problem_of
from espha.adapters.config import Job
from espha.backoff import Backoff
from espha.kafka.reader import PARTITION, Offsets, check, open_reader, records_behind
from espha.protocol.records import ID_HEADER
from espha.protocol.states import EngineState, Step
from espha.protocol.status import Lag, OutputProgress

_BATCH = 5_000
_BATCH_BYTES = 4 << 20
_STEP = 4
"""Records taken at once: so many of the largest ones at most come beyond `_BATCH_BYTES`."""

_LOG = structlog.get_logger()


class Taken(NamedTuple):
    """A record of the topic.

    Attributes:
        offset: where it is there.
        value: what it says.
        id: the message id, the same whenever the record is computed; empty: it has none.
    """

    offset: int
    value: bytes
    id: bytes = b""


class Waiting(OSError):  # noqa: N818 - it names a state
    """The other side is not there. It was waited for, so the next try comes without a pause."""


class Target(Protocol):
    """Where an output adapter writes to.

    Each call must end within a quarter of an hour, or have the job's `doing.moved` called by then,
    again and again: an adapter whose target hangs is replaced.
    """

    @property
    def offset(self) -> int:
        """Offset of the first record that it does not have."""
        ...

    def append(self, records: Sequence[Taken], offset: int) -> None:
        """Add records for good, and remember that it has all below `offset`.

        A target that gathers records keeps them until it has enough; `offset` then stays behind.

        Raises:
            ConfigError: people have to change something; nothing was added.
            OSError: nothing was added; the same call may do better later.
        """
        ...

    def settle(self) -> None:
        """Do what is due by now; called about once a second at least.

        Raises:
            ConfigError, OSError: as with `append`.
        """
        ...

    def progress(self, rows: int) -> OutputProgress:
        """Return what the status shows of it; `rows`: written in this life."""
        ...


OpenTarget = Callable[[str], Target]
"""Opens a target for the topic with this id.

Raises ConfigError where people have to change something, and OSError (BlockingIOError: another
adapter has it) where waiting may help.
"""


def copy(job: Job, name: str, open_target: OpenTarget) -> None:
    """Run an output adapter until the process is ended.

    Args:
        job: what to work with.
        name: of the target, as a user knows it.
        open_target: opens it.

    Raises:
        ConfigError: people have to change something.
        LogError: Kafka refuses.
    """
    _Copier(job, name).run(open_target)


class _Copier:
    """The loop of an output adapter."""

    def __init__(self, job: Job, name: str) -> None:
        self._job, self._name, self._control = job, name, job.control
        self._step = partial(job.control.doing.within, Step.TARGET)
        self._pause, self._backoff = threading.Event(), Backoff()
        self._rows = 0
        self._target: Target | None = None
        self._consumer: Consumer | None = None
        self._taken = self._end = 0

    def run(self, open_target: OpenTarget) -> None:
        topic, offsets = self._job.topic, Offsets(self._job.bootstrap)
        target = self._target = self._open(open_target, offsets.topic_id(topic))
        first = offsets.first(topic)
        if target.offset < first:
            _LOG.warning(
                "retention has removed records that were never written to the target",
                topic=topic,
                wanted=target.offset,
                first=first,
            )
        start = max(target.offset, first)
        self._append(target, [], start)
        self._report()
        with open_reader(self._job.bootstrap, {topic: start}) as consumer:
            self._consumer, self._taken = consumer, start
            while True:
                records = self._take(consumer)
                if records:
                    self._taken = records[-1].offset + 1
                    self._append(target, records, self._taken)
                    self._rows += len(records)
                self._do(target.settle)
                self._report()

    def _open(self, open_target: OpenTarget, identity: str) -> Target:
        while True:
            try:
                with self._step():
                    return open_target(identity)
            except BlockingIOError:
                self._trouble(f"{self._name}: another adapter writes to it; waiting for its end")
            except OSError as error:
                self._trouble(problem_of(self._name, error), waited=isinstance(error, Waiting))

    def _append(self, target: Target, records: Sequence[Taken], offset: int) -> None:
        self._do(lambda: target.append(records, offset))

    def _do(self, work: Callable[[], None]) -> None:
        """Do it, as often as it takes."""
        while True:
            before = self._reached()
            try:
                with self._step():
                    work()
            except OSError as error:
                moved = self._reached() > before  # some got through: the other side is there
                if moved:
                    self._backoff.reset()
                waited = isinstance(error, Waiting)
                self._trouble(problem_of(self._name, error), waited=waited, in_sync=moved)
            else:
                self._backoff.reset()
                return

    def _reached(self) -> int:
        return self._target.offset if self._target else 0

    def _take(self, consumer: Consumer) -> list[Taken]:
        """Wait for a record, then take what else is there, as far as memory shall go."""
        waiting = consumer.poll(1.0)
        more = [] if waiting is None else [waiting]
        found: list[Taken] = []
        size = 0
        while more:
            for message in filter(self._is_record, more):
                found.append(Taken(_offset(message), message.value() or b"", _id(message)))
                size += len(found[-1].value)
            if len(found) >= _BATCH or size >= _BATCH_BYTES:
                break
            more = consumer.consume(_STEP, 0)
        return found

    def _is_record(self, message: Message) -> bool:
        if check(message):
            return True
        if message.error().code() == KafkaError._PARTITION_EOF:
            self._end = _offset(message)
        return False

    def _progress(self) -> OutputProgress:
        target = self._target
        if target is None:
            return OutputProgress(rows=self._rows)
        told = target.progress(self._rows)
        if not told.position:
            told = told.model_copy(update={"position": f"offset {told.offset}"})
        return told.with_lag(self._behind(target.offset))

    def _behind(self, offset: int) -> Lag | None:
        """Return how many records the target does not have, as far as the last answer tells."""
        if self._consumer is None:
            return None
        place = TopicPartition(self._job.topic, PARTITION)
        reached = max(offset, self._end) if offset >= self._taken else offset
        return Lag(records_behind(self._consumer, place, reached), "records")

    def _trouble(self, message: str, *, waited: bool = False, in_sync: bool = False) -> None:
        _LOG.error(message)
        self._control.report(EngineState.ACTIVE, in_sync, self._progress(), message=message)
        if not waited:
            self._pause.wait(self._backoff.next())

    def _report(self) -> None:
        self._control.report(EngineState.ACTIVE, True, self._progress())


def _offset(message: Message) -> int:
    offset: int = message.offset()
    return offset


def _id(message: Message) -> bytes:
    for name, value in message.headers() or ():
        if name == ID_HEADER:
            return value or b""
    return b""
