"""Three engines on real Kafka, ZooKeeper and Spark: what a reader sees when one dies or yields."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count, pairwise
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from chaos.reader import Reader
from support.deployment import Deployment
from support.feeder import Feeder
from support.replicas import Replica, restarted
from support.servers import Kafka, ZooKeeper, wait_until

pytestmark = pytest.mark.component

SOURCE, OUTPUT = "cq/memory", "cq/outbound"


CALM = {"ESPHA_SESSION_MS": "4000", "ESPHA_FAILURE_TIMEOUT_MS": "4000"}
"""For a test that counts take-overs: none happens because the machine stood still for a second."""


Deploy = Callable[..., Deployment]


@pytest.fixture
def deploy(kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Deploy]:
    """Start the sample model on so many engines, with such settings; they end with the test."""
    with ExitStack() as ends:

        def start(engines: int, **settings: str) -> Deployment:
            made = Deployment(kafka, zookeeper, tmp_path, settings=settings)
            ends.callback(made.stop)
            made.start(engines)
            return made

        yield start


def row(number: int) -> str:
    return f"I,N,,{number},{4000 + number % 7},{9000 - number % 5},{1_700_000_000 + number}"


def expected(number: int) -> str:
    """The output for the number-th row, computed here: keys from 0, the last 20 counters."""
    total = sum(range(max(0, number - 19), number + 1))
    values = row(number).removeprefix("I,N,,")
    return f"I,N, {number},{values},{total:.6f}"


def rows() -> Iterator[tuple[str, str]]:
    """All rows, numbered from 0."""
    return ((SOURCE, row(number)) for number in count())


def check_order_log(deployment: Deployment) -> None:
    """I2: no gap, no repeat; ranges follow each other; epochs and clocks never go back."""
    records = deployment.order_records()
    assert [record["sequence"] for record in records] == list(range(1, len(records) + 1))
    for older, newer in pairwise(records):
        assert newer["epoch"] >= older["epoch"]
        assert newer["clock"] >= older["clock"]
        if newer["epoch"] == older["epoch"]:
            assert newer["engine"] == older["engine"]
    ranges = [entry for record in records for entry in record["inputs"]]
    for (_, _, end), (_, start, _) in pairwise(ranges):
        assert end == start


def wait_for_rows(deployment: Deployment, rows: int) -> None:
    topic = deployment.plan.outputs[OUTPUT]
    wait_until(
        lambda: len(deployment.records(topic)) >= rows, 60, f"{rows} rows of output on {topic}"
    )


def test_kills_lose_and_double_nothing(deploy: Deploy) -> None:
    """Engine processes, supervisors and a standby die under load; the output is exact."""
    deployment = deploy(3)
    chance = random.Random(7)
    with Feeder(deployment, rows(), rate=50) as feeder:
        for fault in ("child", "child", "supervisor", "child and next", "frozen child", "zombie"):
            wait_for_rows(deployment, feeder.sent + chance.randrange(5, 25))
            active = deployment.active()
            if fault == "supervisor":
                active.stop()
                active.start()
            elif fault == "frozen child":
                active.kill_child(signal.SIGSTOP)
                deployment.active_but(active)
            elif fault == "zombie":
                # Frozen as a whole: its session expires, and it still thinks that it is active.
                pid = active.child()
                active.kill(signal.SIGSTOP)
                os.kill(pid, signal.SIGSTOP)
                deployment.active_but(active)
                os.kill(pid, signal.SIGCONT)
                active.kill(signal.SIGCONT)
            else:
                others = [engine for engine in deployment.engines if engine is not active]
                victims = [active, *others[: fault == "child and next"]]
                again = restarted(*victims)
                for victim in victims:
                    victim.kill_child()
                again()
            deployment.wait_in_sync()
        sent = feeder.stop()
    wait_for_rows(deployment, sent)
    assert deployment.lines(OUTPUT) == [expected(number) for number in range(sent)]
    check_order_log(deployment)
    assert deployment.order_records()[-1]["epoch"] >= 6


def switch_over(engine: Replica, *options: str) -> str:
    """Run `espha switchover` against an engine; return what it says last."""
    command = [sys.executable, "-m", "espha.cli", "switchover", *options]
    command += ["--address", f"127.0.0.1:{engine.port}"]
    done = subprocess.run(
        command, env=engine.environment, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.splitlines()[-1]


def test_switchovers_lose_and_restart_nothing(deploy: Deploy, tmp_path: Path) -> None:
    """Three in a row, then one to the last in line, under load: exact, and no process is new."""
    deployment = deploy(3, **CALM)
    topic = deployment.plan.outputs[OUTPUT]
    reader = Reader(deployment.kafka.bootstrap, tmp_path / "arrivals", [topic])
    turns = [deployment.active()]
    children = [engine.child() for engine in deployment.engines]
    first = turns[0].status()["epoch"]
    with Feeder(deployment, rows(), rate=50) as feeder:
        for epoch in range(first + 1, first + 4):
            wait_for_rows(deployment, feeder.sent + 25)
            said = switch_over(turns[-1])
            assert said.endswith(f" is active, epoch {epoch}")
            turns.append(deployment.active_but(turns[-1]))
            assert said.startswith(f"{turns[-1].name} is")
        assert turns[3] is turns[0]
        last = turns[2]
        # Asked of a standby, which leads to the active one by its peers.
        assert switch_over(last, "--to", last.name) == f"{last.name} is active, epoch {first + 4}"
        wait_for_rows(deployment, feeder.sent + 25)
        sent = feeder.stop()
    wait_for_rows(deployment, sent)
    assert deployment.lines(OUTPUT) == [expected(number) for number in range(sent)]
    check_order_log(deployment)
    records = deployment.order_records()
    assert sorted({record["epoch"] for record in records}) == list(range(1, first + 5))
    assert [engine.status()["restarts"] for engine in deployment.engines] == [0, 0, 0]
    assert [engine.child() for engine in deployment.engines] == children
    wait_until(lambda: len(reader.refresh()) == sent, 60, "the reader has everything")
    reader.stop()
    gaps = [newer.time - older.time for older, newer in pairwise(reader.arrivals)]
    print(f"longest gaps, ms: {[round(gap * 1000) for gap in sorted(gaps)[-5:]]}")


@pytest.mark.long
def test_a_terminated_engine_aborts_no_transaction(deploy: Deploy) -> None:
    """SIGTERM, as from a drain, to each active engine under load: its last record names the heir.

    A reader of everything (read_uncommitted) sees no row that another one does not see.
    """
    deployment = deploy(3, **CALM)
    topic = deployment.plan.outputs[OUTPUT]
    heirs = []
    with Feeder(deployment, rows(), rate=50) as feeder:
        for _ in range(3):
            wait_for_rows(deployment, feeder.sent + 25)
            active = deployment.active()
            active.kill(signal.SIGTERM)
            assert active.process is not None
            assert active.process.wait(60) == 0
            heirs.append((active.name, deployment.active_but(active).name))
            active.start()
            deployment.wait_in_sync()
        sent = feeder.stop()
    wait_for_rows(deployment, sent)
    assert deployment.lines(OUTPUT) == [expected(number) for number in range(sent)]
    assert uncommitted(deployment, topic) == sent
    check_order_log(deployment)
    named = [(one["engine"], one["heir"]) for one in deployment.order_records() if one.get("heir")]
    assert named == heirs


def uncommitted(deployment: Deployment, topic: str) -> int:
    """Return how many records a topic holds, those of aborted transactions with the others."""
    settings = {
        "bootstrap.servers": deployment.kafka.bootstrap,
        "group.id": "test",
        "isolation.level": "read_uncommitted",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
    consumer, seen = Consumer(settings), 0
    consumer.assign([TopicPartition(topic, 0, 0)])
    while True:
        message = consumer.poll(30)
        assert message is not None, f"{topic} has no end after {seen} records"
        if not message.error():
            seen += 1
        elif message.error().code() == KafkaError._PARTITION_EOF:
            consumer.close()
            return seen


def test_all_engines_at_once(deploy: Deploy) -> None:
    """When every engine dies together, they rebuild from the log and go on where it ends."""
    deployment = deploy(2)
    deployment.publish(SOURCE, [row(number) for number in range(100)])
    wait_for_rows(deployment, 100)
    for engine in deployment.engines:
        engine.kill()
    for engine in deployment.engines:
        engine.stop()
        engine.start()
    deployment.publish(SOURCE, [row(number) for number in range(100, 150)])
    deployment.wait_in_sync()
    wait_for_rows(deployment, 150)
    assert deployment.lines(OUTPUT) == [expected(number) for number in range(150)]
    check_order_log(deployment)


def test_bad_records_become_dead_letters(deploy: Deploy) -> None:
    """A row of the wrong type is set aside with its place and a reason; the others flow on."""
    deployment = deploy(1)
    bad = ["I,N,,x,1,2,3", "I,N,,1,2,3,y", "Q,N,,1,2,3,4", ""]
    deployment.publish(SOURCE, [row(0), *bad, row(1)])
    wait_for_rows(deployment, 2)
    assert deployment.lines(OUTPUT) == [expected(0), expected(1)]
    letters = deployment.records(deployment.plan.dead_letters)
    assert [letter.value().decode() for letter in letters] == bad
    headers = [dict(letter.headers() or []) for letter in letters]
    assert [entry["espha-window"] for entry in headers] == [SOURCE.encode()] * 4
    assert b"Record_Counter" in headers[0]["espha-reason"]
    assert b"opcode" in headers[2]["espha-reason"]
    deployment.wait_level()
    assert deployment.active().status()["dead_letters"] == 4
