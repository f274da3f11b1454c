"""Engines whose logs are trimmed behind them for long: disks do not fill, and nothing is lost."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from espha.checker.verify import VerifyOptions, verify
from espha.kafka.reader import Offsets
from espha.protocol.http import NoAnswerError, ask_status
from espha.protocol.status import ReplicaStatus
from espha_operator.api.deployment import ModelFacts
from espha_operator.reconcile.kafka_talk import talk
from espha_operator.reconcile.trimming import Trimmer
from support.deployment import SAMPLE_MODEL, Deployment
from support.servers import Kafka, ZooKeeper, wait_until
from unit.operator import samples

pytestmark = pytest.mark.component

SOURCE = "cq/memory"
ROUNDS, ROWS = 12, 8000
MIB = 1 << 20
SMALL = {
    "log.segment.bytes": MIB,
    "log.retention.check.interval.ms": 500,
    "log.segment.delete.delay.ms": 100,
    "log.initial.task.delay.ms": 500,
}


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    """Two engines that write snapshots often, on brokers that delete soon."""
    kafka, zookeeper = Kafka(tmp_path, replicas=1, settings=SMALL), ZooKeeper(tmp_path)
    made = None
    try:
        zookeeper.start()
        kafka.start()
        often = {"ESPHA_SNAPSHOT_INTERVAL_S": "2", "ESPHA_SNAPSHOTS_RETAINED": "2"}
        made = Deployment(kafka, zookeeper, tmp_path, settings=often)
        made.start(2)
        yield made
    finally:
        if made:
            made.stop()
        kafka.stop()
        zookeeper.stop()


class _Operator:
    """What the operator does about the logs, with what it sees."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        plan = deployment.plan
        self._model = ModelFacts(
            "", "p", "", plan.prefix, tuple(plan.all()), input_topics=plan.inputs
        )
        # An hour later each snapshot is old, and who has the second one writes another.
        self._trimmer = Trimmer(_clock(), lambda: time.time() + 3600)
        self.why = ""

    def trim(self) -> None:
        """Look at the engines, and trim what they let go."""
        addresses = {one.name: f"127.0.0.1:{one.port}" for one in self._deployment.engines}
        spec = samples.deployment(engines={"replicas": 2, "snapshots": {"interval": 1}})
        facts = samples.healthy(deployment=spec, engines=tuple(_statuses(addresses)))
        with talk(self._deployment.kafka.bootstrap) as kafka:
            self.why = self._trimmer.step(kafka, facts, self._model, addresses, "", scarce=False)


class _clock:  # noqa: N801
    """A clock in which minutes pass between two looks."""

    def __init__(self) -> None:
        self._now = 0.0

    def __call__(self) -> float:
        """Return the time, always later."""
        self._now += 300
        return self._now


def _statuses(addresses: dict[str, str]) -> Iterator[ReplicaStatus]:
    for address in addresses.values():
        try:
            yield ask_status(address)
        except NoAnswerError:
            continue


def row(number: int) -> str:
    return f"I,N,,{number},{'7' * 18},{'8' * 18},3"


def on_disk(deployment: Deployment, *topics: str) -> int:
    """Bytes of these topics' segments."""
    data = deployment.kafka.servers[0].folder / "data"
    found = 0
    for topic in topics:
        for path in (data / f"{topic}-0").glob("*.log"):
            try:
                found += path.stat().st_size
            except FileNotFoundError:  # deleted just now
                continue
    return found


def processed(deployment: Deployment, rows: int) -> bool:
    return all(one.status().get("events_in") == rows for one in deployment.engines)


def test_disks_do_not_fill_and_every_engine_comes_back(deployment: Deployment) -> None:
    operator, plan = _Operator(deployment), deployment.plan
    logs = (plan.inputs[SOURCE], plan.order_log)
    offsets = Offsets(deployment.kafka.bootstrap)
    written, largest = 0, 0
    for number in range(ROUNDS):
        rows = [row(number * ROWS + one) for one in range(ROWS)]
        written += sum(map(len, rows))
        deployment.publish(SOURCE, rows)
        done = (number + 1) * ROWS
        wait_until(partial(processed, deployment, done), 120, "all rows are processed")
        before = offsets.first(logs[0])

        def moved(before: int = before) -> bool:
            operator.trim()
            return offsets.first(logs[0]) > before

        if number > 1:
            wait_until(moved, 60, "the logs are trimmed")
            largest = max(largest, on_disk(deployment, *logs))
    wait_until(lambda: on_disk(deployment, *logs) < 4 * MIB, 60, "segments are deleted")
    assert largest < written / 2
    for engine in deployment.engines:
        engine.stop()
    for engine in deployment.engines:
        engine.start()
    deployment.wait_in_sync()
    last = [row(ROUNDS * ROWS + one) for one in range(100)]
    deployment.publish(SOURCE, last)
    total = ROUNDS * ROWS + len(last)
    wait_until(lambda: processed(deployment, total), 60, "further rows are processed")
    lines = deployment.lines("cq/outbound")
    assert len(lines) == total
    sums = sum(range(total - 20, total))
    assert lines[-1].endswith(f",{sums:.6f}")
    report = verify(
        VerifyOptions(deployment.kafka.bootstrap, SAMPLE_MODEL, prefix=plan.prefix, values=False)
    )
    assert report.complaints() == []
    assert report.ok
    assert report.first_record > 1
