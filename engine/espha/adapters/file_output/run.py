"""Writes what a window publishes to a file."""

from collections.abc import Callable, Sequence

from espha.adapters.config import ConfigError, Job
from espha.adapters.copying import Taken, copy
from espha.adapters.file_output.spec import OutputFile
from espha.adapters.file_output.target import TargetFile
from espha.adapters.formats.outgoing import outgoing
from espha.adapters.formats.spec import OutputFormat
from espha.adapters.output_records import Rejected
from espha.connectors.files import record_style
from espha.model import Field, Window
from espha.protocol.status import OutputProgress

Lines = Callable[[Sequence[Taken]], tuple[list[bytes], int]]
"""Makes lines of records, and counts those that it could not read."""


def run(job: Job, file: OutputFile) -> None:
    """Run the adapter until the process is ended; see `espha.adapters.config.Runner`."""
    of_topic = record_style(job.window).format
    if file.header != "none" and "json" in {of_topic, file.format}:
        who = f"window {job.window.path!r} writes" if of_topic == "json" else "the file is to have"
        raise ConfigError(f"{who} JSON: set the file's header to none")

    def open_target(identity: str) -> Output:
        follow = file.missing == "new"
        return Output(file, job.window, TargetFile(file.path, job.topic, identity, follow=follow))

    copy(job, str(file.path), open_target)


def header_line(kind: str, fields: Sequence[Field]) -> list[bytes]:
    """Return the file's first line, as a list of none or one."""
    names = ["opcode", "flags"] if kind == "full" else []
    names += [field.name for field in fields]
    return [] if kind == "none" else [",".join(names).encode()]


class Output:
    """The lines of the file behind its header; see `espha.adapters.copying.Target`."""

    def __init__(self, file: OutputFile, window: Window, target: TargetFile) -> None:
        self._file, self._target = file, target
        self._header = header_line(file.header, window.fields)
        self._rejected = 0
        as_it_is = file.format == record_style(window).format or file.format == "record"
        self._lines = _values if as_it_is else _objects(window)

    @property
    def offset(self) -> int:
        """Offset of the first record that the file does not have."""
        return self._target.position.offset

    def append(self, records: Sequence[Taken], offset: int) -> None:
        """Add the records' lines; see `TargetFile.append`."""
        lines, rejected = self._lines(records)
        self._target.append(lines, offset, self._header)
        self._rejected += rejected

    def settle(self) -> None:
        """Begin the next file when this one is full."""
        most, longest = self._file.rotate_bytes, self._file.rotate_seconds
        target = self._target
        full = most is not None and target.position.length >= most
        if target.position.since and (full or (longest is not None and target.age >= longest)):
            target.move()

    def progress(self, rows: int) -> OutputProgress:
        """Return what the status shows; see `espha.adapters.copying.Target`."""
        position = self._target.position
        return OutputProgress(
            rows=rows,
            rejected=self._rejected,
            position=f"{self._file.path.name}, byte {position.length}; offset {position.offset}",
            offset=position.offset,
            length=position.length,
        )


def _objects(window: Window) -> Lines:
    made = outgoing(window, OutputFormat(type="json"))

    def lines(records: Sequence[Taken]) -> tuple[list[bytes], int]:
        found = [made.payload(record) for record in records]
        count = sum(isinstance(one, Rejected) for one in found)
        return [one.line() if isinstance(one, Rejected) else one for one in found], count

    return lines


def _values(records: Sequence[Taken]) -> tuple[list[bytes], int]:
    return [record.value for record in records], 0
