"""Publishes the rows of a CSV file."""

from collections.abc import Mapping
from typing import Any

from espha.adapters.config import ConfigError, Job
from espha.adapters.file_input.source import Position, SourceFile, source_position
from espha.adapters.file_input.spec import InputFile
from espha.adapters.publishing import publish
from espha.connectors.files import record_layout
from espha.records.text import canonical_writer


def run(job: Job, file: InputFile) -> None:
    """Run the adapter until the process is ended; see `espha.adapters.config.Runner`."""
    if record_layout(job.window).format == "json":
        raise ConfigError(f"window {job.window.path!r} reads JSON, this adapter writes CSV")
    publish(job, lambda position: _Rows(job, file, position))


class _Rows:
    """The rows of the file as records; see `espha.adapters.publishing.Source`."""

    def __init__(self, job: Job, file: InputFile, position: Mapping[str, Any] | None) -> None:
        self.name = str(file.path)
        self._source = SourceFile(file, source_position(job.name, file.path, position))
        self._write = canonical_writer(job.window, file)

    @property
    def position(self) -> Position:
        return self._source.position

    def poll(self) -> list[tuple[bytes, Position]]:
        return [
            (self._write(columns).encode("utf-8", "surrogateescape"), position)
            for columns, position in self._source.poll()
        ]

    def close(self) -> None:
        self._source.close()
