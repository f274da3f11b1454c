"""The half of a batch job that runs in Spark's Python worker: the kernel, and its state.

Input columns: `row` (place in the call), `source` (index of the source window, or one of the marks
in `espha.pipeline.stream`), `value` (the text as it came; for an opening row a JSON object), and
one struct `s<i>` for each source window with opcode, flags, the fields and `bad` (not null:
Catalyst could not decode the record), in this order.

Output columns: `row`, `ordinal` (0, 1 … among the outputs of one row), `kind` (index of the output
window, or one of the marks), `text` (of the marks), and one struct `w<i>` for each output window
with `opcode`, `flags`, `f0` ….
"""

import base64
import json
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa

from espha.kernel import Handled, Kernel, kernel_of
from espha.model import Project
from espha.model.events import BadRecord, Event
from espha.pipeline.stream import (
    BROKEN,
    END,
    LAST,
    OPEN,
    OPENED,
    PAD,
    PART,
    PUT,
    REFUSED,
    SKIP,
    STATE,
    TAKE,
)
from espha.reader import read_project
from espha.records.layout import Layout
from espha.records.text import read_flags, read_opcode, record_reader
from espha.recovery.plain import NotPlainError, dumps, loads

_REASON_LETTERS = 500
PART_BYTES = 3 << 20
"""A state travels in parts of so many bytes."""


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
        worker = _Worker(model, schema)
        for page in pages:
            yield worker.process(page)

    return run


_UNREAD: Final = Handled([], None, ())


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


class _Rows:
    """Output rows, column by column."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self.clear()

    def clear(self) -> None:
        """Forget all rows."""
        self._heads: list[tuple[int, int, int, str | None]] = []
        self._events: list[list[tuple[int, Event]]] = [[] for _ in self._schema.names[4:]]

    def add(self, row: int, ordinal: int, kind: int, text: str | None = None) -> None:
        """Add a row that is not an output."""
        self._heads.append((row, ordinal, kind, text))

    def add_event(self, row: int, ordinal: int, window: int, event: Event) -> None:
        """Add an output."""
        self._events[window].append((len(self._heads), event))
        self._heads.append((row, ordinal, window, None))

    def take(self) -> pa.RecordBatch:
        """Return all rows and forget them."""
        heads = list(zip(*self._heads, strict=True)) or [()] * 4
        columns = [
            pa.array(cells, field.type) for cells, field in zip(heads, self._schema, strict=False)
        ]
        columns += [
            _struct_column(events, len(self._heads), field.type)
            for events, field in zip(self._events, list(self._schema)[4:], strict=True)
        ]
        self.clear()
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _struct_column(events: list[tuple[int, Event]], size: int, kind: pa.StructType) -> pa.Array:
    """Return a column of structs that is null but at the places of the events."""
    if not events:
        return pa.nulls(size, kind)
    places = [None] * size
    for number, (place, _) in enumerate(events):
        places[place] = number  # type: ignore[call-overload]
    cells = zip(*((event.opcode, event.flags, *event.values) for _, event in events), strict=True)
    children = [pa.array(column, part.type) for column, part in zip(cells, kind, strict=True)]
    return pa.StructArray.from_arrays(children, fields=list(kind)).take(
        pa.array(places, pa.int64())
    )


class _Worker:
    """The kernel of one stream, and the sequence number that its state stands for."""

    def __init__(self, model: WorkerModel, schema: pa.Schema) -> None:
        self._model = model
        self._outputs = {path: index for index, path in enumerate(model.outputs)}
        self._out = _Rows(schema)
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
        self._parts: list[bytes] = []
        self._taken: list[bytes] = []

    def process(self, page: pa.RecordBatch) -> pa.RecordBatch:
        """Process input rows; return the output rows that are ready."""
        columns = [
            _struct_rows(page.column(f"s{index}")) for index in range(len(self._model.sources))
        ]
        names = ("row", "source", "value")
        cells = zip(*(page.column(name).to_pylist() for name in names), strict=True)
        for place, (row, source, value) in enumerate(cells):
            if source >= 0:
                self._note(row, source, value, columns[source][place])
            elif source != PAD:
                self._publish()
                self._obey(row, source, value)
        self._publish()
        return self._taken_out()

    def _taken_out(self) -> pa.RecordBatch:
        try:
            return self._out.take()
        except Exception as error:  # a value that its column cannot hold
            self._out.clear()
            self._break(0, error, named=False)
            return self._out.take()

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
        if mark == PART:
            self._parts.append(base64.b64decode(value))
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
        elif mark == TAKE and value:
            self._give_part(row, int(value))
        elif mark == TAKE:
            self._take_state(row)
        elif mark == PUT:
            self._put_state(row, int(value))

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
        self._out.add(row, 0, OPENED, json.dumps(answer))

    def _note(self, row: int, source: int, value: str, cells: tuple[Any, ...] | None) -> None:
        """Note a record for the next block."""
        if self._broken:
            return
        if self._kernel is None or self._closing is None:
            raise RuntimeError("a record came outside of a batch")
        if "held" in self._closing[1]:
            return
        path = self._model.sources[source]
        try:
            event = self._event(source, value, cells)
        except BadRecord as refusal:
            self._noted.append((row, path, refusal))
        except Exception as error:
            self._break(row, error, named=True)
        else:
            self._noted.append((row, path, None))
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
            if bad is not None or unread:
                self._out.add(row, 0, REFUSED, str(unread or BadRecord(str(bad), path)))
            else:
                self._emit(row, outputs, refusals)
        self._noted, self._block = [], []

    def _emit(
        self,
        row: int,
        emitted: Iterable[tuple[str, Event]],
        refusals: Iterable[tuple[str, str]],
    ) -> None:
        ordinal = 0
        for ordinal, (window, event) in enumerate(emitted, start=1):
            self._out.add_event(row, ordinal - 1, self._outputs[window], event)
        for place, (window, reason) in enumerate(refusals, start=ordinal):
            self._out.add(row, place, REFUSED, f"{window}: {reason}")

    def _take_state(self, row: int) -> None:
        note: dict[str, Any] = {"sequence": self._sequence, "parts": 0}
        if self._kernel is not None and self._sequence is not None:
            try:
                body = dumps(self._kernel.state())
            except NotPlainError as error:
                note = {"error": str(error)}
            else:
                self._taken = [body[at : at + PART_BYTES] for at in range(0, len(body), PART_BYTES)]
                note["parts"] = len(self._taken)
        self._out.add(row, 0, STATE, json.dumps(note))

    def _give_part(self, row: int, part: int) -> None:
        self._out.add(row, 0, STATE, base64.b64encode(self._taken[part]).decode())
        if part == len(self._taken) - 1:
            self._taken = []

    def _put_state(self, row: int, sequence: int) -> None:
        body, self._parts = b"".join(self._parts), []
        project = read_project(self._model.xml)
        kernel = kernel_of(project)
        try:
            kernel.restore(loads(body))
        except Exception as error:  # what is not a state of this model fails in any way
            note = json.dumps({"error": f"{type(error).__name__}: {error}"})
        else:
            self._kernel, self._project, self._sequence = kernel, project, sequence
            note = json.dumps({"sequence": sequence})
        self._out.add(row, 0, STATE, note)

    def _event(self, source: int, value: str, cells: tuple[Any, ...] | None) -> Event:
        opcode, flags, *fields, bad = cells or (None, None, value)
        layout = self._model.layouts[source]
        # A CSV line without any cell decodes to nulls; a JSON object may leave the opcode out.
        if bad is not None or (opcode is None and layout.format == "csv"):
            return self._reread(source, value)
        default_opcode, default_flags = layout.defaults()
        opcode, flags = read_opcode(opcode or default_opcode), read_flags(flags or default_flags)
        return Event(opcode, flags, tuple(fields))

    def _reread(self, source: int, value: str) -> Event:
        """Read a record that Catalyst could not decode, more slowly and with reasons.

        Raises:
            BadRecord: it is none.
        """
        if self._project is None:
            raise RuntimeError("a record came outside of a batch")
        window = self._project.windows[self._model.sources[source]]
        return record_reader(window, self._model.layouts[source])(value)


def _struct_rows(column: pa.StructArray) -> list[tuple[Any, ...] | None]:
    """Turn a struct column into one tuple a row, None where the struct is null."""
    children = [child.to_pylist() for child in column.flatten()]
    return [
        cells if valid else None
        for cells, valid in zip(
            zip(*children, strict=True), column.is_valid().to_pylist(), strict=True
        )
    ]
