"""What a batch costs: the kernel alone beside the same batch as a Spark job, in one run."""

import time
from collections.abc import Callable
from statistics import quantiles

import pytest
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from espha.connectors.topics import topic_plan
from espha.kernel import Kernel
from espha.pipeline.job import Batch, BatchJob, Input
from espha.pipeline.session import open_session
from espha.reader import read_project
from espha.records.text import parse_event
from support.deployment import SAMPLE_MODEL
from support.servers import JAR_CACHE

SOURCE = "cq/memory"


@pytest.fixture(scope="module")
def session() -> SparkSession:
    """An engine's session: a process has one."""
    return open_session("local[1]", JAR_CACHE / "engine")


@pytest.mark.parametrize("rows", [1, 100, 10_000])
def test_batch(rows: int, session: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """Time of one batch of the sample model, in ms, and events a second."""
    xml = SAMPLE_MODEL.read_text()
    project = read_project(xml)
    plan = topic_plan(project, "bench")
    lines = [f"I,N,,{number},4000,9000,1700000000" for number in range(rows)]
    job = BatchJob(session, xml, project, plan)
    inputs = [Input(plan.inputs[SOURCE], n, line.encode()) for n, line in enumerate(lines)]
    sequence = 0

    def spark() -> None:
        nonlocal sequence
        expect, sequence = sequence or None, sequence + 1
        assert len(job.run([Batch(expect, sequence, 0, inputs)])[0].outputs) == rows

    kernel = Kernel(project)
    events = [parse_event(line, project.windows[SOURCE].fields) for line in lines]

    def plain() -> None:
        for event in events:
            assert kernel.publish(SOURCE, event, 0)

    repeats = 30 if rows == 10_000 else 200
    try:
        times = {"kernel alone": measure(plain, repeats), "Spark batch": measure(spark, repeats)}
    finally:
        job.close()
    with capsys.disabled():
        report(rows, times)


def measure(run: Callable[[], None], repeats: int) -> list[float]:
    """Times in ms, after a warm-up of as many runs again."""
    times = []
    for _ in range(2 * repeats):
        started = time.perf_counter()
        run()
        times.append((time.perf_counter() - started) * 1000)
    return times[repeats:]


def report(rows: int, times: dict[str, list[float]]) -> None:
    """Print percentiles and ratios."""
    table = Table("", "p50 ms", "p90 ms", "p99 ms", "events/s", "ratio", title=f"{rows} rows")
    base = quantiles(next(iter(times.values())), n=100)[49]
    for name, taken in times.items():
        cuts = quantiles(taken, n=100)
        figures = [f"{cuts[place]:.2f}" for place in (49, 89, 98)]
        table.add_row(name, *figures, f"{rows / cuts[49] * 1000:,.0f}", f"{cuts[49] / base:.1f}")
    Console().print(table)
