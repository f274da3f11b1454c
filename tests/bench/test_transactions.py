"""What a commit costs on three brokers: its time, and the brokers' processor time."""

import os
import time
from pathlib import Path
from statistics import quantiles

import pytest
from rich.console import Console
from rich.table import Table

from espha.kafka.writer import FencedWriter, Record
from support.servers import Kafka

RECORDS = [*(Record("outputs", b"x" * 40) for _ in range(5)), Record("order", b"y" * 300)]
COMMITS = 150
PAUSES_S = (0.0, 0.02)
SETTINGS: dict[str, dict[str, str | int]] = {
    "as in the tests": {},
    "few threads": {"num.network.threads": 1, "num.io.threads": 2},
    "no partition verification": {"transaction.partition.verification.enable": "false"},
    "followers ask every 10 ms": {"replica.fetch.wait.max.ms": 10},
}


@pytest.mark.timeout(600)
def test_commits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One writer, six records a commit to two topics; one commit behind the other, or pauses."""
    table = Table("brokers", "pause ms", "p50 ms", "p99 ms", "ratio", "CPU ms", "idle CPU %")
    base = 0.0
    for number, (name, settings) in enumerate(SETTINGS.items()):
        kafka = Kafka(tmp_path / str(number), 3, settings)
        try:
            kafka.start()
            kafka.make_topics("outputs", "order")
            writer = FencedWriter(kafka.bootstrap, "bench")
            writer.warm_up(["outputs", "order"])
            writer.fence()
            commits(writer, 2 * COMMITS, PAUSES_S[-1])
            idle = idle_share(kafka)
            for pause in PAUSES_S:
                used, started = processor_s(kafka), time.monotonic()
                cuts = quantiles(commits(writer, COMMITS, pause), n=100)
                beside = idle * (time.monotonic() - started)
                cost = (processor_s(kafka) - used - beside) / COMMITS * 1000
                base = base or cuts[49]
                table.add_row(
                    name, f"{pause * 1000:.0f}", f"{cuts[49]:.1f}", f"{cuts[98]:.1f}",
                    f"{cuts[49] / base:.2f}", f"{cost:.1f}", f"{idle * 100:.0f}",
                )  # fmt: skip
        finally:
            kafka.stop()
    with capsys.disabled():
        Console(width=100).print(table)


def commits(writer: FencedWriter, count: int, pause: float) -> list[float]:
    """Commit so often; return how long each took, in ms."""
    times = []
    for _ in range(count):
        started = time.perf_counter()
        writer.commit(RECORDS)
        times.append((time.perf_counter() - started) * 1000)
        time.sleep(pause)
    return times


def idle_share(kafka: Kafka, seconds: float = 10) -> float:
    """Return the share of one processor that brokers without clients take."""
    used = processor_s(kafka)
    time.sleep(seconds)
    return (processor_s(kafka) - used) / seconds


def processor_s(kafka: Kafka) -> float:
    """Return the processor time that the brokers have taken, in s."""
    ticks = 0
    for server in kafka.servers:
        assert server.process is not None
        stat = Path(f"/proc/{server.process.pid}/stat").read_text()
        user, system = stat.rpartition(")")[2].split()[11:13]
        ticks += int(user) + int(system)
    return ticks / os.sysconf("SC_CLK_TCK")
