"""A Spark query that runs for ever: batches go in as rows, answers come out.

Planning a job and scheduling it cost ten times what a small batch does. So the query over the
table `dev.espha.BatchSource` is started once, and its rows arrive batch by batch; see
engine/java. Spark hands rows to its Python worker in pages, and a page only when one more row is
there. A page ends after so many bytes; the row that ends a call has a column that is as large as a
page, and is followed by one row that means nothing.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from espha.pipeline.channel import Channel, Wanted, packed, text, texts

BUFFER_BYTES = 8192
"""Size of Spark's buffer towards its worker, and the most that Java writes at once: such a write
passes the buffer, with all that waited in it. So what ends a call is the last column of its page,
and whole buffers of it."""

PAGE_BYTES = 2 * BUFFER_BYTES
"""Size at which a page ends. Small pages make small batches cheap, large ones large batches."""

OPEN, END, PAD, TAKE, PUT, SKIP = -1, -2, -3, -4, -6, -7
"""`source` of rows that are no input records: they open a batch, end a call, fill a page, have
the state taken (`CheckpointOrder`), have a state read (`RestoreOrder`), and stand for an input
record that is set aside (their text says why)."""

OPENED, REFUSED, LAST, STATE, BROKEN, MOVED = -1, -2, -3, -4, -5, -6
"""`kind` of rows that are no outputs: the answer to an opening row, a refused record, the end of
the answer to a call (which stays in the JVM), the answer to what concerns the state, a record on
which the kernel failed (whatever the call brings besides is void then), and a page of which nothing
came out, so that it is known to be done (it stays in the JVM)."""

_SOURCE = "dev.espha.BatchSource"
_ROW = struct.Struct(">iiqi")
_ANSWER = struct.Struct(">iiii")
_ORIGINAL = struct.Struct(">ii")
_CALL = struct.Struct(">?iq")
_SUM = struct.Struct(">iii32sqi")
_SIZES = struct.Struct(">iii")
_NONE = -1
_PART_BYTES = 1 << 20
"""Rows go in by so many bytes."""
LIMIT_S = 150.0
"""A call in which nothing has moved for so long has failed. A first one has a limit of its own."""
RESTORE_S = 600.0
"""The same for one that reads a state, in which nothing moves until it is read. It is less than a
start may take (`espha.ha.progress_judge`): whoever is killed in it cannot say that it has failed.
"""
_MARGIN_S = 5.0
"""The JVM says within `LIMIT_S` what does not move; beyond that it says nothing any more."""


class Names(NamedTuple):
    """What the outputs of a query are called, by the numbers that its rows have for them."""

    inputs: tuple[str, ...]
    """Topics, by `source`."""
    windows: tuple[str, ...]
    """Paths of source windows, by `source`."""
    outputs: tuple[str, ...]
    """Topics, by `kind`."""
    output_windows: tuple[str, ...]
    """Paths of output windows, by `kind`."""
    order_log: str
    dead_letters: str
    headers: tuple[str, ...]
    """Names of an output's headers: its id; of a dead letter besides: window, reason; and of what
    is left of a record that is too large: its size, its digest."""
    sizes: tuple[int, int, int]
    """Largest record; what is left of its value, and of its reason."""


class Asked(NamedTuple):
    """A row that goes in."""

    row: int
    """Place in the call: 0, 1, 2 … where outputs come of it."""
    source: int
    """Source window, or one of the marks."""
    value: bytes
    """The text; it is UTF-8."""
    offset: int = 0
    """Of an input record: its offset; of an opening row: the batch's sequence number."""
    original: tuple[int, bytes] | None = None
    """Source window and value as it came, where `source` and `value` are not these."""


class Answered(NamedTuple):
    """A row that comes out: place of what it answers, ordinal, output window or mark, text."""

    row: int
    ordinal: int
    kind: int
    text: str | None


class Summed(NamedTuple):
    """What comes of a batch whose outputs do not come here."""

    outputs: int
    """Number of outputs, dead letters too."""
    refused: int
    """Number of dead letters."""
    digest: bytes
    """SHA-256 over all outputs, in order; see `espha.pipeline.job.Result`."""
    answer: str
    """What answers the opening row, or says why the kernel failed."""
    broken: int | None
    """Place of the row on which the kernel failed; None: it has not."""
    waited_s: float = 0.0
    """For how long outputs have waited until Kafka's client had taken them."""


class Stream:
    """Runs one query for ever, in the JVM of the driver."""

    def __init__(
        self,
        session: SparkSession,
        name: str,
        query: Callable[[DataFrame], DataFrame],
        names: Names,
    ) -> None:
        """Start.

        Args:
            session: a session with a local master, and engine/java on its class path.
            name: whatever makes the query what it is; a JVM that has planned it under this name
                runs it again.
            query: makes of the rows `row, source, value` the rows `row, ordinal, kind, text`.
            names: what its outputs are called.

        Raises:
            RuntimeError: the session cannot do that; the text says what is missing.
        """
        self._channel = Channel(session)
        jvm: Any = session._jvm
        self._stream: Any = jvm.dev.espha.BatchStream
        if not self._stream.reopen(name):
            rows = session.read.format(_SOURCE).load()
            self._stream.open(name, query(rows)._jdf)
        listed = b"".join(map(texts, names[:4]))
        every = listed + text(names.order_log) + text(names.dead_letters) + texts(names.headers)
        self._channel.tell(Wanted.NAMES, every, _SIZES.pack(*names.sizes), limit_s=LIMIT_S)

    def call(self, asked: Iterable[Asked], limit_s: float | None = None) -> Iterator[Answered]:
        """Send the rows of one call, and yield what answers them; it must be taken to its end.

        Args:
            asked: the rows.
            limit_s: for how long nothing may move; None: as long as usual.

        Raises:
            ChannelError: the query has failed, or nothing has moved for long; it cannot be
                used any more.
        """
        for answer in self._exchange(asked, True, 0, limit_s or LIMIT_S):
            yield from _answers(answer)

    def sum(self, asked: Iterable[Asked], transaction: int = 0) -> list[Summed]:
        """Send the rows of one call; return what comes of each batch in it.

        Args:
            asked: the rows.
            transaction: outputs are sent in it; 0: they are counted and digested only.

        Raises:
            ChannelError: as `call`.
        """
        (answer,) = self._exchange(asked, False, transaction, LIMIT_S)
        return list(_sums(answer))

    def _exchange(
        self, asked: Iterable[Asked], collecting: bool, transaction: int, limit_s: float
    ) -> Iterator[bytes]:
        begin = packed(Wanted.CALL, _CALL.pack(collecting, transaction, int(limit_s * 1000)))
        return self._channel.exchange(_requests(begin, asked), limit_s + _MARGIN_S)

    def when_closed(self, then: Callable[[], None]) -> None:
        """Have `then` called, in threads of their own, when the JVM ends; perhaps twice."""
        self._channel.when_closed(then)

    def when_moved(self, then: Callable[[], None]) -> None:
        """Have `then` called now and then, in the caller's thread, while a long call gets on."""
        self._channel.moved = then

    def close(self) -> None:
        """End the query."""
        self._stream.end()
        self._channel.close()


def _requests(begin: bytes, asked: Iterable[Asked]) -> Iterator[bytes]:
    """Yield what brings the rows, the end of the call, and the row without which it stays."""
    unsent, rows = bytearray(begin), bytearray()
    count = 0
    for row, source, value, offset, original in asked:
        if original is not None:
            unsent += packed(Wanted.ORIGINAL, _ORIGINAL.pack(row, original[0]), original[1])
        rows += _ROW.pack(row, source, offset, len(value)) + value
        count += 1
        if len(rows) >= _PART_BYTES:
            yield bytes(unsent) + packed(Wanted.ROWS, rows)
            unsent, rows = bytearray(), bytearray()
    rows += _ROW.pack(count, END, 0, 0)
    rows += _ROW.pack(0, PAD, 0, 0)
    yield bytes(unsent) + packed(Wanted.LAST_ROWS, rows)


def _answers(answer: bytes) -> Iterator[Answered]:
    at = 0
    while at < len(answer):
        row, ordinal, kind, length = _ANSWER.unpack_from(answer, at)
        at += _ANSWER.size
        said = None if length < 0 else answer[at : at + length].decode()
        at += max(length, 0)
        yield Answered(row, ordinal, kind, said)


def _sums(answer: bytes) -> Iterator[Summed]:
    at = 0
    while at < len(answer):
        broken, outputs, refused, digest, waited_ns, length = _SUM.unpack_from(answer, at)
        at += _SUM.size
        said = answer[at : at + length].decode()
        at += length
        row = None if broken == _NONE else broken
        yield Summed(outputs, refused, digest, said, row, waited_ns / 1e9)
