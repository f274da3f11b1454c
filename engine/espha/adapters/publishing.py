"""Input adapters: publish the rows of a source, each one once, whoever of the pair does it.

Standby: read this adapter's last committed position back from the topic; follow the active one from
there, so that the source is open where that one stands. Wait to be elected.
Active: fence the other one; read its last positions; from there, publish what the source has. Row
and position are one record, so they cannot disagree.
No longer active (its pod ends): commit what is under way, and end.

Rows that nobody needs any more are removed from the topic. So each transaction also leaves its last
position on a compacted topic, `<prefix>.P`: that is what a standby follows, and what counts where
the topic has no row of the adapter.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, Self

import structlog
from confluent_kafka import KafkaError, Message

from espha.adapters.common import problem_of
from espha.adapters.config import ConfigError, Held, Job
from espha.adapters.formats.refused import is_not_a_row
from espha.backoff import Backoff
from espha.kafka.reader import Offsets, Standstill, check, last_matching, reader
from espha.kafka.writer import FencedWriter, Record
from espha.protocol.activity import Doing
from espha.protocol.records import SOURCE_HEADER, position_key
from espha.protocol.sizes import ROW_BYTES, TRANSACTION_BYTES
from espha.protocol.states import EngineState, Role, Step
from espha.protocol.status import InputProgress, Lag

_POLL_S = 0.02
_FOLLOW_S = 0.05
_HELD_S = 1.0
_FETCH_MS = 20
_AT_ONCE = 1000
_LOOK_S = 1.0
"""How often the status says anew how much is waiting."""
_TRANSACTION_S = 0.2
"""A transaction is closed then, though more rows are there: others wait for its rows."""

_LOG = structlog.get_logger()


class Position(Protocol):
    """How far a source was read; its header names the adapter (`adapter`)."""

    def to_header(self) -> bytes:
        """Return it as an object of JSON."""
        ...

    def progress(self, rows: int) -> InputProgress:
        """Return what the status shows of it; `rows`: published in this life."""
        ...


class Source(Protocol):
    """Where an input adapter takes rows from.

    Each call must end within five minutes, or have the job's `doing.moved` called by then, again
    and again: an adapter whose source hangs is replaced.

    Attributes:
        name: as a user knows it.
    """

    name: str

    @property
    def position(self) -> Position:
        """Where the next poll goes on."""
        ...

    def poll(self) -> Sequence[tuple[bytes, Position]]:
        """Return the records that are there now, often none, each with the position behind it.

        Raises:
            Held: they have to be waited for.
            OSError: they cannot be read at the moment.
        """
        ...

    def advance(self, position: Mapping[str, Any], /) -> None:
        """Go to a position that another adapter has published; errors wait for the next poll."""
        ...

    def behind(self) -> Lag | None:
        """Return what is there and was not polled; None: nobody knows. It must cost little."""
        ...

    def committed(self) -> None:
        """Learn that all that `poll` has returned is committed: whoever waits may be told."""
        ...

    def close(self) -> None:
        """Let go of what is open; the next poll opens it again."""
        ...


OpenSource = Callable[[Mapping[str, Any] | None], Source]
"""Opens a source behind a position that `Position.to_header` wrote; None: at its beginning."""


def publish(job: Job, open_source: OpenSource) -> None:
    """Run an input adapter until it is active no longer, or the process is ended.

    Raises:
        ConfigError: the adapter's position is unknown, or a row is too large.
        LogError, WriterFailed: Kafka refuses.
    """
    writer = FencedWriter(job.bootstrap, f"{job.prefix}.in.{job.name}")
    with Positions(job.bootstrap, job.positions, job.topic, job.name) as positions:
        source = _Watched(job.control.doing, open_source, positions.last)
        writer.learn_leaders(job.topic, job.positions)
        lag = _Lag(source)
        job.control.report(EngineState.STANDBY, True, source.position.progress(0))
        while not job.control.wait_active(_FOLLOW_S):
            moved = positions.follow()
            if moved:
                source.advance(positions.last or {})
            if moved or lag.due:
                progress = source.position.progress(0).with_lag(lag.now())
                job.control.report(EngineState.STANDBY, True, progress)
        writer.fence()
        if positions.read_to_end():
            source.advance(positions.last or {})
    if not positions.kept:
        # Now, and not with the first row: without it no row of the topic is ever removed.
        writer.commit([_kept(job, source.position)])
    _LOG.info("active", topic=job.topic, source=source.name)
    _Publisher(job, source, writer).run()


class _Watched:
    """A source of which each call is a step: see `Source`, and `espha.ha.progress_judge`."""

    def __init__(
        self, doing: Doing, open_source: OpenSource, position: Mapping[str, Any] | None
    ) -> None:
        self._step = partial(doing.within, Step.SOURCE)
        with self._step():
            self._source = open_source(position)
        self.name = self._source.name

    @property
    def position(self) -> Position:
        with self._step():
            return self._source.position

    def poll(self) -> Sequence[tuple[bytes, Position]]:
        with self._step():
            return self._source.poll()

    def advance(self, position: Mapping[str, Any], /) -> None:
        with self._step():
            self._source.advance(position)

    def behind(self) -> Lag | None:
        with self._step():
            return self._source.behind()

    def committed(self) -> None:
        with self._step():
            self._source.committed()

    def close(self) -> None:
        with self._step():
            self._source.close()


class Positions:
    """An adapter's last position, as the topic of positions tells it from now on.

    Attributes:
        last: the newest one that is known; None: there is none.
        kept: whether there is one on the topic of positions.
    """

    def __init__(self, bootstrap: str, positions: str, topic: str, adapter: str) -> None:
        """Read the last position.

        Raises:
            ConfigError, LogError: see `last_position`.
        """
        self._positions, self._key = positions, position_key(topic, adapter)
        self._find = partial(last_position, bootstrap, positions, topic, adapter)
        self._topic, self._offsets = topic, Offsets(bootstrap)
        self._reached = self._offsets.end(positions)
        self._hidden = self._offsets.ends(topic).open
        kept = kept_position(bootstrap, positions, topic, adapter)
        self.kept = kept is not None
        self.last = self._find(kept)
        self._consumer = reader(bootstrap, {positions: self._reached}, _FETCH_MS)

    def __enter__(self) -> Self:
        """Return this."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections; that takes a while, and nobody waits for it."""
        threading.Thread(target=self._consumer.close, name="close-positions", daemon=True).start()

    def follow(self, wait_s: float = 0.0) -> bool:
        """Take what has come, waiting for it as long as said; tell whether the position moved."""
        # `consume` would wait until so many have come.
        first = self._consumer.poll(wait_s)
        if first is None:
            return False
        moved = [self._take(one) for one in (first, *self._consumer.consume(_AT_ONCE, 0))]
        return any(moved)

    def _take(self, message: Message) -> bool:
        if not check(message):
            if message.error().code() == KafkaError._PARTITION_EOF:
                self._reached = max(self._reached, message.offset())
            return False
        self._reached = message.offset() + 1
        if message.key() != self._key or not message.value():
            return False
        self.last = json.loads(message.value())
        self.kept = True
        # It is of the transaction that was open then, or of a later one.
        self._hidden = False
        return True

    def read_to_end(self) -> bool:
        """Take all that is committed; tell whether the position moved.

        It is for whoever has fenced the other one, so that nothing of this adapter is open. The
        deployment's other adapters write to these topics, too: behind the begin of a transaction
        that is open nobody sees what is committed, so its end is waited for.

        Raises:
            ConfigError, LogError: see `last_position`; or a transaction stays open.
        """
        end, before = self._offsets.settled(self._positions), self.last
        standstill = Standstill(f"topic {self._positions}")
        while self._reached < end:
            self.follow(_FETCH_MS / 1000)
            standstill.look(self._reached)
        if self._hidden:  # the last row was perhaps behind an open transaction
            self._offsets.settled(self._topic)
            self.last = self._find(self.last if self.kept else None)
        return self.last != before


def last_position(
    bootstrap: str, positions: str, topic: str, adapter: str, kept: dict[str, Any] | None
) -> dict[str, Any] | None:
    """Return the position behind the last row that an adapter has published; None: it has none.

    Args:
        bootstrap: Kafka's servers.
        positions: topic of positions.
        topic: where the adapter publishes.
        adapter: its name.
        kept: its position on the topic of positions; None: there is none.

    Raises:
        ConfigError: retention has removed records, and with them perhaps the position.
    """
    # Rows first: an adapter of a version that keeps no positions may have been at work.
    found = last_matching(bootstrap, topic, lambda message: _adapter_of(message) == adapter)
    if found is not None:
        return _position_of(found)
    offsets = Offsets(bootstrap)
    if kept is None and offsets.first(topic) > 0 and offsets.end(positions) == 0:
        raise ConfigError(
            f"topic {topic}: retention has removed records from before positions were kept on "
            f"topic {positions}, and perhaps the last position of adapter {adapter!r}, so nobody "
            "knows which rows were published. Write any record to that topic to publish everything "
            "from the beginning"
        )
    return kept


def kept_position(
    bootstrap: str, positions: str, topic: str, adapter: str
) -> dict[str, Any] | None:
    """Return an adapter's position on the topic of positions; None: there is none."""
    key = position_key(topic, adapter)
    found = last_matching(bootstrap, positions, lambda message: message.key() == key)
    if found is None:
        return None
    position: dict[str, Any] = json.loads(found.value() or b"null")
    return position


def _kept(job: Job, position: Position) -> Record:
    key = position_key(job.topic, job.name)
    return Record(job.positions, position.to_header(), key=key)


def _position_of(message: Message) -> dict[str, Any] | None:
    """Return the position that a record carries; None: no adapter has written it."""
    header = dict(message.headers() or ()).get(SOURCE_HEADER)
    if header is None:
        return None
    position: dict[str, Any] = json.loads(header)
    return position


def _adapter_of(message: Message) -> str | None:
    position = _position_of(message)
    return position["adapter"] if position else None


class _Publisher:
    """The loop of an active input adapter."""

    def __init__(self, job: Job, source: Source, writer: FencedWriter) -> None:
        self._job, self._topic, self._control = job, job.topic, job.control
        self._source, self._writer = source, writer
        self._rows = self._rejected = 0
        self._told = ""
        self._lag = _Lag(source)

    def run(self) -> None:
        pause, backoff = threading.Event(), Backoff()
        self._report(self._source.position)
        while self._control.role is Role.ACTIVE:
            try:
                if self._control.proof_wanted.is_set():
                    self._prove()
                found = self._transaction()
            except Held as held:
                self._say(f"{self._source.name}: {held}")
                pause.wait(min(backoff.next(), _HELD_S))
                continue
            except OSError as error:
                self._source.close()
                self._say(problem_of(self._source.name, error))
                pause.wait(backoff.next())
                continue
            backoff.reset()
            if found:
                rows = [self._record(value, position) for value, position in found]
                self._writer.commit([_kept(self._job, found[-1][1]), *rows])
                self._source.committed()
                self._rows += len(found)
                self._rejected += sum(is_not_a_row(value) for value, _ in found)
                self._report(found[-1][1])
            else:
                if self._told or self._lag.due:
                    self._report(self._source.position)
                pause.wait(_POLL_S)  # there is no event for "a file grew" on network volumes

    def _prove(self) -> None:
        """Commit without rows: one that was replaced while it had none learns it by that."""
        self._control.proof_wanted.clear()
        self._writer.commit([_kept(self._job, self._source.position)])

    def _transaction(self) -> list[tuple[bytes, Position]]:
        """Return what goes into one transaction: what is there, within bounds."""
        deadline = time.monotonic() + _TRANSACTION_S
        found = list(self._source.poll())
        size = sum(len(value) for value, _ in found)
        while found and size < TRANSACTION_BYTES and time.monotonic() < deadline:
            try:
                more = self._source.poll()
            except (Held, OSError):
                break  # the next poll says it again
            if not more:
                break
            size += sum(len(value) for value, _ in more)
            found += more
        return found

    def _record(self, value: bytes, position: Position) -> Record:
        if len(value) > ROW_BYTES:
            line = position.progress(0).line
            raise ConfigError(
                f"{self._source.name}: the row that ends in line {line} has {len(value)} bytes, "
                f"and {ROW_BYTES} at most can be published; is there a quote that nothing closes?"
            )
        return Record(self._topic, value, ((SOURCE_HEADER, position.to_header()),))

    def _report(self, position: Position) -> None:
        self._told = ""
        self._control.report(EngineState.ACTIVE, True, self._progress(position))

    def _progress(self, position: Position) -> InputProgress:
        told = position.progress(self._rows).with_lag(self._lag.now())
        return told.model_copy(update={"rejected": self._rejected})

    def _say(self, message: str) -> None:
        if message != self._told:
            self._told = message
            _LOG.error(message)
            progress = self._progress(self._source.position)
            self._control.report(EngineState.ACTIVE, True, progress, message=message)


class _Lag:
    """How much is waiting in a source, as of lately: to look costs something."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._looked = -_LOOK_S
        self._known: Lag | None = None

    @property
    def due(self) -> bool:
        """Whether it is time to look again."""
        return time.monotonic() - self._looked >= _LOOK_S

    def now(self) -> Lag | None:
        """Return it; None: nobody knows."""
        if self.due:
            self._looked = time.monotonic()
            try:
                self._known = self._source.behind()
            except OSError:
                self._known = None
        return self._known
