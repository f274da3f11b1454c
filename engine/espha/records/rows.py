"""Files to the rows that stand in them, each with the number of its line."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from espha.model.events import BadRecord
from espha.records.layout import Layout
from espha.records.text import split

MAX_RECORD = 4 * 1024 * 1024
"""Longest row in characters: what is longer is cut, so that neither a missing newline nor a
missing quote can hold the rows behind it for ever."""

_CHUNK = 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class Raw(NamedTuple):
    """One row: its line from 1, its cells (CSV) or object (JSON), or what is wrong with it."""

    line: int
    content: list[str] | dict[str, object]
    reason: str = ""


class RowFile:
    """The rows of a file, from where reading stopped; more may be written meanwhile."""

    def __init__(self, path: Path, layout: Layout) -> None:
        """Open the file.

        Raises:
            OSError: it cannot be read.
        """
        self._file = path.open("rb")
        self._strip_nulls = layout.strip_nulls
        self._header = layout.header
        self._cut: Callable[[str, int, bool], Iterator[tuple[Raw | None, int, int]]] = (
            _json_rows if layout.format == "json" else _csv_rows(layout.delimiter)
        )
        self._rewound()

    def _rewound(self) -> None:
        self._bytes, self._text, self._line = b"", "", 1
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
        self._rewound()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _read(self, final: bool) -> bool:
        """Read on; False at the end, when all there is to do is to wait."""
        data = self._file.read(_CHUNK)
        at_end = not data
        if at_end and not (final and (self._bytes or self._text)):
            return False
        if self._fresh and data:
            data, self._fresh = data.removeprefix(_BOM), False
        self._take(self._bytes + data, final and at_end)
        return True

    def _take(self, data: bytes, final: bool) -> None:
        """Cut whole lines into rows; keep the rest for the next time."""
        end = len(data) if final or len(data) > MAX_RECORD else data.rfind(b"\n") + 1
        self._bytes = data[end:]
        # What is not UTF-8 becomes half a character, which the source window refuses.
        text = self._text + data[:end].decode("utf-8", "surrogateescape")
        if self._strip_nulls:
            text = text.replace("\0", "")
        self._ready = iter(self._rows(text, final))

    def _rows(self, text: str, final: bool) -> list[Raw]:
        start = self._after_header(text)
        rows: list[Raw] = []
        for row, size, lines in self._cut(text[start:], self._line, final):
            start += size
            self._line += lines
            if row is not None:
                rows.append(row)
        self._text = text[start:]
        return rows

    def _after_header(self, text: str) -> int:
        start = 0
        while self._line <= self._header:
            end = text.find("\n", start) + 1
            if not end:
                return len(text)
            start, self._line = end, self._line + 1
        return start


def _csv_rows(delimiter: str) -> Callable[[str, int, bool], Iterator[tuple[Raw | None, int, int]]]:
    """Return the function that yields (row, characters, lines) of the complete rows of a text."""

    def rows(text: str, line: int, final: bool) -> Iterator[tuple[Raw | None, int, int]]:
        lines = _lines(text)
        place = 0
        while place < len(lines):
            taken = _joined(lines, place)
            if taken is None:  # a quote is open: the row goes on in what is not read yet
                if not final and len(text) <= MAX_RECORD:
                    return
                taken = 1
            row = _csv_row("".join(lines[place : place + taken]), line, delimiter)
            if row is not None and row.reason and taken > 1:
                # The quote was none: only the first of these lines is bad.
                taken = 1
                row = _csv_row(lines[place], line, delimiter)
            yield row, sum(map(len, lines[place : place + taken])), taken
            place += taken
            line += taken

    return rows


def _lines(text: str) -> list[str]:
    """Split at newlines only, and keep them: other line ends of Unicode are text."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _joined(lines: list[str], place: int) -> int | None:
    """Count the lines of the row that begins at `place`; None: a quote is open to the end."""
    quotes = lines[place].count('"')
    taken, size = 1, len(lines[place])
    while quotes % 2:
        if place + taken == len(lines):
            return None
        line = lines[place + taken]
        size += len(line)
        if size > MAX_RECORD:
            return 1
        quotes += line.count('"')
        taken += 1
    return taken


def _csv_row(text: str, line: int, delimiter: str) -> Raw | None:
    text = text.removesuffix("\n").removesuffix("\r")
    if not text.strip():
        return None
    try:
        return Raw(line, split(text, delimiter))
    except BadRecord as refusal:
        return Raw(line, [text], refusal.reason)


def _json_rows(text: str, line: int, final: bool) -> Iterator[tuple[Raw | None, int, int]]:
    """Yield (row, characters, lines) for each object, alone on a line or in (nested) arrays."""
    decoder = json.JSONDecoder()
    place = 0
    while place < len(text):
        start = place
        while place < len(text) and text[place] in " \t\r\n,[]":
            place += 1
        lines = text.count("\n", start, place)
        if place > start:
            yield None, place - start, lines
            line += lines
        if place == len(text):
            return
        row, end = _json_row(decoder, text, place, line)
        if row is None:
            if not final and len(text) - place <= MAX_RECORD:
                return  # perhaps the rest of the object is not written yet
            end = text.find("\n", place) + 1 or len(text)
            row = Raw(line, [text[place:end]], "not a JSON object")
        lines = text.count("\n", place, end)
        yield row, end - place, lines
        line += lines
        place = end


def _json_row(
    decoder: json.JSONDecoder, text: str, place: int, line: int
) -> tuple[Raw | None, int]:
    try:
        value, end = decoder.raw_decode(text, place)
    except (ValueError, RecursionError):
        return None, place
    if isinstance(value, dict):
        return Raw(line, value), end
    return Raw(line, [text[place:end]], "not a JSON object"), end
