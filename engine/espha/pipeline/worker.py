"""The half of a batch job that runs in Spark's Python worker: the kernel, and its state.

Input columns: `row` (place in the table), `source` (index of the source window; -1 for the row
that opens a batch), `value` (the text as it came; for an opening row a JSON object), and one
struct `s<i>` for each source window with opcode, flags, the fields and `bad` (not null: Catalyst
could not decode the record), in this order.

Output columns: `row`, `ordinal` (0, 1 … among the outputs of one input), `kind` (index of the
output window, `OPENED` or `REFUSED`), `text` (of those two), and one struct `w<i>` for each output
window with `opcode`, `flags`, `f0` ….
"""

import gc
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from espha.kernel import Kernel
from espha.model import Project, read_project
from espha.model.csv import parse_event
from espha.pipeline.plain import NotPlainError, dumps, loads
from espha.windows.events import BadRecord, Event

OPEN = -1
"""`source` of a row that opens a batch."""
OPENED = -1
"""`kind` of the answer to an opening row: what the worker holds after this batch."""
REFUSED = -2
"""`kind` of a record that the model refuses; `text` says why."""

_OPCODES = {
    "I": "I", "INSERT": "I", "U": "U", "UPDATE": "U", "P": "P", "UPSERT": "P",
    "D": "D", "DELETE": "D", "SD": "SD", "SAFEDELETE": "SD",
}  # fmt: skip
_FLAGS = {"N": "N", "NORMAL": "N", "P": "P", "PARTIALUPDATE": "P", "R": "R", "RETENTION": "R"}


class WorkerModel(NamedTuple):
    """What the worker must know of the model; small, since it travels with every job."""

    xml: str
    digest: str
    sources: tuple[str, ...]
    """Paths of the source windows; a row's `source` is an index into them."""
    formats: tuple[str, ...]
    """`csv` or `json`, for each source window."""
    outputs: tuple[str, ...]
    """Paths of the output windows; an output row's `kind` is an index into them."""


class _Held:
    """The one state of this worker process: a kernel, and the sequence number it stands for."""

    def __init__(self) -> None:
        self.digest = ""
        self.sequence: int | None = None
        self.clock = 0
        self.kernel: Kernel | None = None
        self.project: Project | None = None


_HELD = _Held()
STATE_ROWS = pa.schema([("note", pa.string()), ("part", pa.binary())])
"""Rows in which a state travels: a note (JSON), or a part."""
_PART_BYTES = 4 << 20


def run_batches(model: WorkerModel, schema: pa.Schema) -> Callable[..., Iterator[pa.RecordBatch]]:
    """Return the function for `mapInArrow`; `schema` is that of its output."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Spark pickles this function with the globals that it names, so naming _HELD here would
        # give every job a copy of it; the import finds the one that lives in the worker.
        from espha.pipeline.worker import pass_through

        return pass_through(model, schema, batches)

    return run


def pass_through(
    model: WorkerModel, schema: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Run a job's input rows through this worker's kernel."""
    run = _Run(model, _HELD, schema)
    for batch in batches:
        yield run.process(batch)
    yield run.finish()
    if gc.get_freeze_count() == 0:
        # Spark collects garbage after each job, 50 ms over all loaded modules: leave them out.
        gc.freeze()


def state_out(model: WorkerModel) -> Callable[..., Iterator[pa.RecordBatch]]:
    """Return the function for `mapInArrow` that gives the state, in rows of `STATE_ROWS`."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from espha.pipeline.worker import give_state

        list(batches)  # a worker that leaves input unread is ended, and its state with it
        return give_state(model)

    return run


def state_in(model: WorkerModel, sequence: int) -> Callable[..., Iterator[pa.RecordBatch]]:
    """Return the function for `mapInArrow` that takes a state, in rows of `STATE_ROWS`."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from espha.pipeline.worker import take_state

        return take_state(model, sequence, batches)

    return run


def give_state(model: WorkerModel) -> Iterator[pa.RecordBatch]:
    """Yield a row with a note on this worker's state, then rows with the parts of it."""
    held = _HELD
    if held.kernel is None or held.sequence is None or held.digest != model.digest:
        yield _note(sequence=None)
        return
    try:
        body = dumps(held.kernel.state())
    except NotPlainError as error:
        yield _note(error=str(error))
        return
    yield _note(sequence=held.sequence)
    for part in cut(body):
        yield pa.RecordBatch.from_pylist([{"note": None, "part": part}], schema=STATE_ROWS)


def take_state(
    model: WorkerModel, sequence: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Hold the state whose parts come in; yield a note."""
    body = b"".join(part for batch in batches for part in batch.column("part").to_pylist())
    project = read_project(model.xml)
    kernel = Kernel(project)
    try:
        kernel.restore(loads(body))
    except Exception as error:  # what is not a state of this model fails in any way
        yield _note(error=f"{type(error).__name__}: {error}")
        return
    _HELD.kernel, _HELD.project = kernel, project
    _HELD.digest, _HELD.sequence = model.digest, sequence
    yield _note(sequence=sequence)


def cut(body: bytes) -> Iterator[bytes]:
    """Cut a state into the parts in which it travels."""
    return (body[at : at + _PART_BYTES] for at in range(0, len(body), _PART_BYTES))


def _note(**note: Any) -> pa.RecordBatch:
    rows = [{"note": json.dumps(note), "part": None}]
    return pa.RecordBatch.from_pylist(rows, schema=STATE_ROWS)


class _Run:
    """One pass over the input rows of a job, however Spark cuts them into Arrow batches."""

    def __init__(self, model: WorkerModel, held: _Held, schema: pa.Schema) -> None:
        self._model = model
        self._held = held
        self._schema = schema
        self._outputs = {path: index for index, path in enumerate(model.outputs)}
        self._rows: list[dict[str, Any]] = []
        self._closing: dict[str, Any] | None = None

    def process(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Process input rows; return the output rows that are ready."""
        columns = [
            _struct_rows(batch.column(f"s{index}")) for index in range(len(self._model.sources))
        ]
        rows = batch.column("row").to_pylist()
        sources = batch.column("source").to_pylist()
        values = batch.column("value").to_pylist()
        for place, (row, source, value) in enumerate(zip(rows, sources, values, strict=True)):
            if source == OPEN:
                self._close()
                self._open(row, json.loads(value))
            elif self._closing is not None and "held" not in self._closing:
                self._publish(row, source, value, columns[source][place])
        return self._take()

    def finish(self) -> pa.RecordBatch:
        """Close the last batch; return its closing row."""
        self._close()
        return self._take()

    def _take(self) -> pa.RecordBatch:
        rows, self._rows = self._rows, []
        return pa.RecordBatch.from_pylist(rows, schema=self._schema)

    def _open(self, row: int, order: dict[str, Any]) -> None:
        held = self._held
        if order["expect"] is None:
            held.project = read_project(self._model.xml)
            held.kernel = Kernel(held.project)
            held.digest = self._model.digest
        elif held.sequence != order["expect"] or held.digest != self._model.digest:
            self._closing = {"row": row, "held": held.sequence}
            return
        held.sequence = None  # in the middle of a batch the state stands for no number
        held.clock = order["clock"]
        self._closing = {"row": row, "sequence": order["sequence"]}

    def _close(self) -> None:
        if self._closing is None:
            return
        answer, self._closing = self._closing, None
        row = answer.pop("row")
        if "held" not in answer:
            self._held.sequence = answer["sequence"]
        self._rows.append({"row": row, "ordinal": 0, "kind": OPENED, "text": json.dumps(answer)})

    def _publish(self, row: int, source: int, value: str, cells: tuple[Any, ...] | None) -> None:
        kernel = self._held.kernel
        if kernel is None:
            raise RuntimeError("a batch row came before any row that opens a batch")
        path = self._model.sources[source]
        try:
            event = self._event(source, value, cells)
            emitted = kernel.publish(path, event, self._held.clock)
        except BadRecord as refusal:
            self._rows.append({"row": row, "ordinal": 0, "kind": REFUSED, "text": str(refusal)})
            return
        for ordinal, (window, output) in enumerate(emitted):
            index = self._outputs[window]
            cells_out = {f"f{place}": cell for place, cell in enumerate(output.values)}
            cells_out |= {"opcode": output.opcode, "flags": output.flags}
            self._rows.append(
                {"row": row, "ordinal": ordinal, "kind": index, f"w{index}": cells_out}
            )
        for ordinal, (window, reason) in enumerate(kernel.take_refusals(), start=len(emitted)):
            text = f"{window}: {reason}"
            self._rows.append({"row": row, "ordinal": ordinal, "kind": REFUSED, "text": text})

    def _event(self, source: int, value: str, cells: tuple[Any, ...] | None) -> Event:
        opcode, flags, *fields, bad = cells or (None, None, value)
        # A CSV line without any cell decodes to nulls; a JSON object may leave the opcode out.
        if bad is not None or (opcode is None and self._model.formats[source] == "csv"):
            raise BadRecord(self._why(source, value))
        known_opcode = _OPCODES.get((opcode or "I").strip().upper())
        known_flags = _FLAGS.get((flags or "N").strip().upper())
        if known_opcode is None:
            raise BadRecord(f"unknown opcode {opcode!r}; known are I, U, P, D and SD")
        if known_flags is None:
            raise BadRecord(f"unknown flags {flags!r}; known are N, P and R")
        return Event(known_opcode, known_flags, tuple(fields))

    def _why(self, source: int, value: str) -> str:
        """Say what is wrong with a record that Catalyst could not decode."""
        project = self._held.project
        if project is not None and self._model.formats[source] == "csv":
            try:
                parse_event(value, project.windows[self._model.sources[source]].fields)
            except BadRecord as refusal:
                return str(refusal)
            except ValueError as error:
                return str(error)
        return f"not a {self._model.formats[source]} record of this window's schema"


def _struct_rows(column: pa.StructArray) -> list[tuple[Any, ...] | None]:
    """Turn a struct column into one tuple a row, None where the struct is null."""
    children = [child.to_pylist() for child in column.flatten()]
    return [
        cells if valid else None
        for cells, valid in zip(
            zip(*children, strict=True), column.is_valid().to_pylist(), strict=True
        )
    ]
