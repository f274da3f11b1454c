"""The way to the JVM's own code: requests and answers on a socket, in turn.

py4j would write all bytes in base64, and the JVM would hold them several times over; here a small
call costs a third of what it costs there. The other end is engine/java/dev/espha/Channel.java.
"""

import errno
import select
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import Any

from pyspark.sql import SparkSession

from espha.protocol.ends import when_closed


class Wanted(IntEnum):
    """What a request asks for."""

    NAMES = 1
    CALL = 2
    ORIGINAL = 3
    ROWS = 4
    LAST_ROWS = 5
    OPEN = 6
    LEARN = 7
    REHEARSE = 8
    FENCE = 9
    SEND = 10
    COMMIT = 11
    CLOSE = 12
    OPEN_ON = 13


class Outcome(IntEnum):
    """How it went."""

    DONE = 0
    MORE = 1
    FAILED = 2
    """A transaction's outcome is not known, or it cannot begin."""
    FENCED = 3
    BROKEN = 4
    MOVED = 5
    """The answer is not there yet; what brings it about gets on."""
    TOO_LARGE = 6
    """Nothing of a transaction is committed: a record is larger than a topic or the client takes.
    """


class ChannelError(Exception):
    """The JVM did not do what it was asked for; the text says why."""


class TransactionError(ChannelError):
    """A transaction failed.

    Attributes:
        outcome: `FAILED`; `FENCED`: a newer holder of its id is why, or it was open for too long;
            `TOO_LARGE`.
    """

    def __init__(self, text: str, outcome: Outcome) -> None:
        super().__init__(text)
        self.outcome = outcome


_HEAD = struct.Struct(">iB")
_LENGTH = struct.Struct(">i")
_RECEIVED_AT_ONCE = 1 << 18
_WAIT_WRITING = select.POLLIN | select.POLLOUT


def packed(wanted: Wanted, *content: bytes | bytearray) -> bytes:
    """Return a request."""
    return _HEAD.pack(sum(map(len, content)), wanted) + b"".join(content)


def text(value: str) -> bytes:
    """Return a text behind its length."""
    return sized(value.encode())


def sized(value: bytes) -> bytes:
    """Return bytes behind their number."""
    return _LENGTH.pack(len(value)) + value


def texts(values: Iterable[str]) -> bytes:
    """Return texts behind their number."""
    every = list(values)
    return _LENGTH.pack(len(every)) + b"".join(map(text, every))


class Channel:
    """One connection to the JVM of a session; one thread at a time uses it."""

    def __init__(self, session: SparkSession) -> None:
        """Connect.

        Raises:
            RuntimeError: espha's own jar is not on Spark's class path.
        """
        jvm: Any = session._jvm
        if not hasattr(jvm.dev.espha.Channel, "open"):
            raise RuntimeError(
                "espha's own jar is not on Spark's class path; ESPHA_JARS must name its directory"
            )
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(jvm.dev.espha.Channel.open())
        self._socket.setblocking(False)
        self._poll = select.poll()
        self._received = bytearray()
        self._busy = False
        self.moved: Callable[[], None] = lambda: None
        """Hears that what takes long gets on."""

    def ask(self, wanted: Wanted, *content: bytes, limit_s: float) -> bytes:
        """Return the answer to one request.

        Raises:
            ChannelError: see `exchange`.
        """
        (answer,) = self.exchange([packed(wanted, *content)], limit_s)
        return answer

    def tell(self, wanted: Wanted, *content: bytes, limit_s: float) -> None:
        """Make one request whose answer is empty.

        Raises:
            ChannelError: see `exchange`.
        """
        self.ask(wanted, *content, limit_s=limit_s)

    def exchange(self, requests: Iterable[bytes], limit_s: float) -> Iterator[bytes]:
        """Send requests, of which the last one is answered; yield the answer, part by part.

        It must be taken to its end. Parts of it come while requests still are made.

        Raises:
            ChannelError: it failed, the JVM has ended, or nothing has moved for `limit_s`.
            TransactionError: likewise, of what concerns transactions.
        """
        if self._busy:
            raise ChannelError("an answer has not been taken to its end")
        self._busy = True
        waiting = iter(requests)
        unsent = memoryview(b"")
        sending = True
        while True:
            while sending:
                if not unsent:
                    request = next(waiting, None)
                    if request is None:
                        sending = False
                        break
                    unsent = memoryview(request)
                sent = self._send(unsent)
                unsent = unsent[sent:]
                if not sent:
                    break
            outcome, answer = self._answer()
            if outcome is None:
                self._wait(sending, limit_s)
            elif outcome is Outcome.MOVED:
                self.moved()
            elif outcome is Outcome.MORE:
                yield answer
            else:
                self._busy = False
                yield self._judged(outcome, answer)
                return

    def _send(self, content: memoryview) -> int:
        try:
            return self._socket.send(content)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise _ended(error) from None

    def _answer(self) -> tuple[Outcome | None, bytes]:
        """Return the next part of an answer, if all of it is there."""
        while True:
            if len(self._received) >= _HEAD.size:
                length, outcome = _HEAD.unpack_from(self._received)
                end = _HEAD.size + length
                if len(self._received) >= end:
                    answer = bytes(self._received[_HEAD.size : end])
                    del self._received[:end]
                    return Outcome(outcome), answer
            try:
                share = self._socket.recv(_RECEIVED_AT_ONCE)
            except BlockingIOError:
                return None, b""
            except OSError as error:
                raise _ended(error) from None
            if not share:
                raise _ended(OSError(errno.EPIPE, "it has closed its end"))
            self._received += share

    def _wait(self, sending: bool, limit_s: float) -> None:
        self._poll.register(self._socket, _WAIT_WRITING if sending else select.POLLIN)
        limit = time.monotonic() + limit_s
        while not self._poll.poll(max(limit - time.monotonic(), 0) * 1000):
            if time.monotonic() >= limit:
                raise ChannelError(f"the JVM has not answered for {limit_s:.0f} s")

    def _judged(self, outcome: Outcome, answer: bytes) -> bytes:
        if outcome is Outcome.DONE:
            return answer
        said = answer.decode()
        if outcome is Outcome.BROKEN:
            raise ChannelError(said)
        raise TransactionError(said, outcome)

    def when_closed(self, then: Callable[[], None]) -> None:
        """Have `then` called, in threads of their own, when the JVM ends; perhaps twice."""
        when_closed(self._socket, then)

    def close(self) -> None:
        """Let go."""
        self._socket.close()


def _ended(error: OSError) -> ChannelError:
    return ChannelError(f"the JVM is gone: {error.strerror}")
