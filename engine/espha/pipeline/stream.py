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

BUFFER_BYTES = 8192
"""Size of Spark's buffer towards its worker, and the most that Java writes at once: such a write
passes the buffer, with all that waited in it. So what ends a call is the last column of its page,
and whole buffers of it."""

PAGE_BYTES = BUFFER_BYTES
"""Size at which a page ends. Small pages make small batches cheap, large ones large batches."""

OPEN, END, PAD, TAKE, PART, PUT, SKIP = -1, -2, -3, -4, -5, -6, -7
"""`source` of rows that are no input records: they open a batch, end a call, fill a page, ask for
the state, bring a part of a state, make these parts the state, and stand for an input record that
is set aside (their text says why)."""

OPENED, REFUSED, LAST, STATE, BROKEN = -1, -2, -3, -4, -5
"""`kind` of rows that are no outputs: the answer to an opening row, a refused record, the end of
the answer to a call (`BatchStream.LAST`), a part of the state, a record on which the kernel failed:
whatever the call brings besides is void then."""

_SOURCE = "dev.espha.BatchSource"
_ROW = struct.Struct(">iii")
_ANSWER = struct.Struct(">iiii")


class Asked(NamedTuple):
    """A row that goes in: place in the call, source window (or one of the marks), text."""

    row: int
    source: int
    value: bytes


class Answered(NamedTuple):
    """A row that comes out: place of what it answers, ordinal, output window or mark, text."""

    row: int
    ordinal: int
    kind: int
    text: str | None


class Stream:
    """Runs one query for ever, in the JVM of the driver."""

    def __init__(
        self, session: SparkSession, name: str, query: Callable[[DataFrame], DataFrame]
    ) -> None:
        """Start.

        Args:
            session: a session with a local master, and engine/java on its class path.
            name: whatever makes the query what it is; a JVM that has planned it under this name
                runs it again.
            query: makes of the rows `row, source, value` the rows `row, ordinal, kind, text`.

        Raises:
            RuntimeError: the session cannot do that; the text says what is missing.
        """
        jvm: Any = session._jvm
        if not hasattr(jvm.dev.espha.BatchStream, "LAST"):
            raise RuntimeError(
                "espha's own jar is not on Spark's class path; ESPHA_JARS must name its directory"
            )
        self._stream: Any = jvm.dev.espha.BatchStream.reopen(name)
        if self._stream is None:
            rows = session.read.format(_SOURCE).load()
            self._stream = jvm.dev.espha.BatchStream.open(name, query(rows)._jdf)

    def call(self, asked: Iterable[Asked]) -> Iterator[Answered]:
        """Send the rows of one call, and return what answers them.

        Raises:
            py4j.protocol.Py4JJavaError: the query has failed; it cannot be used any more.
        """
        return _answers(self._stream.run(_rows(asked)))

    def close(self) -> None:
        """End the query."""
        self._stream.end()


def _rows(asked: Iterable[Asked]) -> bytearray:
    """Return the rows, the end of the call, and the row without which that would not leave."""
    rows = bytearray()
    count = 0
    for row, source, value in asked:
        rows += _ROW.pack(row, source, len(value)) + value
        count += 1
    rows += _ROW.pack(count, END, 0)
    rows += _ROW.pack(0, PAD, 0)
    return rows


def _answers(answer: bytes) -> Iterator[Answered]:
    at = 0
    while at < len(answer):
        row, ordinal, kind, length = _ANSWER.unpack_from(answer, at)
        at += _ANSWER.size
        text = None if length < 0 else answer[at : at + length].decode()
        at += max(length, 0)
        if kind != LAST:
            yield Answered(row, ordinal, kind, text)
