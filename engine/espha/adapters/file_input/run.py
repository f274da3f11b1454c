"""Publishes the rows of CSV files."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from espha.adapters.config import ConfigError, Job
from espha.adapters.file_input.folder import SourceFolder
from espha.adapters.file_input.position import Position, source_position
from espha.adapters.file_input.reading import SourceRow
from espha.adapters.file_input.source import SourceFile
from espha.adapters.file_input.spec import InputFile
from espha.adapters.formats.incoming import topic_form
from espha.adapters.formats.refused import not_a_row
from espha.adapters.publishing import publish
from espha.records.rows import encode
from espha.records.text import canonical_writer


class _Files(Protocol):
    """What yields rows; see `SourceFile` and `SourceFolder`."""

    @property
    def position(self) -> Position: ...

    def poll(self) -> Sequence[tuple[SourceRow, Position]]: ...

    def advance(self, position: Position) -> None: ...

    def look(self) -> None: ...

    def close(self) -> None: ...


def run(job: Job, file: InputFile) -> None:
    """Run the adapter until the process is ended; see `espha.adapters.config.Runner`."""
    if topic_form(job.window) == "json":
        raise ConfigError(f"window {job.window.path!r} reads JSON, this adapter writes CSV")
    publish(job, lambda position: _Rows(job, file, position))


class _Rows:
    """The rows as records; see `espha.adapters.publishing.Source`."""

    def __init__(self, job: Job, file: InputFile, position: Mapping[str, Any] | None) -> None:
        self.name = str(file.path)
        begin = source_position(job.name, file.path, position)
        self._source: _Files = (SourceFolder if file.pattern else SourceFile)(file, begin)
        self._source.look()
        self._write = canonical_writer(job.window, file)

    @property
    def position(self) -> Position:
        return self._source.position

    def poll(self) -> list[tuple[bytes, Position]]:
        return [(self._record(row, position), position) for row, position in self._source.poll()]

    def advance(self, position: Mapping[str, Any]) -> None:
        self._source.advance(Position.from_object(position))

    def committed(self) -> None:
        """Nobody waits for it."""

    def close(self) -> None:
        self._source.close()

    def _record(self, row: SourceRow, position: Position) -> bytes:
        if row.reason:
            where = f"line {row.line} of {position.file}: {row.reason}"
            return not_a_row(where, encode(",".join(row.columns)))
        return encode(self._write(row.columns))
