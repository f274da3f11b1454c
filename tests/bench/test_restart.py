"""How long an engine takes to be in sync again, behind six minutes' worth of log and an hour's."""

import time
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from espha.engine.engine import RUNTIME
from espha.kafka.reader import PARTITION
from espha.kafka.writer import FencedWriter, Record
from espha.model import model_digest
from espha.pipeline.job import Batch, BatchJob, Input
from espha.pipeline.session import open_session
from espha.protocol.order import OrderRecord, Range
from espha.reader import read_project
from support.deployment import SAMPLE_MODEL, Deployment
from support.replicas import LIMIT_S, Replica, restarted
from support.servers import JAR_CACHE, Kafka, ZooKeeper, wait_until

SOURCE = "cq/memory"
ROWS_A_BATCH = 14
BATCHES_A_SECOND = 15
"""What an engine makes of 200 rows a second on two cores."""
MINUTES = (6, 60)
BATCHES_A_COMMIT = 500


@pytest.mark.timeout(1800)
def test_restart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Engines follow a log that was written for them; then one is killed, in several ways."""
    table = Table("minutes", "rows", "order records", "what", "replayed", "in sync s", "ratio")
    base: dict[str, float] = {}
    session = open_session("local[1]", JAR_CACHE / "engine")
    zookeeper, kafka = ZooKeeper(tmp_path), Kafka(tmp_path, 3)
    try:
        zookeeper.start()
        kafka.start()
        for minutes in MINUTES:
            batches = minutes * 60 * BATCHES_A_SECOND
            folder = tmp_path / f"{minutes}"
            folder.mkdir()
            deployment = Deployment(kafka, zookeeper, folder)
            write_log(session, deployment, batches)
            for what, replayed, took in restarts(deployment):
                ratio = took / base.setdefault(what, took)
                figures = (f"{batches * ROWS_A_BATCH:,}", f"{batches:,}", what, f"{replayed:,}")
                table.add_row(f"{minutes}", *figures, f"{took:.1f}", f"{ratio:.2f}")
    finally:
        kafka.stop()
        zookeeper.stop()
    with capsys.disabled():
        Console(width=110).print(table)


def restarts(deployment: Deployment) -> list[tuple[str, int, float]]:
    """Return for each way to start what it is, the order records replayed, and the seconds."""
    try:
        started = time.monotonic()
        deployment.start(2)
        found = [("both pods, from the log alone", *after(deployment.engines[0], started))]
        active = deployment.active()
        (standby,) = (engine for engine in deployment.engines if engine is not active)
        for engine in deployment.engines:
            assert engine.ask_snapshot() < 300
            made = partial(has_file, deployment.snapshots(engine).folder)
            wait_until(made, LIMIT_S, "a snapshot")
        again = restarted(standby)
        started = time.monotonic()
        standby.kill_child()
        again()
        found.append(("engine process, own snapshot", *after(standby, started)))
        for what in ("pod, own snapshot", "pod, its volume lost: a peer's snapshot"):
            standby.stop()
            if "lost" in what:
                for snapshot in deployment.snapshots(standby).folder.iterdir():
                    snapshot.unlink()
            started = time.monotonic()
            standby.start()
            found.append((what, *after(standby, started)))
    finally:
        deployment.stop()
    return found


def after(engine: Replica, started: float) -> tuple[int, float]:
    """Wait until an engine is in sync; return how many order records it replayed, and seconds."""
    wait_until(lambda: bool(engine.status().get("in_sync")), 900, f"{engine.name} in sync")
    return int(engine.status()["replayed"]), time.monotonic() - started


def has_file(folder: Path) -> bool:
    """Tell whether there is anything in a folder."""
    return any(folder.iterdir())


def write_log(session: SparkSession, deployment: Deployment, batches: int) -> None:
    """Write input, outputs and order records as an engine would have, only sooner."""
    bootstrap, plan = deployment.kafka.bootstrap, deployment.plan
    xml = SAMPLE_MODEL.read_text()
    project, topic = read_project(xml), plan.inputs[SOURCE]
    lines = [f"I,N,,{n},4000,9000,1700000000".encode() for n in range(batches * ROWS_A_BATCH)]
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for line in lines:
        while len(producer) > 50_000:
            producer.poll(0.1)
        producer.produce(topic, line, partition=PARTITION)
    assert producer.flush(LIMIT_S) == 0
    job = BatchJob(session, xml, project, plan)
    writer = FencedWriter(bootstrap, f"{deployment.name}.written")
    writer.fence()
    model = model_digest(project)
    clock = time.time_ns() // 1_000_000 - batches * 1000 // BATCHES_A_SECOND
    for first in range(1, batches + 1, BATCHES_A_COMMIT):
        asked = []
        for sequence in range(first, min(first + BATCHES_A_COMMIT, batches + 1)):
            start = (sequence - 1) * ROWS_A_BATCH
            rows = [Input(topic, at, lines[at]) for at in range(start, start + ROWS_A_BATCH)]
            now = clock + sequence * 1000 // BATCHES_A_SECOND
            asked.append(Batch(sequence - 1 or None, sequence, now, rows))
        records = []
        for batch, result in zip(asked, job.run(asked), strict=True):
            records += [Record(*output) for output in result.outputs]
            ordered = OrderRecord(
                sequence=batch.sequence,
                inputs=(Range(topic, batch.inputs[0].offset, batch.inputs[-1].offset + 1),),
                clock=batch.clock,
                outputs=len(result.outputs),
                digest=result.digest(),
                model=model,
                engine="written",
                epoch=1,
                runtime=RUNTIME,
            )
            records.append(Record(plan.order_log, ordered.encode()))
        writer.commit(records)
    job.close()
