"""What a batch costs: processor time by process and thread, and how long it takes.

Batches come at a fixed pace, as an engine takes them, because a batch that follows at once on
another one finds caches and threads warm and costs half. ESPHA_BENCH_S sets for how many seconds
each case is measured (default 10). Of these the median by processor time is shown: other work on
the machine spoils some.
"""

import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles

import pytest
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from espha.connectors.topics import topic_plan
from espha.local.processes import family
from espha.pipeline.job import Batch, BatchJob, Input
from espha.pipeline.session import open_session
from espha.reader import read_project
from support.deployment import SAMPLE_MODEL
from support.servers import JAR_CACHE

SOURCE = "cq/memory"
SECONDS = float(os.environ.get("ESPHA_BENCH_S", "10"))
WARM_UP = 1_000
"""Batches before that, one at once after the other: Java compiles what it sees often."""
NOT_SHOWN_US = 20
"""Threads that take less than that of a batch are summed up."""


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    """An engine's session: a process has one."""
    jars = Path(os.environ.get("ESPHA_JARS", JAR_CACHE / "engine"))
    session = open_session("local[1]", jars)
    yield session
    session.stop()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("rows", "batches_a_second"), [(0, 40), (1, 40), (5, 40), (20, 40)])
def test_small_batches(
    rows: int, batches_a_second: float, session: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """A batch of so many rows, at the pace of an engine at 200 rows a second."""
    with _Load(session, rows) as load:
        load.warm_up(WARM_UP)
        spent, taken = load.measure(batches_a_second)
    with capsys.disabled():
        report(f"{rows} rows, {batches_a_second:.0f} batches/s", spent, taken, 1)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("rows", [5_000])
def test_large_batches(
    rows: int, session: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """A batch of so many rows, one after the other: what an event costs."""
    with _Load(session, rows) as load:
        load.warm_up(20)
        spent, taken = load.measure(0)
    with capsys.disabled():
        report(f"{rows} rows, as fast as it goes", spent, taken, rows)


class _Load:
    """Runs batches of the sample model."""

    def __init__(self, session: SparkSession, rows: int) -> None:
        xml = SAMPLE_MODEL.read_text()
        project = read_project(xml)
        plan = topic_plan(project, "bench")
        self._job = BatchJob(session, xml, project, plan)
        self._rows = rows
        lines = [f"I,N,,{number},4000,9000,1700000000".encode() for number in range(rows)]
        self._inputs = [Input(plan.inputs[SOURCE], n, line) for n, line in enumerate(lines)]
        self._sequence = 0

    def warm_up(self, batches: int) -> None:
        """Run so many batches."""
        for _ in range(batches):
            self._batch()

    def measure(self, batches_a_second: float) -> tuple["Spent", list[float]]:
        """Return what a batch costs each thread, and how long (s) each batch took."""
        seconds: list[Spent] = []
        taken: list[float] = []
        for _ in range(max(int(SECONDS), 1)):
            before, begun = Costs.now(), len(taken)
            taken += self._second(batches_a_second)
            seconds.append(Costs.now().since(before, len(taken) - begun))
        seconds.sort(key=lambda spent: sum(used for used, _ in spent.values()))
        return seconds[len(seconds) // 2], taken

    def _second(self, batches_a_second: float) -> list[float]:
        taken = []
        started = last = time.perf_counter()
        while last - started < 1:
            begun = time.perf_counter()
            self._batch()
            last = time.perf_counter()
            taken.append(last - begun)
            if batches_a_second:
                pause = started + len(taken) / batches_a_second - last
                time.sleep(max(pause, 0))
        return taken

    def _batch(self) -> None:
        expect, self._sequence = self._sequence or None, self._sequence + 1
        (result,) = self._job.run([Batch(expect, self._sequence, 0, self._inputs)])
        assert len(result.outputs) == self._rows
        result.digest()

    def __enter__(self) -> "_Load":
        return self

    def __exit__(self, *_: object) -> None:
        self._job.close()


Spent = dict[tuple[str, str], tuple[float, float]]
"""Processor time (ns) and wake-ups a batch, by process and thread."""


class Costs:
    """Processor time (ns) and times woken, of each thread of this process and its children."""

    def __init__(self, spent: dict[tuple[str, str], tuple[int, int]]) -> None:
        self._spent = spent

    @classmethod
    def now(cls) -> "Costs":
        """Return what the threads have taken up to now; of those that live."""
        nanoseconds: Counter[tuple[str, str]] = Counter()
        wakeups: Counter[tuple[str, str]] = Counter()
        for pid in family(os.getpid()):
            try:
                kind = _kind(pid)
                for task in Path(f"/proc/{pid}/task").iterdir():
                    name = (task / "comm").read_text().strip()
                    used, _, woken = map(int, (task / "schedstat").read_text().split())
                    nanoseconds[kind, name] += used
                    wakeups[kind, name] += woken
            except OSError:  # a process, or a thread, that has just ended
                continue
        return cls({thread: (nanoseconds[thread], wakeups[thread]) for thread in nanoseconds})

    def since(self, before: "Costs", batches: int) -> Spent:
        """Return what each of so many batches has taken since then."""
        spent: Spent = {}
        for thread, (used, woken) in self._spent.items():
            was_used, was_woken = before._spent.get(thread, (0, 0))
            spent[thread] = ((used - was_used) / batches, (woken - was_woken) / batches)
        return spent


def _kind(pid: int) -> str:
    if pid == os.getpid():
        return "driver"
    return "worker" if Path(f"/proc/{pid}/exe").readlink().name.startswith("python") else "JVM"


def report(title: str, spent: Spent, taken: list[float], rows: int) -> None:
    """Print the costs of a batch (or of each of its rows), by process and thread."""
    unit = "batch" if rows == 1 else "row"
    table = Table("process", "thread", f"CPU us/{unit}", f"woken/{unit}", title=title)
    kinds: Counter[str] = Counter()
    for (kind, _), (used, _) in spent.items():
        kinds[kind] += used  # type: ignore[assignment]
    for kind, total in kinds.most_common():
        threads = sorted(((u, w, t) for (k, t), (u, w) in spent.items() if k == kind), reverse=True)
        woken = sum(w for _, w, _ in threads)
        table.add_row(kind, "", f"{total / rows / 1000:.1f}", f"{woken / rows:.2f}")
        for used, woken, thread in threads:
            if used / 1000 >= NOT_SHOWN_US:
                table.add_row("", thread, f"{used / rows / 1000:.1f}", f"{woken / rows:.2f}")
    table.add_row("all", "", f"{sum(kinds.values()) / rows / 1000:.1f}", "", style="bold")
    cuts = [cut * 1000 for cut in quantiles(taken, n=100)]
    console = Console(width=100)
    console.print(table)
    console.print(f"p50 {cuts[49]:.2f} ms, p90 {cuts[89]:.2f}, p99 {cuts[98]:.2f}; {len(taken)}")
