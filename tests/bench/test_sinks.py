"""What a row costs in each sink: processor time of the adapter, and rows a second with its disk."""

import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

from espha.adapters.copying import Taken, Target
from espha.adapters.file_output.run import Output as FileTarget
from espha.adapters.file_output.spec import OutputFile
from espha.adapters.file_output.target import TargetFile
from espha.adapters.parquet_output.dataset import Dataset
from espha.adapters.parquet_output.run import Output as ParquetTarget
from espha.adapters.parquet_output.spec import OutputParquet
from espha.adapters.table_output.databases import engine_for
from espha.adapters.table_output.spec import OutputTable
from espha.adapters.table_output.table import TableTarget
from espha.model import Window
from support.outputs import outbound
from support.postgres import PASSWORD, PostgreSQL, running

BATCH, BATCHES, KEYS = 5_000, 40, 20_000


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgreSQL]:
    """A server of its own; its processor time is not the adapter's."""
    with running() as server:
        yield server


def file(folder: Path, window: Window, **options: object) -> Target:
    path = folder / "out.csv"
    settings = OutputFile.model_validate({"path": str(path), **options})
    return FileTarget(settings, window, TargetFile(path, "topic", "id"))


def table(window: Window, **options: object) -> Target:
    place = OutputTable.model_validate({"table": "result", **options})
    return TableTarget(place, window, "topic", "id", engine_for(place))


def parquet(folder: Path, window: Window) -> Target:
    return ParquetTarget(
        OutputParquet(path=folder / "parts"), window, Dataset(folder / "parts", "topic", "id")
    )


Opener = Callable[[Path, Window, PostgreSQL], Target]
SINKS: dict[str, Opener] = {
    "file, record": lambda folder, window, _: file(folder, window),
    "file, json": lambda folder, window, _: file(folder, window, format="json"),
    "parquet": lambda folder, window, _: parquet(folder, window),
    "SQLite, append": lambda folder, window, _: table(
        window, path=str(folder / "out.db"), mode="append"
    ),
    "SQLite, upsert": lambda folder, window, _: table(window, path=str(folder / "out.db")),
    "PostgreSQL, append": lambda _, window, server: table(
        window, url=server.url, table="appended", mode="append"
    ),
    "PostgreSQL, upsert": lambda _, window, server: table(window, url=server.url),
}


@pytest.mark.parametrize("sink", SINKS)
def test_sink(
    sink: str,
    postgres: PostgreSQL,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    window = outbound("id*:int64,name:string,value:double,at:stamp")
    target = SINKS[sink](tmp_path, window, postgres)
    used, began = 0.0, time.monotonic()
    for start in range(0, BATCH * BATCHES, BATCH):
        records = [Taken(at, record(at)) for at in range(start, start + BATCH)]
        before = time.process_time()
        target.append(records, start + BATCH)
        target.settle()
        used += time.process_time() - before
    taken, count = time.monotonic() - began, BATCH * BATCHES
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    with capsys.disabled():
        Console(width=100).print(
            f"{sink}: {used / count * 1e6:.1f} us of processor a row, {count / taken:,.0f} rows/s, "
            f"at most {memory} MB so far"
        )
    assert target.offset == count


def record(number: int) -> bytes:
    return b"P,N, %d,abc,%d.500000,%d" % (number % KEYS, number, 1_700_000_000_000_000 + number)
