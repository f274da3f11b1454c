"""Publishes the rows of files."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from espha.adapters.config import ConfigError, Job
from espha.adapters.file_input.folder import SourceFolder
from espha.adapters.file_input.position import Position, RowPosition, source_position
from espha.adapters.file_input.reading import SourceRow
from espha.adapters.file_input.source import SourceFile
from espha.adapters.file_input.spec import InputFile
from espha.adapters.formats.incoming import incoming, record_of_cells, topic_form
from espha.adapters.formats.refused import not_a_row
from espha.adapters.formats.spec import InputFormat
from espha.adapters.publishing import publish
from espha.model.events import BadRecord
from espha.protocol.status import Lag
from espha.records.rows import encode
from espha.records.text import canonical_writer


class _Files(Protocol):
    """What yields rows; see `SourceFile` and `SourceFolder`."""

    @property
    def position(self) -> Position: ...

    def poll(self) -> Sequence[tuple[SourceRow, Position | RowPosition]]: ...

    def advance(self, position: Position) -> None: ...

    def look(self) -> None: ...

    def behind(self) -> int | None: ...

    def close(self) -> None: ...


def run(job: Job, file: InputFile) -> None:
    """Run the adapter until the process is ended; see `espha.adapters.config.Runner`."""
    if topic_form(job.window) == "json" and file.format != "json":
        raise ConfigError(f"window {job.window.path!r} reads JSON: set the file's format to json")
    publish(job, lambda position: _Rows(job, file, position))


class _Rows:
    """The rows as records; see `espha.adapters.publishing.Source`."""

    def __init__(self, job: Job, file: InputFile, position: Mapping[str, Any] | None) -> None:
        self.name = str(file.path)
        begin = source_position(job.name, file.path, position)
        kind = SourceFolder if file.pattern else SourceFile
        self._source: _Files = kind(file, begin, moved=job.control.doing.moved)
        self._source.look()
        self._form, self._encoding = topic_form(job.window), file.encoding
        self._delimiter = file.delimiter
        self._write = canonical_writer(job.window, file)
        self._objects = incoming(job.window, _objects(file)) if file.format == "json" else None

    @property
    def position(self) -> Position:
        return self._source.position

    def poll(self) -> list[tuple[bytes, Position | RowPosition]]:
        return [
            (record, position)
            for row, position in self._source.poll()
            for record in self._records(row, position)
        ]

    def advance(self, position: Mapping[str, Any]) -> None:
        self._source.advance(Position.from_object(position))

    def behind(self) -> Lag | None:
        count = self._source.behind()
        return None if count is None else Lag(count, "bytes")

    def committed(self) -> None:
        """Nobody waits for it."""

    def close(self) -> None:
        self._source.close()

    def _records(self, row: SourceRow, position: Position | RowPosition) -> list[bytes]:
        if row.reason:
            text = encode(",".join(row.columns))
            return [not_a_row(f"{_where(row, position)}: {row.reason}", text, self._form)]
        if self._objects is not None:
            return self._objects.records(encode(row.columns[0]), _where(row, position))
        try:
            return [record_of_cells(self._write, row.columns, self._encoding)]
        except BadRecord as error:
            line = encode(self._delimiter.join(row.columns))
            return [not_a_row(f"{_where(row, position)}: {error.reason}", line)]


def _where(row: SourceRow, position: Position | RowPosition) -> str:
    return f"line {row.line} of {position.file}"


def _objects(file: InputFile) -> InputFormat:
    return InputFormat(
        type="json",
        upsert=file.upsert,
        partial=file.partial,
        date_format=file.date_format,
        strip_nulls=file.strip_nulls,
    )
