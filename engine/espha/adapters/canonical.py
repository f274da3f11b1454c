"""From the bytes of a CSV file to its rows, and from a row to the canonical text of an event."""

import csv
import io
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from espha.adapters.config import InputFile
from espha.model import Field

MAX_RECORD = 131_072
"""Longest row in bytes (also the csv module's longest field); what is longer is cut in pieces,
so that neither a missing newline nor a missing quote can hold the rows behind it for ever."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNIT = {"date": timedelta(seconds=1), "stamp": timedelta(microseconds=1)}


class Row(NamedTuple):
    """One row: its columns, and how many bytes and lines of the file it takes."""

    columns: list[str]
    size: int
    lines: int


class _Feed:
    """Hands lines to a csv reader and knows how many it took for a row."""

    def __init__(self, lines: Sequence[bytes], start: int) -> None:
        self._lines = lines
        self.next = start
        self.exhausted = False

    def __iter__(self) -> "_Feed":
        return self

    def __next__(self) -> str:
        if self.next == len(self._lines):
            self.exhausted = True
            raise StopIteration
        self.next += 1
        return decode(self._lines[self.next - 1])


def decode(data: bytes) -> str:
    """Text of file bytes; bytes that are not UTF-8 survive the way there and back."""
    return data.decode("utf-8", "surrogateescape")


def physical_lines(chunk: bytes, final: bool) -> Iterator[bytes]:
    """Yield the complete lines of `chunk`, newline included; `final`: also the rest behind them."""
    start = 0
    while start < len(chunk):
        end = chunk.find(b"\n", start, start + MAX_RECORD) + 1
        if not end:
            if len(chunk) - start < MAX_RECORD and not final:
                return
            end = min(start + MAX_RECORD, len(chunk))
        yield chunk[start:end]
        start = end


def rows(chunk: bytes, delimiter: str, final: bool) -> Iterator[Row]:
    """Yield the complete rows of `chunk` (RFC 4180; a quoted column may hold newlines).

    A line that is no CSV (a quote that never closes, a stray carriage return) becomes a row with
    the whole line as its only column, so that the engine refuses exactly that line. Blank lines
    are rows without columns.
    """
    lines = list(physical_lines(chunk, final))
    start = 0
    while start < len(lines):
        feed = _Feed(lines, start)
        columns = _next_row(feed, delimiter)
        if feed.exhausted or columns is None:
            open_size = sum(map(len, lines[start:]))
            if columns is not None and not final and open_size < MAX_RECORD:
                return  # a quote is open: the row goes on in what is not written yet
            columns, feed.next = [decode(lines[start]).rstrip("\r\n")], start + 1
        yield Row(columns, sum(map(len, lines[start : feed.next])), feed.next - start)
        start = feed.next


def _next_row(feed: _Feed, delimiter: str) -> list[str] | None:
    try:
        return next(csv.reader(feed, delimiter=delimiter))
    except csv.Error:
        return None


class Canonical:
    """Turns a file's rows into the text of `.I` records: `opcode,flags,field,…`.

    What does not fit (column count, type, date) is passed on as it is: the engine decides what a
    bad record is, and puts it into the dead-letter topic.
    """

    def __init__(self, file: InputFile, fields: Sequence[Field]) -> None:
        self._file = file
        self._keys = [place for place, field in enumerate(fields) if field.key]
        self._dates = {
            place: _UNIT[field.type]
            for place, field in enumerate(fields)
            if file.date_format and field.type in _UNIT
        }

    def text(self, columns: Sequence[str]) -> bytes:
        """Return the record's value, UTF-8."""
        rest = list(columns)
        opcode = "I" if self._file.add_opcode else _take(rest)
        flags = "N" if self._file.add_flags else _take(rest)
        if self._file.no_autogen_field:
            for place in self._keys:
                rest.insert(place, "")
        for place, unit in self._dates.items():
            if place < len(rest):
                rest[place] = self._date(rest[place], unit)
        out = io.StringIO()
        csv.writer(out, lineterminator="\r\n").writerow([opcode, flags, *rest])
        return out.getvalue().removesuffix("\r\n").encode("utf-8", "surrogateescape")

    def _date(self, text: str, unit: timedelta) -> str:
        try:
            moment = datetime.strptime(text.strip(), self._file.date_format or "")
        except ValueError:
            return text
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return str((moment - _EPOCH) // unit)


def _take(columns: list[str]) -> str:
    return columns.pop(0) if columns else ""
