"""Writes what a window publishes to a CSV file."""

from collections.abc import Sequence

from espha.adapters.config import ConfigError, Job
from espha.adapters.copying import copy
from espha.adapters.file_output.spec import OutputFile
from espha.adapters.file_output.target import TargetFile
from espha.connectors.files import record_style
from espha.model import Field
from espha.protocol.status import OutputProgress


def run(job: Job, file: OutputFile) -> None:
    """Run the adapter until the process is ended; see `espha.adapters.config.Runner`."""
    if file.header != "none" and record_style(job.window).format == "json":
        raise ConfigError(f"window {job.window.path!r} writes JSON: set the file's header to none")
    header = header_line(file.header, job.window.fields)
    copy(job, str(file.path), lambda identity: _Lines(file, job.topic, identity, header))


def header_line(kind: str, fields: Sequence[Field]) -> list[bytes]:
    """Return the file's first line, as a list of none or one."""
    names = ["opcode", "flags"] if kind == "full" else []
    names += [field.name for field in fields]
    return [] if kind == "none" else [",".join(names).encode()]


class _Lines:
    """The lines of the file behind its header; see `espha.adapters.copying.Target`."""

    def __init__(self, file: OutputFile, topic: str, topic_id: str, header: list[bytes]) -> None:
        self._file = TargetFile(file.path, topic, topic_id)
        self._header = header

    @property
    def offset(self) -> int:
        return self._file.position.offset

    def append(self, records: list[bytes], offset: int) -> None:
        empty = self._file.position.length == 0
        self._file.append([*self._header, *records] if empty else records, offset)

    def progress(self, rows: int) -> OutputProgress:
        position = self._file.position
        return OutputProgress(rows=rows, offset=position.offset, length=position.length)
