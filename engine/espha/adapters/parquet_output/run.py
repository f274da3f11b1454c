"""Writes what a window publishes into Parquet files."""

import time
from collections.abc import Callable, Sequence

import pyarrow as pa

from espha.adapters.config import ConfigError, Job
from espha.adapters.copying import Taken, copy
from espha.adapters.output_records import Rejected, output_reader, rejected
from espha.adapters.parquet_output.dataset import Dataset
from espha.adapters.parquet_output.rows import batch_of, row_writer, schema_of
from espha.adapters.parquet_output.spec import OutputParquet
from espha.model import Window
from espha.model.events import BadRecord
from espha.protocol.status import OutputProgress

_GATHERED_BYTES = 2**25
"""So much text of records is a file, however few rows that are: memory is bounded."""


def run(job: Job, place: OutputParquet) -> None:
    """Run the adapter until the process is ended; see `espha.adapters.config.Runner`."""
    copy(
        job,
        str(place.path),
        lambda identity: Output(place, job.window, Dataset(place.path, job.topic, identity)),
    )


class Output:
    """Gathers rows for the next file; see `espha.adapters.copying.Target`."""

    def __init__(
        self,
        place: OutputParquet,
        window: Window,
        dataset: Dataset,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        names = {"espha_offset", "opcode", "flags"} & {field.name for field in window.fields}
        if names:
            raise ConfigError(
                f"window {window.path!r} has a field {min(names)!r}, which the files need for "
                "themselves; rename the field in the model"
            )
        self._place, self._dataset, self._now = place, dataset, now
        self._read, self._row = output_reader(window), row_writer(window.fields)
        self._schema = schema_of(window.fields)
        self._rejected = 0
        self._reached = dataset.position.offset
        self._since: float | None = None
        self._forget()

    @property
    def offset(self) -> int:
        """Offset of the first record that no file has."""
        return self._dataset.position.offset

    def append(self, records: Sequence[Taken], offset: int) -> None:
        """Keep the records in mind; `settle` writes them. It cannot fail."""
        rows = []
        for record, found in self._read(records):
            if isinstance(found, Rejected):
                self._bad.append(found.line())
                continue
            try:
                rows.append(self._row(record.offset, found))
            except BadRecord as error:
                self._bad.append(rejected(record, error.reason).line())
        if rows:
            self._batches.append(batch_of(rows, self._schema))
        if records and self._since is None:
            self._since = self._now()
        self._rows += len(rows)
        self._bytes += sum(len(record.value) for record in records)
        self._reached = offset

    def settle(self) -> None:
        """Write a file where there is enough for one, or the time has come."""
        place = self._place
        if self._since is None:
            return
        enough = self._rows >= place.file_rows or self._bytes >= _GATHERED_BYTES
        if enough or self._now() - self._since >= place.file_seconds:
            table = pa.Table.from_batches(self._batches, self._schema)
            self._dataset.add(table, self._bad, self._reached)
            self._rejected += len(self._bad)
            self._forget()

    def progress(self, rows: int) -> OutputProgress:
        """Return what the status shows; see `espha.adapters.copying.Target`."""
        written = rows - self._rows - len(self._bad)
        return OutputProgress(rows=written, rejected=self._rejected, offset=self.offset)

    def _forget(self) -> None:
        self._batches: list[object] = []
        self._bad: list[bytes] = []
        self._rows = self._bytes = 0
        self._since = None
