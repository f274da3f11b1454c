"""The half of a batch job that runs in Spark's Python worker: the kernel, and its state.

Input columns: `row` (place in the call), `source` (index of the source window, or one of the marks
in `espha.pipeline.stream`), `value` (the text as it came; for an opening row a JSON object), and
one struct `s<i>` for each source window with opcode, flags, the fields and `bad` (not null:
Catalyst could not decode the record), in this order.

Output columns: `row`, `ordinal` (0, 1 … among the outputs of one row), `kind` (index of the output
window, or one of the marks), `text` (of the marks), and one struct `w<i>` for each output window
with `opcode`, `flags`, `f0` ….
"""

import gc
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from espha.garbage import spare_the_living
from espha.kernel import Handled, Kernel, kernel_of
from espha.model import Project
from espha.model.events import BadRecord, Event, event_of
from espha.pipeline.forked import Checkpoints
from espha.pipeline.stream import (
    BROKEN,
    END,
    LAST,
    MOVED,
    OPEN,
    OPENED,
    PAD,
    PUT,
    REFUSED,
    SKIP,
    STATE,
    TAKE,
)
from espha.protocol.checkpoint import CheckpointBegun, CheckpointOrder, Restored, RestoreOrder
from espha.protocol.ends import be_heard
from espha.reader import read_project
from espha.records.layout import Layout
from espha.records.text import FLAG_WORDS, OPCODE_WORDS, record_reader
from espha.recovery import plain

_REASON_LETTERS = 500


class WorkerModel(NamedTuple):
    """What the worker must know of the model."""

    xml: str
    sources: tuple[str, ...]
    """Paths of the source windows; a row's `source` is an index into them."""
    layouts: tuple[Layout, ...]
    """How records are written, for each source window."""
    outputs: tuple[str, ...]
    """Paths of the output windows; an output row's `kind` is an index into them."""


def run_batches(model: WorkerModel, schema: pa.Schema) -> Callable[..., Iterator[pa.RecordBatch]]:
    """Return the function for `mapInArrow`; `schema` is that of its output."""

    def run(pages: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_the_living()
        be_heard()
        worker = _Worker(model, schema)
        for page in pages:
            yield from worker.process(page)

    return run


_UNREAD: Final = Handled([], None, ())
_ROWS_AT_ONCE = 4_096
"""Rows leave in record batches of at most so many, however many one event brings about."""
_BYTES_AT_ONCE = 16 << 20
"""Likewise, however large they are: the JVM holds a record batch outside of its heap."""


class _NoPandas:
    """Finds no pandas."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Refuse pandas; know nothing of other modules."""
        if name == "pandas":
            raise ModuleNotFoundError(name)


def spare_pandas() -> None:
    """Keep pyarrow from importing pandas when it makes its first array.

    It would take more than a second of processor time, half of a worker's start, and 60 MB, to ask
    whether a list is a pandas object. Not finding it, pyarrow asks no more; scripts still find it.
    """
    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array([None])
    finally:
        sys.meta_path.remove(_NoPandas)


_Row = tuple[int, int, int, str | None, Event | None]
"""Row, ordinal, kind, text, and the event of an output."""


class _Rows:
    """Output rows, on their way into columns."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._heads = list(schema.types[:4])
        self._windows = list(schema.types[4:])
        self._nulls = [pa.nulls(_ROWS_AT_ONCE, kind) for kind in self._windows]
        self._rows: list[_Row] = []

    def add(self, row: int, ordinal: int, kind: int, text: str | None = None) -> None:
        """Add a row that is not an output."""
        self._rows.append((row, ordinal, kind, text, None))

    def add_event(self, row: int, ordinal: int, window: int, event: Event) -> None:
        """Add an output."""
        self._rows.append((row, ordinal, window, None, event))

    def is_empty(self) -> bool:
        """Tell whether there is none."""
        return not self._rows

    def end_a_call(self) -> int | None:
        """Return the row that ends a call, if these rows end with its answer."""
        row, _, kind, _, _ = self._rows[-1] if self._rows else (None, 0, MOVED, None, None)
        return row if kind == LAST else None

    def take(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows and forget them."""
        rows, self._rows = self._rows, []
        for at in range(0, len(rows), _ROWS_AT_ONCE):
            share = rows[at : at + _ROWS_AT_ONCE]
            yield from _parts(pa.RecordBatch.from_arrays(self._columns(share), schema=self._schema))

    def _columns(self, rows: list[_Row]) -> list[pa.Array]:
        *heads, events = zip(*rows, strict=True)
        columns = [pa.array(cells, kind) for cells, kind in zip(heads, self._heads, strict=True)]
        there = set(heads[2])
        for window, kind in enumerate(self._windows):
            if window not in there:
                columns.append(self._nulls[window].slice(0, len(rows)))
            elif len(there) == 1:  # most often
                columns.append(_struct_column(events, kind))
            else:
                which = heads[2]
                own = [one if at == window else None for one, at in zip(events, which, strict=True)]
                columns.append(_struct_column(own, kind))
        return columns


def _parts(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield rows in parts that the JVM can hold, unless one row alone is larger."""
    if rows.nbytes <= _BYTES_AT_ONCE or rows.num_rows == 1:
        yield rows
        return
    half = rows.num_rows // 2
    yield from _parts(rows.slice(0, half))
    yield from _parts(rows.slice(half))


def _struct_column(events: Sequence[Event | None], kind: pa.StructType) -> pa.Array:
    """Return a column of structs that is null where no event is."""
    nothing = Event(None, None, (None,) * (kind.num_fields - 2))  # type: ignore[arg-type]
    missing = [event is None for event in events]
    mask = pa.array(missing) if any(missing) else None
    opcodes, flags, values = zip(*(event or nothing for event in events), strict=True)
    fields = list(kind)
    cells = (opcodes, flags, *zip(*values, strict=True))
    columns = [pa.array(part, field.type) for part, field in zip(cells, fields, strict=True)]
    return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)


class _Worker:
    """The kernel of one stream, and the sequence number that its state stands for."""

    def __init__(self, model: WorkerModel, schema: pa.Schema) -> None:
        self._model = model
        self._outputs = {path: index for index, path in enumerate(model.outputs)}
        self._out = _Rows(schema)
        self._readers = [_reader(layout) for layout in model.layouts]
        self._kernel: Kernel | None = None
        self._project: Project | None = None
        self._sequence: int | None = None
        self._clock = 0
        self._closing: tuple[int, dict[str, Any]] | None = None
        self._noted: list[tuple[int, str, BadRecord | None]] = []
        """Records since the last block: row, source, and why it cannot be read."""
        self._block: list[tuple[str, Event]] = []
        """The events of those that are records."""
        self._broken = False
        """The kernel has failed: nothing counts any more until the call ends."""
        self._checkpoints = Checkpoints()

    def process(self, page: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Process input rows; yield the output rows that are ready."""
        rows, sources = (page.column(place).to_pylist() for place in range(2))
        texts = page.column(2)
        read = {
            index: _read(page.column(3 + index), self._readers[index])
            for index in set(sources)
            if index >= 0
        }
        begin = 0
        for source, group in groupby(sources):
            end = begin + sum(1 for _ in group)
            if source >= 0:
                self._note(source, rows[begin:end], read[source][begin:end], texts[begin:end])
            elif source != PAD:
                for place in range(begin, end):
                    self._publish()
                    self._obey(rows[place], source, texts[place].as_py())
            begin = end
        self._publish()
        if self._out.is_empty():
            self._out.add(0, 0, MOVED)
        yield from self._taken_out()

    def _taken_out(self) -> Iterator[pa.RecordBatch]:
        ends = self._out.end_a_call()
        try:
            yield from self._out.take()
        except Exception as error:  # a value that its column cannot hold
            self._break(0, error, named=False)
            if ends is not None:
                self._obey(ends, END, "")
            yield from self._out.take()

    def _break(self, row: int, error: Exception, *, named: bool) -> None:
        """Say that the kernel has failed; its state is of no use any more."""
        traceback.print_exception(error)
        self._kernel = self._sequence = self._closing = None
        self._noted, self._block = [], []
        note = {"reason": f"{type(error).__name__}: {error}"[:_REASON_LETTERS], "named": named}
        self._out.add(row, 0, BROKEN, json.dumps(note))
        self._broken = True

    def _obey(self, row: int, mark: int, value: str) -> None:
        if self._broken and mark != END:
            return
        if mark != SKIP:
            self._close()
        if mark == OPEN:
            self._open(row, json.loads(value))
        elif mark == SKIP:
            self._out.add(row, 0, REFUSED, value)
        elif mark == END:
            self._out.add(row, 0, LAST)
            self._broken = False
        elif mark == TAKE:
            self._take_state(row, CheckpointOrder.model_validate_json(value))
        elif mark == PUT:
            self._put_state(row, RestoreOrder.model_validate_json(value))

    def _open(self, row: int, order: dict[str, Any]) -> None:
        if order["expect"] is None:
            self._project = read_project(self._model.xml)
            self._kernel = kernel_of(self._project)
        elif self._sequence != order["expect"]:
            self._closing = (row, {"held": self._sequence})
            return
        self._sequence = None  # in the middle of a batch the state stands for no number
        self._clock = order["clock"]
        self._closing = (row, {"sequence": order["sequence"]})
        if self._kernel is not None:
            try:
                emitted = self._kernel.advance(self._clock)
            except Exception as error:
                self._break(row, error, named=False)
            else:
                self._emit(row, emitted, self._kernel.take_refusals())

    def _close(self) -> None:
        if self._closing is None:
            return
        (row, answer), self._closing = self._closing, None
        if "held" not in answer and self._kernel is not None:
            self._sequence = answer["sequence"]
            answer["due"] = self._kernel.due()
            answer["worker"] = os.getpid()
        self._out.add(row, 0, OPENED, json.dumps(answer))

    def _note(
        self, source: int, rows: list[int], events: list[Event | None], texts: pa.StringArray
    ) -> None:
        """Note records of one source for the next block."""
        if self._broken:
            return
        if self._kernel is None or self._closing is None:
            raise RuntimeError("a record came outside of a batch")
        if "held" in self._closing[1]:
            return
        path = self._model.sources[source]
        for place, (row, decoded) in enumerate(zip(rows, events, strict=True)):
            event, refusal = decoded, None
            if decoded is None:
                try:
                    event = self._reread(source, texts[place].as_py())
                except BadRecord as error:
                    refusal = error
                except Exception as error:
                    self._break(row, error, named=True)
                    return
            self._noted.append((row, path, refusal))
            if event is not None:
                self._block.append((path, event))

    def _publish(self) -> None:
        """Give the kernel the records that were noted, as one block."""
        if self._kernel is None or not self._noted:
            return
        try:
            handled = iter(self._kernel.publish_block(self._block, self._clock))
        except Exception as error:
            culprit = self._kernel.culprit()
            rows = [row for row, _, unread in self._noted if unread is None]
            named = culprit is not None and culprit < len(rows)
            self._break(rows[culprit or 0] if named else 0, error, named=named)
            return
        for row, path, unread in self._noted:
            outputs, bad, refusals = _UNREAD if unread else next(handled)
            place = self._emit(row, outputs, refusals)
            if bad is not None or unread:
                self._out.add(row, place, REFUSED, str(unread or BadRecord(str(bad), path)))
        self._noted, self._block = [], []

    def _emit(
        self,
        row: int,
        emitted: Iterable[tuple[str, Event]],
        refusals: Iterable[tuple[str, str]],
    ) -> int:
        """Put out what came of a row; return the place of what comes next of it."""
        place = 0
        for window, event in emitted:
            self._out.add_event(row, place, self._outputs[window], event)
            place += 1
        for window, reason in refusals:
            self._out.add(row, place, REFUSED, f"{window}: {reason}")
            place += 1
        return place

    def _take_state(self, row: int, order: CheckpointOrder) -> None:
        if self._kernel is None or self._sequence is None:
            begun = CheckpointBegun(error="there is no state")
        else:
            begun = self._checkpoints.begin(self._kernel, self._sequence, order)
        self._out.add(row, 0, STATE, begun.model_dump_json())

    def _put_state(self, row: int, order: RestoreOrder) -> None:
        self._kernel = self._sequence = None  # two states need not fit in memory
        try:
            self._project, self._kernel = self._restored(order)
        except Exception as error:  # what is not a state of this model fails in any way
            passing = isinstance(error, MemoryError | OSError)
            restored = Restored(error=f"{type(error).__name__}: {error}", passing=passing)
        else:
            self._sequence = order.sequence
            spare_the_living()
            restored = Restored(sequence=order.sequence)
        self._out.add(row, 0, STATE, restored.model_dump_json())

    def _restored(self, order: RestoreOrder) -> tuple[Project, Kernel]:
        project = read_project(self._model.xml)
        kernel = kernel_of(project)
        gc.disable()  # it would look at all that is read again and again
        try:
            with Path(order.path).open("rb") as file:
                file.seek(order.offset)
                kernel.restore(plain.read(file))
        finally:
            gc.enable()
        return project, kernel

    def _reread(self, source: int, value: str) -> Event:
        """Read a record that Catalyst could not decode, more slowly and with reasons.

        Raises:
            BadRecord: it is none.
        """
        if self._project is None:
            raise RuntimeError("a record came outside of a batch")
        window = self._project.windows[self._model.sources[source]]
        return record_reader(window, self._model.layouts[source])(value)


class _Reader(NamedTuple):
    """What opcodes and flags of a source's records mean, as most of them are written."""

    opcodes: dict[str | None, str]
    flags: dict[str | None, str]


def _reader(layout: Layout) -> _Reader:
    opcode, flags = layout.defaults()
    # A CSV line without any cell decodes to nulls; a JSON object may leave the opcode out.
    left_out: dict[str | None, str] = {} if layout.format == "csv" else {None: opcode}
    return _Reader(
        {**_written(OPCODE_WORDS), "": opcode, **left_out},
        {**_written(FLAG_WORDS), "": flags, None: flags},
    )


def _written(words: dict[str, str]) -> dict[str | None, str]:
    """Return words as people write them; what is written otherwise takes longer to read."""
    return {form(word): means for word, means in words.items() for form in (str.lower, str.upper)}


def _read(column: pa.StructArray, reader: _Reader) -> list[Event | None]:
    """Turn what Catalyst has decoded into events; None: it is to be read again, from the text."""
    opcodes, flags, *values, bad = (column.field(place) for place in range(column.type.num_fields))
    meant = [
        map(reader.opcodes.get, opcodes.to_pylist()),
        map(reader.flags.get, flags.to_pylist()),
        zip(*(part.to_pylist() for part in values), strict=True),
    ]
    events: list[Event | None] = list(map(event_of, zip(*meant, strict=True)))
    fine = column.null_count == 0 and bad.null_count == len(bad)
    if not fine:
        lost = pc.or_(column.is_null(), bad.is_valid()).to_pylist()
        events = [None if is_lost else one for one, is_lost in zip(events, lost, strict=True)]
    return [one if one and one[0] and one[1] else None for one in events]
