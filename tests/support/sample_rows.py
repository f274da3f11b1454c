"""Rows of the sample model, what must come of them, and commands on its deployment."""

from collections.abc import Sequence

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner

from espha.cli import app
from espha.kafka.reader import Offsets
from support.deployment import SAMPLE_MODEL, Deployment
from support.replicas import Replica
from support.servers import wait_until

SOURCE, OUTPUT = "cq/memory", "cq/outbound"
_LENGTH = 20
"""Rows over which the model adds up."""


def publish(deployment: Deployment, *counters: int) -> None:
    """Publish rows with these counters, in one transaction."""
    deployment.publish(SOURCE, [f"I,N,,{counter},1,2,3" for counter in counters])


def expected(counters: Sequence[int]) -> list[str]:
    """Return the outputs of rows with these counters, computed here; the key counts rows."""
    sums = [sum(counters[max(0, at - _LENGTH + 1) : at + 1]) for at in range(len(counters))]
    pairs = zip(counters, sums, strict=True)
    return [f"I,N, {at},{one},1,2,3,{total:.6f}" for at, (one, total) in enumerate(pairs)]


def processed(deployment: Deployment, rows: int) -> None:
    """Wait until every engine has processed so many rows, and their outputs show."""
    wait_until(
        lambda: all(one.status().get("events_in") == rows for one in deployment.engines),
        120,
        f"all engines have {rows} rows",
    )
    deployment.settle()


def keep(deployment: Deployment, engine: Replica) -> int:
    """Have an engine write a snapshot of all that the order log says; return its sequence.

    Rows are counted a moment before their order record is: a sequence in its status may be older.
    """
    at: int = deployment.order_records()[-1]["sequence"]
    wait_until(lambda: _said(engine, "sequence") >= at, 60, f"{engine.name} has record {at}")
    assert engine.ask_snapshot() == 202
    wait_until(lambda: _said(engine, "snapshot_sequence") >= at, 60, f"snapshot {at}")
    return _said(engine, "snapshot_sequence")


def _said(engine: Replica, name: str) -> int:
    return int(engine.status().get(name) or 0)


def cut(deployment: Deployment, topic: str, before: int | None = None) -> int:
    """Remove records as retention does, by default all; return the offset that comes first then.

    What has just been committed stands below the stable end a moment later.
    """
    bootstrap = deployment.kafka.bootstrap
    end = Offsets(bootstrap).settled(topic) if before is None else before
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_records([TopicPartition(topic, 0, end)]).values():
        future.result(30)
    return end


def espha(deployment: Deployment, *words: str) -> tuple[int, str]:
    """Run a command on the deployment; return its exit code and what it prints."""
    place = ["--bootstrap", deployment.kafka.bootstrap, "--model", str(SAMPLE_MODEL)]
    result = CliRunner().invoke(app, [*words, *place, "--prefix", deployment.name])
    return result.exit_code, result.output
