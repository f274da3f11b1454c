"""What a commit costs on three brokers: its time, and the brokers' processor time."""

import os
import time
from itertools import product
from pathlib import Path
from statistics import quantiles
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from espha.kafka.writer import FencedWriter, Record
from espha.pipeline.job import Output, Result
from espha.pipeline.session import open_session
from espha.pipeline.transactions import Transactions
from support.servers import JAR_CACHE, Kafka

OUTPUTS = [Output("outputs", b"x" * 40, ()) for _ in range(5)]
ORDER = b"y" * 300
COMMITS = 150
PAUSES_S = (0.0, 0.02)
SETTINGS: dict[str, dict[str, str | int]] = {
    "as in the tests": {},
    "few threads": {"num.network.threads": 1, "num.io.threads": 2},
    "no partition verification": {"transaction.partition.verification.enable": "false"},
    "followers ask every 10 ms": {"replica.fetch.wait.max.ms": 10},
    "leaders ask again after 20 ms": {
        "add.partitions.to.txn.retry.backoff.ms": 20,
        "add.partitions.to.txn.retry.backoff.max.ms": 100,
    },
}


@pytest.fixture(scope="module")
def session() -> SparkSession:
    """An engine's session: a process has one."""
    return open_session("local[1]", JAR_CACHE / "engine")


@pytest.mark.timeout(900)
def test_commits(tmp_path: Path, session: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """Six records a commit to two topics; one commit behind the other, or pauses."""
    figures = ("p50 ms", "p99 ms", "ratio", "client CPU ms", "broker CPU ms", "idle CPU %")
    table = Table("brokers", "client", "pause ms", *figures)
    base = 0.0
    for number, (name, settings) in enumerate(SETTINGS.items()):
        kafka = Kafka(tmp_path / str(number), 3, settings)
        try:
            kafka.start()
            kafka.make_topics("outputs", "order")
            mine: list[Native | Java] = [Native(kafka.bootstrap), Java(session, kafka.bootstrap)]
            for client in mine:
                commits(client, 2 * COMMITS, PAUSES_S[-1])
            idle = idle_share(kafka)
            for pause, client in product(PAUSES_S, mine):
                used, own, started = processor_s(kafka), client.processor_s(), time.monotonic()
                cuts = quantiles(commits(client, COMMITS, pause), n=100)
                beside = idle * (time.monotonic() - started)
                cost = (processor_s(kafka) - used - beside) / COMMITS * 1000
                here = (client.processor_s() - own) / COMMITS * 1000
                base = base or cuts[49]
                table.add_row(
                    name, client.name, f"{pause * 1000:.0f}", f"{cuts[49]:.1f}", f"{cuts[98]:.1f}",
                    f"{cuts[49] / base:.2f}", f"{here:.1f}", f"{cost:.1f}", f"{idle * 100:.0f}",
                )  # fmt: skip
        finally:
            kafka.stop()
    with capsys.disabled():
        Console(width=100).print(table)


class Native:
    """librdkafka, in this process."""

    name = "librdkafka"

    def __init__(self, bootstrap: str) -> None:
        self._writer = FencedWriter(bootstrap, "bench")
        self._writer.fence()

    def commit(self) -> None:
        """Commit."""
        self._writer.commit([*(Record(*each) for each in OUTPUTS), Record("order", ORDER)])

    def processor_s(self) -> float:
        """Return the processor time that the client has taken, in s."""
        return time.process_time()


class Java:
    """Kafka's Java client, in the JVM; outputs come from this process, unlike an engine's."""

    name = "Java"

    def __init__(self, session: SparkSession, bootstrap: str) -> None:
        self._transactions = Transactions(session, bootstrap, "order")
        self._transactions.warm_up(["outputs", "order"], "outputs", "bench")
        self._transactions.fence()
        self._jvm = cast("Any", session.sparkContext)._gateway.proc.pid

    def commit(self) -> None:
        """Commit."""
        self._transactions.begin()
        self._transactions.commit(Result(OUTPUTS, 0), ORDER)

    def processor_s(self) -> float:
        """Return the processor time that the client has taken, in s."""
        return time.process_time() + used_by(self._jvm)


def commits(client: Native | Java, count: int, pause: float) -> list[float]:
    """Commit so often; return how long each took, in ms."""
    times = []
    for _ in range(count):
        started = time.perf_counter()
        client.commit()
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
    return sum(used_by(server.process.pid) for server in kafka.servers if server.process)


def used_by(pid: int) -> float:
    """Return the processor time that a process has taken, in s."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
