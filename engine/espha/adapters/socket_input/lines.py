"""Bytes of a connection, cut into lines."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from espha.protocol.sizes import CUT_BYTES
from espha.records.rows import MAX_RECORD

STREAM: Final = r"[A-Za-z0-9_.:-]{1,100}"
"""What the stream of a peer can be called, as a regular expression."""
_NEWLINE: Final = b"\n"


class Line(NamedTuple):
    """A line without its newline.

    Attributes:
        text: its bytes, of a line that is too long the first 64 KiB.
        size: how many bytes it had.
    """

    text: bytes
    size: int

    @property
    def long(self) -> bool:
        """Whether no row can be so long."""
        return self.size > MAX_RECORD


class Lines:
    """Cuts what comes into lines; a line that never ends takes no more memory than a long row."""

    def __init__(self) -> None:
        self._begin = bytearray()
        self._size = 0

    def feed(self, data: bytes) -> Iterator[Line]:
        """Yield the lines that end in `data`."""
        *ends, rest = data.split(_NEWLINE)
        for end in ends:
            self._add(end)
            yield self._line()
        self._add(rest)

    def rest(self) -> Line | None:
        """Return the last line when nothing more comes; None: there is none."""
        return self._line() if self._size else None

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        self._begin += part[: MAX_RECORD + 1 - len(self._begin)]

    def _line(self) -> Line:
        text, size = bytes(self._begin), self._size
        self._begin, self._size = bytearray(), 0
        return Line(text if size <= MAX_RECORD else text[:CUT_BYTES], size)
