"""Transactions of Kafka's Java client, in Spark's JVM: outputs never pass this process.

They are of version 2 (KIP-890) where the brokers know it: each has an epoch of its own, so that
what comes late of one cannot end the next one. See engine/java/dev/espha/Transactions.java.
"""

import struct
import time
from collections.abc import Callable, Iterable
from typing import Any

import structlog
from pyspark.sql import SparkSession

from espha.kafka.reader import Offsets
from espha.kafka.writer import Fenced, TooLarge, WriterFailed
from espha.pipeline.channel import (
    Channel,
    ChannelError,
    Outcome,
    TransactionError,
    Wanted,
    sized,
    text,
    texts,
)
from espha.pipeline.job import Output, Result
from espha.protocol.sizes import MESSAGE_BYTES

_NUMBER = struct.Struct(">q")
_HANDLE = struct.Struct(">i")
_PLACES = struct.Struct(">qq")
_ANY = 2**63 - 1
_LIMIT_S = 30.0
"""How long a fence or a commit may take while brokers are away."""
_MARGIN_S = 5.0
"""The JVM says within `_LIMIT_S` what went wrong; beyond that it says nothing any more."""
_TRANSACTION_S = 60.0
"""How long a commit may take while brokers are away. A successor does not wait: it fences."""
_OPEN_LIMIT_S = _TRANSACTION_S + 30.0
"""Brokers end a transaction that nobody ends after its time, and look every ten seconds."""
_LOOK_S = 0.005
_WHO_S = 1.0
"""After so long somebody else's transaction is open, and not only a marker under way."""
_SLOW_S = 1.0
"""A commit that took longer may have been asked for twice; the second one may still come."""
_SAFE_VERSION = 2
_ROUNDS = 20
"""So many commits are rehearsed before an engine is in sync."""
_LATER_ROUNDS = 250
"""So many behind it, for each JVM: Java compiles what has run some 200 times."""
_BATCH_BYTES = 256 << 10
"""Outputs of a topic go to its broker by so many bytes; the stock 16 KiB make a request of each
hundred, which brokers write, replicate and answer one by one."""
_AGAIN_MS = 60_000
_FAILURES = {Outcome.FENCED: Fenced, Outcome.TOO_LARGE: TooLarge}
_LOG = structlog.get_logger()

_SETTINGS = {
    "acks": "all",
    # Outputs wait for the order record, which ends the transaction and sends all: then the brokers
    # add both topics to it at once, write once and replicate once. Large batches go before.
    "linger.ms": "1000",
    "batch.size": str(_BATCH_BYTES),
    "transaction.timeout.ms": f"{_TRANSACTION_S * 1000:.0f}",
    "max.block.ms": f"{_LIMIT_S * 1000:.0f}",
    "delivery.timeout.ms": f"{_LIMIT_S * 1000:.0f}",
    # What a broker does not answer (it froze, or the network ate it) is asked again.
    "request.timeout.ms": "5000",
    "socket.connection.setup.timeout.ms": "1000",
    "socket.connection.setup.timeout.max.ms": "2000",
    # «Still aborting», «still committing», «not the leader»: milliseconds, not the stock 100. What
    # takes longer is asked for ever more rarely: brokers that come back have enough to do.
    "retry.backoff.ms": "2",
    "retry.backoff.max.ms": "200",
    "reconnect.backoff.ms": "10",
    "reconnect.backoff.max.ms": "100",
    # A standby knows who leads, however long it has nothing to write.
    "metadata.max.age.ms": "5000",
    "metadata.max.idle.ms": str(365 * 86_400_000),
    "connections.max.idle.ms": "-1",
    "max.request.size": str(MESSAGE_BYTES),
}


class Transactions:
    """What commits batches, in transactions under the order log's name as their one id.

    Make it early, call `fence` once when it is this engine's turn, read back what is committed,
    then `commit` batch by batch. Not safe for use by several threads.
    """

    limit_s = _TRANSACTION_S

    def __init__(self, session: SparkSession, bootstrap: str, order_log: str) -> None:
        """Open.

        Args:
            session: in whose JVM.
            bootstrap: of brokers.
            order_log: the topic of order records, to which all of a deployment's engines write;
                so it is their transactional id, whatever their model is called.
        """
        self._session, self._bootstrap, self._order_log = session, bootstrap, order_log
        self.moved: Callable[[], None] = lambda: None
        """Hears that a wait for another id's transaction goes on, in the thread that fences."""
        self._topics: tuple[str, ...] = ()
        self._version = _SAFE_VERSION
        self._last = -1
        self._exactly = False
        """The next order record has to come right behind what was read, and not only later."""
        self._renew = False
        self._offsets = Offsets(bootstrap)
        self._channel = Channel(session)
        _hush(session)
        self._open()

    def _open(self) -> None:
        """Make a holder of the id."""
        answer = self._ask("opening", Wanted.OPEN, self._settings(self._order_log))
        self._number: int = _NUMBER.unpack(answer)[0]
        self._handle = _HANDLE.pack(self._number)

    def _settings(self, transactional_id: str) -> bytes:
        named = {"bootstrap.servers": self._bootstrap, "transactional.id": transactional_id}
        every = {**_SETTINGS, **named}
        return texts(part for pair in every.items() for part in pair)

    @property
    def committed(self) -> int:
        """Offset in the order log behind the last order record and its commit marker."""
        return self._last + 2

    def warm_up(self, topics: Iterable[str], scratch: str, name: str) -> None:
        """Learn who leads the topics; fence and commit on a scratch topic, now and every minute.

        That is done under an id of its own, and first as often as Java takes to compile it. So a
        take-over is never the first time in long that all that code runs, and all these
        connections are used.

        Args:
            topics: what will be written to.
            scratch: the topic for it; where it is missing, the first commit takes longer.
            name: of this engine.

        Raises:
            WriterFailed: the brokers did not answer in time.
        """
        self._topics = tuple(topics)
        self._learn()
        self.keep_warm()
        own = self._settings(f"{self._order_log}.warm-up.{name}")
        numbers = map(_HANDLE.pack, (_ROUNDS, _LATER_ROUNDS, _AGAIN_MS))
        content = own + text(scratch) + b"".join(numbers)
        try:
            answer = self._ask("the rehearsal", Wanted.REHEARSE, content)
        except WriterFailed as error:  # without it a take-over takes longer, and that is all
            _LOG.warning("transactions are not warm", error=str(error))
            self._version = 0
            # Its answer may still come; nothing else can be asked for on that connection.
            self._channel.close()
            self._channel = Channel(self._session)
        else:
            self._version = _NUMBER.unpack(answer)[0]

    def keep_warm(self) -> None:
        """Keep what a fence asks for from growing cold; brokers end connections that are idle."""
        self._offsets.keep_warm(self._order_log)

    def _learn(self) -> None:
        self._ask("asking for the leaders", Wanted.LEARN, self._handle + texts(self._topics))

    def fence(self) -> None:
        """Become the only holder of the id; nobody's transaction is open on the order log then.

        Raises:
            WriterFailed: the brokers did not answer in time, or a transaction stays open.
            Fenced: a still newer holder was faster.
        """
        self._ask("fencing", Wanted.FENCE, self._handle)
        self._wait_until_closed()

    def _wait_until_closed(self) -> None:
        """Wait until what other ids have left open on the order log is ended."""
        began = time.monotonic()
        named = False
        while (last := self._offsets.ends(self._order_log)).open:
            self.moved()
            waited = time.monotonic() - began
            if waited > _OPEN_LIMIT_S:
                raise WriterFailed(
                    f"topic {self._order_log}: a transaction is open from offset {last.stable} on, "
                    f"of {self._others()}; what engines have committed behind it cannot be read. "
                    "Nobody but engines may write to this topic"
                )
            if waited > _WHO_S and not named:
                named = True
                _LOG.warning(
                    "a transaction is open on the order log",
                    offset=last.stable,
                    transactional_ids=self._others(),
                )
            time.sleep(_LOOK_S)

    def _others(self) -> str:
        content = self._settings(self._order_log) + text(self._order_log)
        try:
            found = self._ask("asking for open transactions", Wanted.OPEN_ON, content).decode()
        except WriterFailed as error:
            return f"a transactional id that is not known ({error})"
        return ", ".join(found.splitlines()) or "a transactional id that the brokers do not know"

    def go_on(self, end: int) -> None:
        """Note where the order log ends, as far as it was read; see `Publisher`."""
        self._last, self._exactly = end - 2, True

    def begin(self) -> int:
        """Return the number by which the JVM knows the transaction that comes next.

        Raises:
            WriterFailed: the brokers did not answer in time.
            Fenced: a newer holder exists.
        """
        if self._renew:
            self._take_new_epoch()
        return self._number

    def commit(self, result: Result, order_record: bytes) -> None:
        """Commit what a batch gave and its order record, in one transaction.

        Outputs that this process holds are sent now; those of a batch that was run with
        the number from `begin` are in the transaction already.

        Raises:
            Fenced: a newer holder exists, or the transaction was open for longer than `limit_s`;
                nothing of it is or will be visible.
            TooLarge: a topic takes no record of this size; likewise.
            WriterFailed: the outcome is unknown; only a read-back after a new `fence` can tell.
                Or the order log has another end than was read, and nothing is committed.
        """
        began = time.monotonic()
        for output in result.outputs:
            self.send(output)
        due = self.committed if self._exactly else self._last + 1
        places = _PLACES.pack(due, due if self._exactly else _ANY)
        record = (self._handle, places, text(self._order_log), order_record)
        self._last = _NUMBER.unpack(self._ask("commit", Wanted.COMMIT, *record))[0]
        self._exactly = False
        self._renew = self._version < _SAFE_VERSION and time.monotonic() - began > _SLOW_S

    def send(self, output: Output) -> None:
        """Add a record to the transaction; what goes wrong with it is told by `commit`.

        Raises:
            WriterFailed: the JVM is gone.
        """
        headers = [text(key) + sized(value) for key, value in output.headers]
        content = [text(output.topic), sized(output.value), _HANDLE.pack(len(headers))]
        self._ask("sending", Wanted.SEND, self._handle, *content, *headers)

    def _take_new_epoch(self) -> None:
        """Shut out what may still come of our own last commit (KAFKA-17754).

        Transactions of version 2 do it by themselves.
        """
        self._renew = False
        committed = self.committed
        self._expect_end(committed)  # whoever leads by now shall not be shut out
        self._let_go()
        self._open()
        self._learn()
        self.fence()
        self._expect_end(committed)
        self._exactly = True

    def _expect_end(self, committed: int) -> None:
        if self._offsets.end(self._order_log) > committed:
            raise Fenced(f"topic {self._order_log}: another engine has committed meanwhile")

    def renewed(self) -> "Transactions":
        """Return a new holder of the id, as warm: each can `fence` once only."""
        self.close()
        other = Transactions(self._session, self._bootstrap, self._order_log)
        other._topics, other._version, other.moved = self._topics, self._version, self.moved
        other._offsets = self._offsets
        other._learn()
        return other

    def close(self) -> None:
        """Let go; brokers abort what is open when the next holder fences."""
        self._let_go()
        self._channel.close()

    def _let_go(self) -> None:
        self._ask("letting go", Wanted.CLOSE, self._handle)

    def _ask(self, doing: str, wanted: Wanted, *content: bytes) -> bytes:
        try:
            return self._channel.ask(wanted, *content, limit_s=_LIMIT_S + _MARGIN_S)
        except TransactionError as error:
            raise _FAILURES.get(error.outcome, WriterFailed)(str(error)) from None
        except ChannelError as error:
            raise WriterFailed(f"{doing}: {error}") from None


def _hush(session: SparkSession) -> None:
    """Keep Kafka's client from telling of each attempt while brokers are away."""
    jvm: Any = session._jvm
    level = jvm.org.apache.logging.log4j.Level.ERROR
    jvm.org.apache.logging.log4j.core.config.Configurator.setLevel("org.apache.kafka", level)
