"""A snapshot of a million keys: what it costs the worker, and the rows beside it.

`ESPHA_KEYS` is another number of keys, `ESPHA_RATE` another number of rows a second.
"""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from statistics import median, quantiles

import pytest
from rich.console import Console
from rich.table import Table

from espha.connectors.topics import topic_plan
from espha.pipeline.job import Batch, BatchJob, Input
from espha.pipeline.session import open_session
from espha.protocol.checkpoint import CheckpointReport
from espha.reader import read_project
from espha.recovery.pending import Pending
from support.models import SUB, source, xml
from support.servers import JAR_CACHE

KEYS = int(os.environ.get("ESPHA_KEYS", "1000000"))
RATE = int(os.environ.get("ESPHA_RATE", "2000"))
STEP_S = 0.01
FILL = 5_000
MODEL = xml(
    source(
        "id*:int64,name:string,price:double,size:double,count:int64,at:stamp",
        'index="pi_EMPTY"',
    )
    + f'<window-copy name="kept" index="pi_HASH">{SUB}</window-copy>',
    '<edge source="in" target="kept"/>',
)


class Rows:
    """A job that is fed with rows for keys at random."""

    def __init__(self, job: BatchJob, topic: str) -> None:
        self.job, self.topic, self.sequence = job, topic, 0
        self.chance = random.Random(1)

    def batch(self, keys: list[int]) -> None:
        """Run a batch with a row for each of these keys."""
        expect, self.sequence = self.sequence or None, self.sequence + 1
        lines = [
            f"P,N,{key},name of the key {key},{key / 2},{self.sequence}.5,{self.sequence},"
            "2026-11-23 06:00:00"
            for key in keys
        ]
        inputs = [Input(self.topic, 0, line.encode()) for line in lines]
        result = self.job.run([Batch(expect, self.sequence, 0, inputs)])[0]
        assert result.refused == 0

    def beside(self, ended: Callable[[], bool]) -> list[float]:
        """Feed at a fixed pace until something ends; return how late each batch was done, in ms."""
        late: list[float] = []
        due = time.perf_counter()
        while not ended():
            due += STEP_S
            time.sleep(max(due - time.perf_counter(), 0))
            self.batch(self.chance.choices(range(KEYS), k=round(RATE * STEP_S)))
            late.append((time.perf_counter() - due) * 1000)
        return late


def test_snapshot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pause, duration, memory; latency of rows without it and beside it; time to restore."""
    project = read_project(MODEL)
    plan = topic_plan(project, "bench")
    job = BatchJob(open_session("local[1]", JAR_CACHE / "engine"), MODEL, project, plan)
    rows = Rows(job, plan.inputs["q/in"])
    for start in range(0, KEYS, FILL):
        rows.batch(list(range(start, start + FILL)))
    until = time.monotonic() + 10
    alone = rows.beside(lambda: time.monotonic() > until)
    reports: SimpleQueue[CheckpointReport] = SimpleQueue()
    pending = Pending(str(tmp_path / "state"))
    begun = job.checkpoint(pending.order)
    assert begun.error == ""
    pending.wait(reports.put)
    beside = rows.beside(lambda: not reports.empty())
    report = reports.get()
    assert report.error == ""
    started = time.perf_counter()
    job.restore(tmp_path / "state", 0, report.sequence)
    restored = time.perf_counter() - started
    job.close()
    table = Table(title=f"{KEYS} keys, {RATE} rows a second")
    for column in ("", "p50", "p99", "max"):
        table.add_column(column, justify="right")
    for name, late in (("batch without, ms", alone), ("batch beside, ms", beside)):
        p99 = quantiles(late, n=100)[98] if len(late) > 1 else late[0]
        table.add_row(name, f"{median(late):.1f}", f"{p99:.1f}", f"{max(late):.1f}")
    with capsys.disabled():
        console = Console()
        console.print(table)
        console.print(
            f"pause {begun.pause_ms:.0f} ms, took {report.took_ms} ms, own memory "
            f"{report.memory >> 20} MiB, file {report.length >> 20} MiB, restored in "
            f"{restored:.1f} s"
        )
