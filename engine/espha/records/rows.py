"""Bytes to the rows that stand in them, whole files and growing ones, with one set of limits."""

import json
import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from espha.model.events import BadRecord
from espha.records.layout import CsvLayout, Layout
from espha.records.text import NOT_AN_OBJECT, split

MAX_RECORD = 131_072
"""Longest row in bytes; what is longer is cut, so that neither a missing newline nor a missing
quote can hold the rows behind it for ever."""

Cells = list[str] | dict[str, Any]
"""Cells of CSV, or an object of JSON."""

BOM = b"\xef\xbb\xbf"

_CHUNK = 1024 * 1024
_NEWLINE = 10
_BETWEEN_VALUES = " \t\r\n,[]"
_AFTER_A_VALUE = _BETWEEN_VALUES + "{"


Content_co = TypeVar("Content_co", covariant=True)


class Row(NamedTuple, Generic[Content_co]):
    """One row, and how much of the file it takes.

    Attributes:
        content: the cells of CSV, or the object of JSON; nothing for a blank line; the line as
            the only cell where there is a reason.
        size: in bytes.
        lines: newlines that it ends or that stand in it.
        reason: what is wrong with it; empty: nothing.
    """

    content: Content_co
    size: int
    lines: int
    reason: str = ""


def decode(data: bytes) -> str:
    """Return the text of file bytes; bytes that are not UTF-8 survive the way there and back."""
    return data.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """Return the bytes of what `decode` has given."""
    return text.encode("utf-8", "surrogateescape")


def skip_lines(data: bytes, count: int) -> tuple[int, int]:
    """Return the size in bytes of the first `count` lines, and how many of them end in `data`.

    Where fewer end, all of `data` is one of them.
    """
    size = 0
    for found in range(count):
        end = data.find(b"\n", size) + 1
        if not end:
            return len(data), found
        size = end
    return size, max(count, 0)


def csv_rows(data: bytes, layout: CsvLayout, *, final: bool) -> Iterator[Row[list[str]]]:
    """Yield the complete rows of `data`; a cell in quotes may hold newlines.

    A quote opens a cell only where the cell begins. A line that is not CSV (a quote that never
    closes, or something behind a closing one) is a bad row alone. A quote that is open at the end
    is waited for until it is longer than `MAX_RECORD`. A backslash may stand before a quote, or for
    itself; so the first line of a row with line breaks may be a row as well, and then it is one.

    Args:
        data: from the beginning of a row.
        layout: how the rows are written.
        final: nobody writes on, so what is at the end counts without a newline.
    """
    start, size = 0, len(data)
    while start < size:
        end, lines, reason = _line_end(data, start, final), 1, ""
        if not end:
            return
        try:
            cells = _cells(data[start:end], layout)
        except BadRecord as refusal:
            # Most rows are one line. What is none on its first line may go on behind it.
            end = _quoted_end(data, start, end, layout.delimiter, final)
            if not end:
                return
            lines = data.count(b"\n", start, end - 1) + 1
            cells, reason = _or_refused(data[start:end], layout, refusal.reason)
        yield Row(cells, end - start, lines, reason)
        start = end


def line_rows(data: bytes, *, final: bool) -> Iterator[Row[list[str]]]:
    """Yield the complete lines of `data`, each as one cell; see `csv_rows`."""
    start = 0
    while start < len(data):
        end = _line_end(data, start, final)
        if not end:
            return
        text = decode(data[start:end]).rstrip("\r\n")
        yield Row([text] if text.strip() else [], end - start, 1)
        start = end


def _cells(data: bytes, layout: CsvLayout) -> list[str]:
    text = decode(data).removesuffix("\n").removesuffix("\r")
    if layout.strip_nulls:
        text = text.replace("\0", "")
    return split(text, layout.delimiter) if text.strip() else []


def _or_refused(data: bytes, layout: CsvLayout, reason: str) -> tuple[list[str], str]:
    try:
        return _cells(data, layout), ""
    except BadRecord:
        return [decode(data).removesuffix("\n").removesuffix("\r")], reason


def _quoted_end(data: bytes, start: int, line_end: int, delimiter: str, final: bool) -> int:
    """Return where the row ends that is not one on its first line; 0: its end is not there yet."""
    limit = min(start + MAX_RECORD, len(data))
    may_wait = not final and len(data) < start + MAX_RECORD
    whole_row, open_row = _patterns(delimiter)
    whole = whole_row.match(data, start, limit)
    if whole is None:
        return 0 if may_wait and open_row.match(data, start, limit) else line_end
    if data[whole.end() - 1] == _NEWLINE or (final and whole.end() == len(data)):
        return whole.end()
    return 0 if may_wait else line_end


def _line_end(data: bytes, start: int, final: bool) -> int:
    """Return where the line ends that begins at `start`; 0: its end is not there yet."""
    end = data.find(b"\n", start, start + MAX_RECORD) + 1
    if end:
        return end
    if len(data) - start < MAX_RECORD and not final:
        return 0
    return min(start + MAX_RECORD, len(data))


@cache
def _patterns(delimiter: str) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Return what matches a whole row, and what matches a row with a quote open to the end."""
    end = re.escape(delimiter.encode())
    blank = rb"(?:(?!%s)[\x00-\x09\x0b-\x20])*+" % end
    inside = rb'"(?:[^"]++|"")*+'
    cell = rb'%s(?:%s"%s|(?!")(?:(?!%s)[^\n])*+)' % (blank, inside, blank, end)
    before = rb"(?:%s%s)*+" % (cell, end)
    return (
        re.compile(rb"%s%s(?:\n|\Z)" % (before, cell)),
        re.compile(rb"%s%s%s\Z" % (before, blank, inside)),
    )


def json_rows(data: bytes, *, final: bool) -> Iterator[Row[Cells]]:
    """Yield the objects of `data`, each alone on a line or in (nested) arrays.

    Another value is a bad row, and text that is no JSON is one to the end of its line.

    Args:
        data: from the beginning of a row.
        final: nobody writes on.
    """
    decoder = json.JSONDecoder()
    text, place = decode(data), 0
    while place < len(text):
        start = place
        while place < len(text) and text[place] in _BETWEEN_VALUES:
            place += 1
        if place > start:
            yield Row([], place - start, text.count("\n", start, place))
        if place == len(text):
            return
        content, end = _json_row(decoder, text, place)
        open_end = end == place or (content is None and end == len(text))
        if open_end and not final and len(text) - place < MAX_RECORD:
            return  # perhaps the rest of it is not written yet
        if end == place:
            end = text.find("\n", place) + 1 or len(text)
        taken = text[place:end]
        size = len(taken.encode("utf-8", "surrogateescape"))
        if content is None:
            yield Row([taken], size, taken.count("\n"), NOT_AN_OBJECT)
        else:
            yield Row(content, size, taken.count("\n"))
        place = end


def _json_row(
    decoder: json.JSONDecoder, text: str, place: int
) -> tuple[dict[str, Any] | None, int]:
    """Return the object at `place`, or None for another value, and where it ends.

    The end of no JSON at all is its place.
    """
    try:
        value, end = decoder.raw_decode(text, place)
    except (ValueError, RecursionError):
        return None, place
    if end - place > MAX_RECORD:
        return None, place
    if isinstance(value, dict):
        return value, end
    while end < len(text) and text[end] not in _AFTER_A_VALUE:
        end += 1
    return None, end


class Raw(NamedTuple):
    """One row: its line from 1, its cells (CSV) or object (JSON), or what is wrong with it."""

    line: int
    content: Cells
    reason: str = ""


class RowFile:
    """The rows of a file, from where reading stopped; more may be written meanwhile.

    Attributes:
        size: bytes that it had when it was opened; 0 for what is no plain file.
        position: bytes read since it was opened or rewound.
    """

    def __init__(self, path: Path, layout: Layout) -> None:
        """Open the file.

        Raises:
            OSError: it cannot be read.
        """
        self._file = path.open("rb")
        self.size = os.fstat(self._file.fileno()).st_size
        self.position = 0
        self._layout = layout
        self._cut = _cutter(layout)
        self._rewound()

    def _rewound(self) -> None:
        self._rest, self._line = b"", 1
        self._fresh = True
        self._ready: Iterator[Raw] = iter(())

    def next(self, limit: int, *, final: bool) -> list[Raw]:
        """Return up to `limit` rows that have content, fewer only at the present end.

        Args:
            limit: the most that are wanted.
            final: nobody writes to the file any more, so a last line counts without a newline.

        Raises:
            OSError: the file cannot be read any more.
        """
        result: list[Raw] = []
        while len(result) < limit:
            row = next(self._ready, None)
            if row is not None:
                result.append(row)
            elif not self._read(final):
                break
        return result

    def rewind(self) -> None:
        """Begin again at the first row."""
        self._file.seek(0)
        self.position = 0
        self._rewound()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _read(self, final: bool) -> bool:
        """Read on; False at the end, when all there is to do is to wait."""
        data = self._file.read(_CHUNK)
        self.position += len(data)
        at_end = not data
        if at_end and not (final and self._rest):
            return False
        if self._fresh and data:
            data, self._fresh = data.removeprefix(BOM), False
        self._ready = iter(self._rows(self._rest + data, final and at_end))
        return True

    def _rows(self, data: bytes, final: bool) -> list[Raw]:
        """Cut whole rows; keep the rest for the next time."""
        start, lines = skip_lines(data, self._layout.header_lines + 1 - self._line)
        self._line += lines
        found: list[Raw] = []
        for row in self._cut(data[start:], final):
            if row.content:
                found.append(Raw(self._line, row.content, row.reason))
            start += row.size
            self._line += row.lines
        self._rest = data[start:]
        return found


def _cutter(layout: Layout) -> Callable[[bytes, bool], Iterator[Row[Cells]]]:
    if layout.format == "json":
        return lambda data, final: json_rows(data, final=final)
    return lambda data, final: csv_rows(data, layout, final=final)
