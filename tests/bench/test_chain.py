"""File → topic → three engines → topic → file: rows a second end to end, and memory over time.

And the same without engines: file → topic → file.

`ESPHA_CHAIN_ROWS=10000000` for ten million rows; takes some minutes then.
"""

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from component.conftest import zookeeper
from espha.local.processes import family
from support.adapters import MODEL, Adapters, file_input, stopped_at_the_end
from support.deployment import Deployment
from support.replicas import Replica
from support.servers import LASTING_BROKERS, Kafka, ZooKeeper, wait_until

__all__ = ["zookeeper"]

ROWS = int(os.environ.get("ESPHA_CHAIN_ROWS", "500000"))
SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)
"""At these parts of all rows memory is looked at."""
STILL_S = 120.0


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[Kafka]:
    """Three brokers that live long."""
    cluster = Kafka(tmp_path, replicas=3, java=LASTING_BROKERS)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def deployment(kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Deployment]:
    """Three engines of the sample model."""
    made = Deployment(kafka, zookeeper, tmp_path)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.mark.timeout(7200)
def test_chain(
    deployment: Deployment, zookeeper: ZooKeeper, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, result = tmp_path / "in.csv", tmp_path / "out.csv"
    write_rows(source)
    named = {"ESPHA_PREFIX": deployment.name}
    made = Adapters(deployment.kafka, zookeeper, tmp_path, named)
    with stopped_at_the_end(made) as adapters:
        seen = Rows(result)
        out = adapters.start("rows-out", "output", file={"path": str(result)})
        into = adapters.start("rows-in", "input", **file_input(source, growing=False))
        parts = {"input adapter": into, "output adapter": out}
        parts |= {engine.name: engine for engine in deployment.engines}
        watch(seen, parts, deployment.kafka, capsys)


@pytest.mark.timeout(7200)
def test_without_engines(
    kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The output adapter's model has as results what the input adapter's has as input."""
    source, result, other = tmp_path / "in.csv", tmp_path / "out.csv", tmp_path / "other.xml"
    write_rows(source)
    with stopped_at_the_end(Adapters(kafka, zookeeper, tmp_path)) as adapters:
        text = MODEL.read_text().replace("cq.memory.I", "cq.elsewhere.I")
        other.write_text(text.replace("@TOPICS@.HA_Project.cq.outbound.O", adapters.input_topic))
        own = adapters.environment
        adapters.environment = {**own, "ESPHA_MODEL": str(other), "ESPHA_PREFIX": ""}
        out = adapters.start("rows-out", "output", file={"path": str(result)})
        adapters.environment = own
        into = adapters.start("rows-in", "input", **file_input(source, growing=False))
        watch(Rows(result), {"input adapter": into, "output adapter": out}, kafka, capsys)


def write_rows(path: Path) -> None:
    with path.open("w") as file:
        file.write("header\n")
        file.writelines(f"{number},1000,2000,1700000000\n" for number in range(ROWS))


def watch(
    seen: "Rows", parts: Mapping[str, Replica], kafka: Kafka, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wait for all rows, and print what they have cost; each must come once, in order."""
    began = time.monotonic()
    first_s, memory = 0.0, {}
    for share in SHARES:
        seen.wait_for(int(share * ROWS))
        memory[share] = {part: replica.megabytes() for part, replica in parts.items()}
        if not first_s:
            first_s, before = time.monotonic() - began, used(parts, kafka)
    taken = time.monotonic() - began
    after = used(parts, kafka)
    assert seen.count == ROWS, "lost or double"
    assert seen.in_order
    with capsys.disabled():
        show(first_s, taken, memory)
        show_used({part: after[part] - before.get(part, 0.0) for part in after})


class Rows:
    """The rows of a result, counted while it grows."""

    def __init__(self, path: Path) -> None:
        self._path, self._at, self._rest = path, 0, b""
        self.count = 0
        self.in_order = True

    def wait_for(self, count: int) -> None:
        """Return when there are so many; end when nothing has moved for long."""
        while self.count < count:
            before = self.count
            wait_until(lambda before=before: self._look() > before, STILL_S, "rows", 0.2)  # type: ignore[misc]

    def _look(self) -> int:
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._at)
                data = self._rest + file.read(64 << 20)
                self._at = file.tell()
            *lines, self._rest = data.split(b"\n")
            for line in lines:
                self.in_order &= int(line.split(b",")[3]) == self.count
                self.count += 1
        return self.count


def used(parts: Mapping[str, Replica], kafka: Kafka) -> dict[str, float]:
    """Return the processor time of all parts so far, s; of engines by their processes."""
    found: dict[str, float] = {}
    for part, replica in parts.items():
        assert replica.process is not None
        for pid in family(replica.process.pid):
            name = f"{part}, {role_of(pid)}" if part.startswith("engine") else part
            found[name] = found.get(name, 0.0) + seconds_of(pid)
    brokers = [one.process.pid for one in kafka.servers if one.process]
    found["brokers"] = sum(map(seconds_of, brokers))
    return found


def role_of(pid: int) -> str:
    """Return what a process of an engine is."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return "ended"
    for mark, role in ((b"java", "JVM"), (b"supervise", "supervisor"), (b"daemon", "worker")):
        if mark in command:
            return role
    return "engine"


def seconds_of(pid: int) -> float:
    """Return the processor time of a process so far, s; 0 when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def show_used(seconds: Mapping[str, float]) -> None:
    rows = (1 - SHARES[0]) * ROWS
    table = Table("part", "us of processor a row")
    for part, each in sorted(seconds.items(), key=lambda one: -one[1]):
        table.add_row(part, f"{each / rows * 1e6:.1f}")
    table.add_row("all", f"{sum(seconds.values()) / rows * 1e6:.1f}")
    Console(width=100).print(table)


def show(first_s: float, taken: float, memory: Mapping[float, Mapping[str, int]]) -> None:
    rest = (1 - SHARES[0]) * ROWS / (taken - first_s)
    console = Console(width=100)
    console.print(
        f"{ROWS:,} rows in {taken:.0f} s, with the start of "
        f"the adapters; {rest:,.0f} rows/s behind the first tenth"
    )
    table = Table("MB of memory after", *(f"{share:.0%}" for share in SHARES))
    for part in memory[1.0]:
        table.add_row(part, *(str(memory[share][part]) for share in SHARES))
    console.print(table)
