"""One open file, read up to a place, and whether a file is the one that was read before."""

import contextlib
import errno
import hashlib
from collections.abc import Callable, Iterator
from enum import Enum, auto
from pathlib import Path
from typing import Final, NamedTuple

from espha.adapters.file_input.content import Content, Moved, open_content
from espha.adapters.file_input.position import Marks, Place
from espha.adapters.file_input.spec import InputFile
from espha.protocol.sizes import CUT_BYTES
from espha.records.rows import BOM, MAX_RECORD, Row, csv_rows, decode, line_rows, skip_lines

_CHUNK: Final = 262_144
_HEADS: Final = (1, 4, 16, 64, 256, 1024, 4096)
_TAIL: Final = 256
_BODY: Final = 16 << 20
"""So many bytes at most before a place are compared when a file is opened again."""
_NEWLINE: Final = b"\n"


class Fit(Enum):
    """What a file is to what was read."""

    CONTINUES = auto()
    SHORTER = auto()
    """It ends before the place, and begins like what was read, as far as it can be compared."""
    ALTERED = auto()
    """It begins like what was read, and is another one before the place."""
    OTHER = auto()


class SourceRow(NamedTuple):
    """A row: its cells, or what is wrong with it, and the place behind it."""

    columns: list[str]
    line: int
    offset: int
    reason: str = ""


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def _body(data: bytes = b"") -> "hashlib.blake2b":
    return hashlib.blake2b(data, digest_size=8)


def _heads(content: Content, offset: int) -> dict[int, str]:
    head = content.at(0, min(offset, _HEADS[-1]))
    lengths = {*(length for length in _HEADS if length < len(head)), len(head)} - {0}
    return {length: _digest(head[:length]) for length in sorted(lengths)}


class Stillness:
    """For how long nothing has changed."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin now."""
        self._clock = clock
        self._seen: object = None
        self._since = clock()

    def look(self, seen: object) -> float:
        """Return for how many seconds `seen` has been what it is."""
        if seen != self._seen:
            self._seen, self._since = seen, self._clock()
        return self._clock() - self._since


class Reading:
    """An open file, from a place on."""

    def __init__(self, content: Content, generation: int, clock: Callable[[], float]) -> None:
        """Read from the beginning.

        Raises:
            OSError: the file cannot be looked at.
        """
        self.content, self.generation = content, generation
        self._stat = content.stat()
        self.line, self.offset = 0, 0
        self._base, self._hash = 0, _body()
        self._heads: dict[int, str] = {}
        self._tail = b""
        self._still = Stillness(clock)
        self._holes = Stillness(clock)
        self._trusted = 0
        self._hole = (-1, 0)
        self._long: tuple[int, hashlib.blake2b] | None = None

    @property
    def place(self) -> Place:
        """Where it is, with marks; who asks for it may just have met an error of the system.

        What is known of the file from before tells it as well: its number stays what it is.
        """
        with contextlib.suppress(OSError):
            self._stat = self.content.stat()
        stat = self._stat
        marks = Marks(
            inode=stat.st_ino,
            size=stat.st_size,
            heads=dict(self._heads),
            tail=_digest(self._tail) if self.offset else "",
            base=self._base,
            body=self._hash.hexdigest(),
            end=self._at_end(),
            changed=stat.st_mtime_ns,
        )
        return Place(self.generation, self.line, self.offset, marks)

    def _at_end(self) -> bool:
        """Tell whether nothing stands behind the place; while nobody knows, something does."""
        try:
            return not self.content.at(self.offset, 1) and self.content.whole()
        except OSError:
            return False

    @property
    def inode(self) -> int:
        """Number of the file."""
        return self.content.stat().st_ino

    def still_s(self) -> float:
        """Return for how many seconds the file has neither grown nor changed."""
        stat = self.content.stat()
        return self._still.look((stat.st_size, stat.st_mtime_ns))

    def behind(self) -> int:
        """Return how many bytes on the disk stand behind the place."""
        return max(0, self.content.stat().st_size - self.content.needs(self.offset))

    def rest(self) -> int:
        """Return how many bytes stand behind the place, at most those of a long row."""
        return len(self.content.at(self.offset, MAX_RECORD))

    def resume(self, place: Place) -> Fit:
        """Go to a place, if the file is the one that it is in; say what the file is."""
        content, offset, marks = self.content, place.offset, place.marks
        if offset == 0:
            return Fit.CONTINUES
        fit = _old_fit(content, place) if marks is None else _head_fit(content, marks)
        if fit is not Fit.CONTINUES:
            return fit
        self._heads = _heads(content, offset)
        base = min(marks.base if marks else offset, offset)
        self.line, self.offset = 0, max(0, min(base, offset - _TAIL))
        self._base, self._hash, self._tail = base, _body(), b""
        if not self._feed_to(offset):
            return Fit.SHORTER
        self.line = place.line
        if marks and (_digest(self._tail), self._hash.hexdigest()) != (marks.tail, marks.body):
            return Fit.ALTERED
        return Fit.CONTINUES

    def reaches(self, place: Place) -> bool:
        """Tell whether the file is as long by now as a place in it needs."""
        return self.content.needs(place.offset) <= self.content.stat().st_size

    def advance(self, place: Place) -> bool:
        """Read on to a place that another one has reached; tell whether that could be done."""
        if place.generation != self.generation or place.offset < self.offset or not place.marks:
            return False
        if place.marks.base != self._base and place.marks.base > self.offset:
            if not self._feed_to(place.marks.base):
                return False
            self._base, self._hash = place.marks.base, _body()
        self._heads = _heads(self.content, place.offset)
        if not self._feed_to(place.offset):
            return False
        self.line, self._long = place.line, None
        return (_digest(self._tail), self._hash.hexdigest()) == (
            place.marks.tail,
            place.marks.body,
        ) and self._heads == place.marks.heads

    def same(self) -> bool:
        """Tell whether the file still is what was read, as far as its ends and its size show."""
        if self.content.needs(self.offset) > self.content.stat().st_size:
            return False
        if self.offset == 0 or not self.content.again():
            return True  # what is expanded would have to be expanded once more
        if _heads(self.content, self.offset) != self._heads:
            return False
        return self.content.at(self.offset - len(self._tail), len(self._tail)) == self._tail

    def read(self, layout: InputFile, settle_s: float, *, final: bool) -> list[SourceRow]:
        """Return rows that are complete, at most 256 kB of them, and go behind them.

        Args:
            layout: how they are written.
            settle_s: for how long bytes of code zero are taken for what is not written yet, s.
            final: nobody writes on.

        Raises:
            OSError: the file cannot be read; `ESTALE`: it is another one by now.
        """
        before = self.offset
        rows = self._read_long(final) if self._long else self._read(layout, settle_s, final)
        if (rows or self.offset != before) and not self.same():
            raise OSError(errno.ESTALE, "the file was changed while it was read")
        return rows

    def _read(self, layout: InputFile, settle_s: float, final: bool) -> list[SourceRow]:
        chunk = self.content.at(self.offset, _CHUNK)
        if not chunk:
            return []
        final = final and len(chunk) < _CHUNK and self.content.whole()
        usable = self._without_holes(chunk, settle_s)
        final = final and usable == len(chunk)
        if self._tail and not self._tail.endswith(_NEWLINE):
            return self._end_torn(chunk[:usable], final)
        return self._cut(chunk[:usable], layout, final)

    def _cut(self, chunk: bytes, layout: InputFile, final: bool) -> list[SourceRow]:
        bom = len(BOM) if self.offset == 0 and chunk.startswith(BOM) else 0
        size, lines = skip_lines(chunk[bom:], layout.header_lines - self.line)
        start, line = bom + size, self.line + lines
        if line < layout.header_lines and len(chunk) < _CHUNK and not final:
            return []  # an incomplete header: nothing behind it yet
        rows: list[SourceRow] = []
        for row in _rows_of(chunk[start:], layout, final):
            end = start + row.size
            if row.size >= MAX_RECORD and chunk[end - 1 : end] != _NEWLINE:
                if not rows:
                    self._consume(chunk[:start], line)
                    return self._read_long(final)
                break
            start, line = end, line + row.lines
            if row.content:
                rows.append(SourceRow(row.content, line, self.offset + start, row.reason))
        if start > bom:
            self._consume(chunk[:start], line)
        return rows

    def _end_torn(self, chunk: bytes, final: bool) -> list[SourceRow]:
        """Go behind the rest of a line whose beginning had counted as a row."""
        end = chunk.find(_NEWLINE) + 1
        if not end and not final and len(chunk) < MAX_RECORD:
            return []
        rest, line = chunk[: end or len(chunk)], self.line
        self._consume(rest, line)
        if not rest.strip():
            return []
        reason = (
            "this is the rest of a line: the file had stood still, and then went on in it; "
            "what was published of the line is its beginning"
        )
        return [SourceRow([decode(rest).rstrip("\r\n")], line, self.offset, reason)]

    def _read_long(self, final: bool) -> list[SourceRow]:
        """Look for the end of a line that no row can be; then it is one bad row, cut."""
        begin = self.offset
        seen, digest = self._long or (begin, self._hash.copy())
        while True:
            chunk = self.content.at(seen, _CHUNK)
            end = chunk.find(_NEWLINE) + 1
            part = chunk[:end] if end else chunk
            digest.update(part)
            seen += len(part)
            if end or (final and not part):
                break
            if not part:
                cut = self.content.needs(seen) > self.content.stat().st_size
                self._long = None if cut else (seen, digest)
                return []
        self._long = None
        text = decode(self.content.at(begin, CUT_BYTES))
        self._tail = self.content.at(max(0, seen - _TAIL), min(_TAIL, seen))
        self._hash, self.offset, self.line = digest, seen, self.line + 1
        self._heads = _heads(self.content, seen)
        self._rebase()
        reason = f"a line of {seen - begin} bytes; a row can have {MAX_RECORD}"
        return [SourceRow([text], self.line, seen, reason)]

    def _without_holes(self, chunk: bytes, settle_s: float) -> int:
        """Return how much of it can be used: a file may be longer before its bytes are there."""
        found = chunk.find(b"\0", max(0, self._trusted - self.offset))
        if found < 0:
            return len(chunk)
        place = self.offset + found
        if place != self._hole[0]:
            self._hole = place, self.content.stat().st_size
        if self._holes.look(place) < settle_s:
            return found
        self._trusted = max(self._hole[1], self.offset + len(chunk))
        return len(chunk)

    def _feed_to(self, offset: int) -> bool:
        while self.offset < offset:
            chunk = self.content.at(self.offset, min(_CHUNK, offset - self.offset))
            if not chunk:
                return False
            self._take(chunk)
        return True

    def _consume(self, data: bytes, line: int) -> None:
        if not data:
            return
        grown = self.offset < _HEADS[-1]
        self._take(data)
        self.line = line
        if grown:
            self._heads = _heads(self.content, self.offset)
        self._rebase()

    def _rebase(self) -> None:
        if self.offset - self._base > _BODY:
            self._base, self._hash = self.offset, _body()

    def _take(self, data: bytes) -> None:
        self._hash.update(data[max(0, self._base - self.offset) :])
        self._tail = (self._tail + data)[-_TAIL:]
        self.offset += len(data)

    def close(self) -> None:
        """Let go of the file."""
        self.content.close()


@contextlib.contextmanager
def closed_on_error(file: Content | Reading) -> Iterator[None]:
    """Let go of a file if it is of no use after all: who tries again opens it again."""
    try:
        yield
    except BaseException:
        file.close()
        raise


def open_reading(
    path: Path, layout: InputFile, generation: int, clock: Callable[[], float], moved: Moved
) -> Reading | None:
    """Open a file at its beginning; for what it returns and raises see `open_content`."""
    content = open_content(path, layout.encoding, moved)
    if content is None:
        return None
    with closed_on_error(content):
        return Reading(content, generation, clock)


def goes_on(reading: Reading, place: Place) -> bool:
    """Go to a place in a file; tell whether it is in it. A file that it is not in is closed."""
    with closed_on_error(reading):
        found = reading.resume(place) is Fit.CONTINUES
    if not found:
        reading.close()
    return found


def not_complete(name: str) -> str:
    """Return the sentence for a file that has stood still and has no end (`Content.whole`)."""
    return (
        f"{name} stands still, and is not complete: what is compressed in it, or its last "
        "character, has no end. Waiting for the rest; or put the whole file there"
    )


def _rows_of(data: bytes, layout: InputFile, final: bool) -> Iterator[Row[list[str]]]:
    if layout.format == "json":
        return line_rows(data, final=final)
    return csv_rows(data, layout, final=final)


def _head_fit(content: Content, marks: Marks) -> Fit:
    """Compare beginnings, as much of them as there is."""
    head = content.at(0, _HEADS[-1])
    lengths = [length for length in sorted(marks.heads) if length <= len(head)]
    if lengths and _digest(head[: lengths[-1]]) != marks.heads[lengths[-1]]:
        return Fit.OTHER
    return Fit.CONTINUES if len(lengths) == len(marks.heads) else Fit.SHORTER


def _old_fit(content: Content, place: Place) -> Fit:
    """Compare what versions before `Marks` have kept: beginning and end together."""
    head = content.at(0, min(place.offset, _TAIL))
    start = max(0, place.offset - _TAIL)
    tail = content.at(start, place.offset - start)
    if len(tail) < place.offset - start:
        return Fit.SHORTER
    return Fit.CONTINUES if place.mark in ("", _digest(head + tail)) else Fit.OTHER


def read_on(
    now: Reading, layout: InputFile, let_go: Callable[[], None], *, final: bool
) -> list[SourceRow]:
    """Return rows as `Reading.read` does; a file that is another one by now has none.

    Args:
        now: what is read.
        layout: how its rows are written.
        let_go: called when it cannot be read; it goes back to the place before that, for what was
            read then does not count.
        final: nobody writes on.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        return now.read(layout, layout.settle_s, final=final)
    except OSError as error:
        let_go()
        if error.errno != errno.ESTALE:
            raise
        return []
