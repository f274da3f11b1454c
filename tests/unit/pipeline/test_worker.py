"""The worker's half of a batch: the same rows, however the records are cut into pages."""

import gc
import json
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from espha.connectors.files import record_layout
from espha.kernel import Handled, Kernel
from espha.model.events import Event
from espha.pipeline import worker
from espha.pipeline.job import BatchJob, NotRestoredError
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
)
from espha.protocol.checkpoint import RestoreOrder
from espha.reader import read_project
from espha.recovery.plain import NotPlainError, dumps
from espha.windows.shared.index import Index
from support.models import SUB, source, xml

MODEL = xml(
    source("id*:int64,x:int64")
    + '<window-python name="out" index="pi_EMPTY"><schema-string>id*:int64,n:int64,luck:int64'
    "</schema-string><copy>id</copy><code><![CDATA[\nimport random\ncount = 0\n"
    "def create(data, context):\n    global count\n    count += 1\n    100 // data['x']\n"
    "    return [{'n': count, 'luck': random.randint(0, 10**6)}] * (data['x'] % 3)\n"
    f"]]></code>{SUB}</window-python>"
    f'<window-copy name="same" index="pi_HASH">{SUB}</window-copy>',
    '<edge source="in" target="out"/><edge source="in" target="same"/>',
)
TEXT, LONG = pa.string(), pa.int64()


def struct(*types: tuple[str, pa.DataType]) -> pa.StructType:
    return pa.struct([("opcode", TEXT), ("flags", TEXT), *types])


IN = struct(("id", LONG), ("x", LONG), ("bad", TEXT))
OUT = pa.schema(
    [("row", LONG), ("ordinal", pa.int32()), ("kind", pa.int32()), ("text", TEXT),
     ("w0", struct(("f0", LONG), ("f1", LONG), ("f2", LONG))),
     ("w1", struct(("f0", LONG), ("f1", LONG)))]
)  # fmt: skip

Row = tuple[int, str, tuple[Any, ...] | None]


def record(id_: int | None, x: int | None, opcode: str | None = "I", bad: str | None = None) -> Row:
    return 0, "not read", (opcode, "N", id_, x, bad)


RECORDS = [
    record(1, 1), record(2, 5), record(3, 0), record(None, 1), (PAD, "", None), record(4, 2),
    record(5, 1, bad="no number"), record(6, 7), record(1, 2, "U"), record(7, 4), record(1, 0, "D"),
]  # fmt: skip


def page(rows: list[tuple[int, Row]]) -> pa.RecordBatch:
    cells = [
        None if cells is None else dict(zip([field.name for field in IN], cells, strict=True))
        for _, (_, _, cells) in rows
    ]
    columns = [
        pa.array([number for number, _ in rows], LONG),
        pa.array([source for _, (source, _, _) in rows], pa.int32()),
        pa.array([value for _, (_, value, _) in rows], TEXT),
        pa.array(cells, IN),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["row", "source", "value", "s0"])


@pytest.fixture(autouse=True)
def _unsettled() -> Iterator[None]:
    """Undo what a worker does to its own process."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def run(size: int, text: str = MODEL, skip: int | None = None) -> list[dict[str, Any]]:
    """Return what comes out of the JVM, in pages of so many rows."""
    rows = [row for batch in batches(size, text, skip) for row in batch.to_pylist()]
    return [row for row in rows if row["kind"] != MOVED]


def batches(size: int, text: str = MODEL, skip: int | None = None) -> Iterator[pa.RecordBatch]:
    """Return what comes out as it comes, in pages of so many rows."""
    project = read_project(text)
    model = worker.WorkerModel(
        text, ("q/in",), (record_layout(project.windows["q/in"]),), ("q/out", "q/same")
    )
    opened = json.dumps({"expect": None, "sequence": 7, "clock": 1_000})
    again = json.dumps({"expect": 7, "sequence": 8, "clock": 2_000})
    rows: list[Row] = [(OPEN, opened, None), *RECORDS, (OPEN, again, None), *RECORDS[:3]]
    if skip is not None:
        rows[skip] = (SKIP, "set aside", None)
    numbered = list(enumerate([*rows, (END, "", None)]))

    def pages() -> Iterator[pa.RecordBatch]:
        for at in range(0, len(numbered), size):
            yield page(numbered[at : at + size])

    return worker.run_batches(model, OUT)(pages())


def test_records_in_one_page_are_those_one_by_one() -> None:
    expected = run(1)
    for size in (3, 128):
        assert run(size) == expected
    assert {row["kind"] for row in expected} == {0, 1, OPENED, REFUSED, LAST}


def test_a_worker_has_threads_by_whose_end_it_is_heard_of() -> None:
    """See `espha.protocol.ends`: the end of the process itself is told of much later."""

    def threads() -> int:
        return sum(each.name == "be-heard" for each in threading.enumerate())

    before = threads()
    assert run(128)
    assert threads() == before + 2


def test_each_page_gives_a_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one of which nothing came out; where something did, that is the sign."""
    nothing = [record(7, 3, opcode="D")] * 3  # of what is not there
    monkeypatch.setattr(sys.modules[__name__], "RECORDS", nothing)
    every = [row["kind"] for batch in batches(1, ALONE) for row in batch.to_pylist()]
    assert every == [MOVED, *[REFUSED] * 3, OPENED, *[REFUSED] * 3, OPENED, LAST]


def test_what_a_page_brings_about_leaves_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows one event or the time brings about."""
    expected = run(128)
    monkeypatch.setattr(worker, "_ROWS_AT_ONCE", 3)
    pieces = list(batches(128))
    assert [row for piece in pieces for row in piece.to_pylist()] == expected
    assert max(piece.num_rows for piece in pieces) == 3


def test_what_is_large_leaves_in_pieces_that_the_jvm_can_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = run(128)
    whole = max(piece.nbytes for piece in batches(128))
    monkeypatch.setattr(worker, "_BYTES_AT_ONCE", whole // 4)
    pieces = list(batches(128))
    assert [row for piece in pieces for row in piece.to_pylist()] == expected
    assert all(piece.nbytes <= whole // 4 or piece.num_rows == 1 for piece in pieces)
    assert any(piece.num_rows > 1 for piece in pieces)


def test_a_worker_does_not_search_all_its_state_for_cycles() -> None:
    run(128)
    young, middle, old = gc.get_threshold()
    assert young * middle * old > 10**8
    assert gc.get_freeze_count() > 10_000


def test_each_record_has_its_own_outputs_and_refusals() -> None:
    rows = run(128)
    reasons = {row["row"]: row["text"] for row in rows if row["kind"] == REFUSED}
    assert "ZeroDivisionError" in reasons[3]
    assert reasons[14].startswith("q/same: ")
    assert set(reasons) == {3, 4, 7, 11, 14, 15}
    assert {row["row"] for row in rows if row["kind"] == OPENED} == {0, 12}
    assert rows[-1]["kind"] == LAST
    second = [row for row in rows if row["row"] == 2]
    assert [(row["ordinal"], row["kind"]) for row in second] == [(0, 0), (1, 0), (2, 1)]
    assert second[0]["w0"]["f1"] == second[1]["w0"]["f1"] == 2
    assert Event(second[2]["w1"]["opcode"], "N", (2, 5)).opcode == "I"


def broken(monkeypatch: pytest.MonkeyPatch, model: str, size: int) -> list[dict[str, Any]]:
    """Return what comes out when a window fails on the record with x = 7."""
    process = Index.process

    def failing(self: Any, unit: Any, at: Any) -> Any:
        if unit[0].values[1] == 7:
            raise RuntimeError("it fails")
        return process(self, unit, at)

    monkeypatch.setattr(Index, "process", failing)
    return run(size, model)


ALONE = xml(
    source("id*:int64,x:int64")
    + '<window-copy name="out" index="pi_EMPTY"/>'
    + f'<window-copy name="same" index="pi_HASH">{SUB}</window-copy>',
    '<edge source="in" target="out"/><edge source="in" target="same"/>',
)


@pytest.mark.parametrize("size", [1, 3, 128])
@pytest.mark.parametrize("model", [MODEL, ALONE])
def test_a_record_on_which_the_kernel_fails_is_named(
    monkeypatch: pytest.MonkeyPatch, model: str, size: int
) -> None:
    """One by one and in blocks, in any page; what comes behind it counts for nothing."""
    rows = broken(monkeypatch, model, size)
    (told,) = [row for row in rows if row["kind"] == BROKEN]
    assert told["row"] == 8
    assert json.loads(told["text"]) == {"reason": "RuntimeError: it fails", "named": True}
    assert rows[-1]["kind"] == LAST
    assert not [row for row in rows if row["row"] > 8 and row["kind"] != LAST]


def test_what_is_set_aside_is_refused_unseen() -> None:
    """In its place among the others, and no window knows of it."""
    rows = run(128, skip=5)
    (aside,) = [row for row in rows if row["row"] == 5]
    assert (aside["kind"], aside["ordinal"], aside["text"]) == (REFUSED, 0, "set aside")
    places = [row["row"] for row in rows]
    assert places[: places.index(7)] == sorted(places[: places.index(7)])


@pytest.mark.parametrize("size", [1, 3, 128])
def test_a_call_ends_though_an_output_fits_no_column(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Its page may be the one that ends the call."""

    def overflows(*_: Any) -> None:
        raise OverflowError("too large")

    monkeypatch.setattr(worker, "_struct_column", overflows)
    rows = run(size)
    assert BROKEN in {row["kind"] for row in rows}
    assert [row["kind"] for row in rows if row["kind"] == LAST] == [LAST]
    assert rows[-1]["kind"] == LAST


def test_a_refusal_stands_behind_what_came_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as what scripts publish at their beginning: the windows have it already."""

    def refuse(self: Kernel, events: Sequence[tuple[str, Event]], clock: int) -> list[Handled]:
        return [Handled([("q/same", Event("I", "N", (1, 1)))], "no", ()) for _ in events]

    monkeypatch.setattr(Kernel, "publish_block", refuse)
    rows = [row for row in run(128, ALONE) if row["row"] == 1]
    assert [(row["ordinal"], row["kind"]) for row in rows] == [(0, 1), (1, REFUSED)]


@pytest.mark.parametrize("there", [False, True], ids=["a volume that fails", "no state"])
def test_a_state_that_cannot_be_read_this_time_is_not_said_to_be_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    """It would be passed over for good, though the next life may well read it."""
    path = tmp_path / "state"
    if there:
        path.write_bytes(dumps([]))
    order = RestoreOrder(sequence=7, path=str(path), offset=0)
    rows: list[Row] = [(PUT, order.model_dump_json(), None), (END, "", None)]
    layout = record_layout(read_project(ALONE).windows["q/in"])
    model = worker.WorkerModel(ALONE, ("q/in",), (layout,), ("q/out", "q/same"))
    out = worker.run_batches(model, OUT)(iter([page(list(enumerate(rows)))]))
    told = [row for batch in out for row in batch.to_pylist() if row["kind"] == STATE]
    job = BatchJob.__new__(BatchJob)
    monkeypatch.setattr(job, "_ask", lambda *_: told[0]["text"])
    with pytest.raises(NotPlainError if there else NotRestoredError):
        job.restore(path, 0, 7)
