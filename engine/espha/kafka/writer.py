"""The fenced writer: a transactional producer of which only the newest can commit."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from espha.backoff import Backoff
from espha.kafka.reader import (
    CLIENT_TUNING,
    NO_SETTINGS,
    PARTITION,
    ClientSettings,
    LogError,
    Offsets,
    last_matching,
)
from espha.protocol.sizes import MESSAGE_BYTES
from espha.protocol.states import EndReason

_FENCED = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.FENCED_INSTANCE_ID,
    }
)
_Delivered = Callable[[KafkaError | None, Message], None]
_COMMIT_TIMEOUT_S = 30.0
_FENCE_TIMEOUT_S = 30.0
_LEADERS_S = 1.0
_URGE_S, _URGE_AT_MOST_S = 0.01, 0.2
# How long a commit may take while brokers are away. A successor does not wait for it: it fences.
_TRANSACTION_TIMEOUT_MS = 60_000
_SLOW_S = 1.0
"""A commit that took longer may have been asked for twice; the second one may still come. The
client asks again after `socket.timeout.ms`, or when a connection has ended."""


ANY_PARTITION = -1


class WriterFailed(Exception):  # noqa: N818 - it names a state, as `Fenced` does
    """A commit did not succeed for certain: end the process, and read back after a restart."""

    reason = EndReason.COMMIT


class Fenced(WriterFailed):
    """A newer holder of the transactional id exists; this writer can never commit again."""

    reason = EndReason.FENCED


class TooLarge(WriterFailed):
    """The broker takes no record of this size on that topic; nothing of the transaction shows."""

    reason = EndReason.RECORD


class Record(NamedTuple):
    """One record to write."""

    topic: str
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()
    key: bytes | None = None
    """On a compacted topic: what it is about, of which the newest record stays."""
    partition: int = PARTITION
    """`ANY_PARTITION`: that of its key, on a topic of others."""


class FencedWriter:
    """Writes records in transactions under one fixed transactional id.

    Make it early (it connects), call `fence` once when it is this replica's turn, read back what
    is committed, then `commit` batch by batch. Not safe for use by several threads.

    librdkafka knows no transactions of version 2, so a request for the end of one that comes late
    would end the next one, half of it written (KAFKA-17754). So a commit that was slow is followed
    by a new epoch, if what was committed has a record with a key: by that a successor is known.
    """

    def __init__(
        self,
        bootstrap: str,
        transactional_id: str,
        settings: ClientSettings = NO_SETTINGS,
        *,
        mine: Callable[[bytes], bool] | None = None,
    ) -> None:
        """Connect.

        Args:
            bootstrap: servers.
            transactional_id: which only one at a time holds.
            settings: further ones of the clients.
            mine: tells of a key whether only holders of this id write it; None: that of the last
                record with a key is such a one.
        """
        self.transactional_id = transactional_id
        self._bootstrap, self._settings, self._mine = bootstrap, settings, mine
        self._last = -1
        self._topics: tuple[str, ...] = ()
        self._late: Record | None = None
        """The last record with a key of a commit that was slow; None: it was not."""
        self._producer = self._connected()

    def _connected(self) -> Producer:
        return Producer(
            {
                **CLIENT_TUNING,
                "bootstrap.servers": self._bootstrap,
                "transactional.id": self.transactional_id,
                "transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS,
                "acks": "all",
                # A commit sends at once what waits: all records of a topic in one request, which
                # brokers write and replicate as one.
                "linger.ms": 1000,
                "queue.buffering.max.messages": 1_000_000,
                "message.max.bytes": MESSAGE_BYTES,
                "partitioner": "murmur2_random",  # as Java's clients
                **self._settings,
            }
        )

    @property
    def committed(self) -> int:
        """Offset behind the last record of the last transaction, and behind its commit marker."""
        return self._last + 2

    def fence(self) -> None:
        """Become the only holder; what older holders left open is aborted when this returns.

        Raises:
            WriterFailed: the brokers did not answer in 30 s.
            Fenced: a still newer holder was faster.
        """
        fenced = threading.Event()
        threading.Thread(target=self._urge, args=(fenced,), name="urge", daemon=True).start()
        try:
            self._producer.init_transactions(_FENCE_TIMEOUT_S)
        except KafkaException as error:
            raise self._failure(error, "fencing") from None
        finally:
            fenced.set()

    def _urge(self, fenced: threading.Event) -> None:
        """Have the client ask again soon while it becomes the holder.

        A broker that still aborts what the older holder has left open answers that somebody is at
        work there. The client would ask again after half a second, but does at each answer to a
        question about topics.
        """
        pause = Backoff(_URGE_S, _URGE_AT_MOST_S)
        while self._topics and not fenced.wait(pause.next()):
            with contextlib.suppress(KafkaException):
                self._producer.list_topics(self._topics[0], _LEADERS_S)

    def learn_leaders(self, *topics: str) -> None:
        """Ask who leads these topics, so that the first commit need not; no answer is no error."""
        self._topics = topics
        for topic in topics:
            with contextlib.suppress(KafkaException):
                self._producer.list_topics(topic, _LEADERS_S)

    def commit(self, records: Iterable[Record], at: int | None = None) -> None:
        """Write all records in one transaction; they are committed when this returns.

        Args:
            records: what is written.
            at: where the last one has to come; None: anywhere. Brokers say where a topic ends
                without asking each other, so what was read of it may not be all.

        Raises:
            Fenced: a newer holder exists; nothing of this transaction is or will be visible.
            WriterFailed: the outcome is unknown; only a read-back after a new `fence` can tell.
                Or the last record has come elsewhere, and nothing is committed.
        """
        if self._late:
            self._take_new_epoch(self._late)
        every, began = list(records), time.monotonic()
        try:
            self._producer.begin_transaction()
            for place, record in enumerate(every, start=1):
                self._produce(record, self._delivered if place == len(every) else None)
            if at is not None:
                self._expect_at(at)
            self._commit()
        except KafkaException as error:
            raise self._failure(error, "commit") from None
        if time.monotonic() - began > _SLOW_S:
            keyed = (one for one in reversed(every) if one.key and one.partition == PARTITION)
            self._late = next(keyed, None)

    def _take_new_epoch(self, last: Record) -> None:
        """Shut out what may still come of our own last commit, but nobody who has taken over."""
        self._look_for_successor(last)
        self._late = None
        self._producer = self._connected()
        self.learn_leaders(*self._topics)
        self.fence()
        self._look_for_successor(last)

    def _look_for_successor(self, last: Record) -> None:
        """See whether what we have committed last is the last word.

        Raises:
            Fenced: it is not.
            WriterFailed: the brokers did not answer, or a transaction stays open.
        """
        mine = self._mine or (lambda key: key == last.key)
        try:
            # Behind the open transactions of others nothing is seen.
            Offsets(self._bootstrap, self._settings).settled(last.topic)
            found = last_matching(
                self._bootstrap,
                last.topic,
                lambda message: mine(message.key() or b""),
                self._settings,
            )
        except LogError as error:
            raise WriterFailed(str(error)) from None
        if found is None or (found.key(), found.value()) != (last.key, last.value):
            who = f"transactional id {self.transactional_id!r}"
            raise Fenced(f"{who}: a newer holder has written to topic {last.topic} meanwhile")

    def _produce(self, record: Record, delivered: _Delivered | None) -> None:
        while True:
            try:
                self._producer.produce(
                    record.topic,
                    record.value,
                    key=record.key,
                    partition=record.partition,
                    headers=list(record.headers),
                    on_delivery=delivered,
                )
                return
            except BufferError:  # the local queue is full: let deliveries make room
                self._producer.poll(0.1)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self._last = message.offset()

    def _expect_at(self, offset: int) -> None:
        if self._producer.flush(_COMMIT_TIMEOUT_S):
            raise WriterFailed(
                f"transactional id {self.transactional_id!r}: the brokers have not answered for "
                f"{_COMMIT_TIMEOUT_S:.0f} s; nothing is committed, try again"
            )
        if self._last not in (offset, -1):  # nothing delivered: the commit says why
            raise WriterFailed(
                f"transactional id {self.transactional_id!r}: a record has got offset "
                f"{self._last}, and {offset} was due, so something was written meanwhile, or was "
                "not read; nothing is committed, try again"
            )

    def _commit(self) -> None:
        while True:
            try:
                self._producer.commit_transaction(_COMMIT_TIMEOUT_S)
                return
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise

    def _failure(self, error: KafkaException, doing: str) -> WriterFailed:
        cause: KafkaError = error.args[0]
        text = f"{doing} under transactional id {self.transactional_id!r}: {cause.str()}"
        if cause.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return TooLarge(text)
        return Fenced(text) if cause.code() in _FENCED else WriterFailed(text)
