"""A CSV file that others write: read on from a position, notice when it became another file."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import structlog

from espha.adapters.file_input.spec import InputFile
from espha.protocol.status import InputProgress
from espha.records.rows import BOM, csv_rows, skip_lines

_CHUNK = 262_144
_MARK_BYTES = 256
_CLOSED = -1

_LOG = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Position:
    """How far a file was read: behind `line` lines and `offset` bytes of its `generation`.

    `mark` is a fingerprint of the bytes at the file's beginning and just before `offset`: as long
    as it fits, the file at `file` still continues what was read.
    """

    adapter: str
    file: str
    generation: int = 1
    line: int = 0
    offset: int = 0
    mark: str = ""

    def to_header(self) -> bytes:
        """Return the value of the `espha-source` header."""
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    @classmethod
    def from_header(cls, value: bytes) -> "Position":
        """Read a header's value back."""
        return cls(**json.loads(value))

    def progress(self, rows: int) -> InputProgress:
        """Return what the status shows of it; `rows`: published in this life."""
        return InputProgress(
            rows=rows, line=self.line, offset=self.offset, generation=self.generation
        )


class SourceRow(NamedTuple):
    """A row's columns, and the position behind it."""

    columns: list[str]
    position: Position


class SourceFile:
    """Reads the rows behind a position; call `poll` again and again.

    A file that is replaced (renamed away, another one in its place) is first read to its end.
    A file that got shorter, or has other content than what was read, is a new file: it is read
    from its beginning, with the next generation number, and a log line says so.
    """

    def __init__(self, file: InputFile, position: Position) -> None:
        self._file = file
        self._position = position
        self._descriptor = _CLOSED
        self._missing = False

    @property
    def position(self) -> Position:
        """Where the next poll goes on."""
        return self._position

    def poll(self) -> list[SourceRow]:
        """Return the rows that are complete now, at most 256 kB of them; often none.

        Raises:
            OSError: the file is there but cannot be read.
        """
        if self._descriptor == _CLOSED and not self._open():
            return []
        self._check_content()
        found = list(self._read(final=not self._file.growing))
        if found or not self._replaced():
            return found
        found = list(self._read(final=True))  # nobody writes to it any more
        if not found:
            self.close()
        return found

    def close(self) -> None:
        """Let go of the file; the next poll opens it again."""
        if self._descriptor != _CLOSED:
            os.close(self._descriptor)
            self._descriptor = _CLOSED

    def _open(self) -> bool:
        try:
            self._descriptor = os.open(self._file.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            if not self._missing:
                _LOG.info("waiting for the file to appear", file=str(self._file.path))
            self._missing = True
            return False
        self._missing = False
        return True

    def _replaced(self) -> bool:
        try:
            there = self._file.path.stat()
        except FileNotFoundError:
            return False  # keep what we have open until another file is there
        return not os.path.samestat(there, os.fstat(self._descriptor))

    def _check_content(self) -> None:
        old = self._position
        if old.offset == 0 or self._mark(old.offset) == old.mark:
            return
        size = os.fstat(self._descriptor).st_size
        what = "got shorter" if size < old.offset else "has other content than what was read"
        _LOG.warning(
            f"the file {what}: it is read from its beginning as a new file",
            file=str(self._file.path),
            generation=old.generation + 1,
            size=size,
            read_up_to=old.offset,
        )
        self._position = replace(old, generation=old.generation + 1, line=0, offset=0, mark="")

    def _read(self, final: bool) -> Iterator[SourceRow]:
        chunk = os.pread(self._descriptor, _CHUNK, self._position.offset)
        at_end = len(chunk) < _CHUNK
        start = self._skip_beginning(chunk)
        for row in csv_rows(chunk[start:], self._file, final=final and at_end):
            self._advance(row.size, row.lines)
            if row.content:
                yield SourceRow(row.content, self._position)

    def _skip_beginning(self, chunk: bytes) -> int:
        """Step over what stands before the rows and is not behind us yet; return its length."""
        start = len(BOM) if self._position.offset == 0 and chunk.startswith(BOM) else 0
        size, lines = skip_lines(chunk[start:], self._file.header_lines - self._position.line)
        if self._position.line + lines < self._file.header_lines:
            return len(chunk)  # an incomplete header: nothing to read behind it yet
        if start + size:
            self._advance(start + size, lines)
        return start + size

    def _advance(self, size: int, lines: int) -> None:
        old = self._position
        offset = old.offset + size
        self._position = replace(old, line=old.line + lines, offset=offset, mark=self._mark(offset))

    def _mark(self, offset: int) -> str:
        start = max(0, offset - _MARK_BYTES)
        head = os.pread(self._descriptor, min(offset, _MARK_BYTES), 0)
        tail = os.pread(self._descriptor, offset - start, start)
        return hashlib.blake2b(head + tail, digest_size=8).hexdigest()


def source_position(adapter: str, path: Path, found: Mapping[str, Any] | None = None) -> Position:
    """Return where to go on in a file.

    Args:
        adapter: the name of the adapter.
        path: the file, which may have been moved since.
        found: what `Position.to_header` wrote; None: nothing of the file was read yet.
    """
    if found is None:
        return Position(adapter=adapter, file=str(path))
    return replace(Position(**found), file=str(path))
