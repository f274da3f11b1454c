"""Three engines on real Kafka, ZooKeeper and Spark: what a reader sees when one dies or yields."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count, pairwise
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from chaos.reader import Reader
from espha.kafka import reader
from support.deployment import Deployment
from support.feeder import Feeder
from support.replicas import CALM, LIMIT_S, Replica, in_line, restarted
from support.servers import Kafka, ZooKeeper, wait_until

pytestmark = pytest.mark.component

SOURCE, OUTPUT = "cq/memory", "cq/outbound"


class Line:
    """The sample model on three engines, and how many rows it was given by all tests so far."""

    def __init__(self, deployment: Deployment, outputs: Consumer) -> None:
        """Make one that reads the rows that come out from `outputs`."""
        self.deployment, self.sent = deployment, 0
        self._outputs, self._seen = outputs, 0

    @contextmanager
    def feed(self) -> Iterator[Feeder]:
        """Feed further rows, until the block ends; then wait for all output, and check it."""
        first = self.sent
        rows = ((SOURCE, row(number)) for number in count(first))
        feeder = Feeder(self.deployment, rows, rate=50)
        try:
            with feeder:
                yield feeder
                feeder.stop()
        finally:  # a test that fails here leaves the next ones what they count on
            self.sent = first + feeder.sent
        self.check()

    def publish(self, *texts: str, good: int) -> None:
        """Write lines, so many of which are the next rows."""
        self.deployment.publish(SOURCE, texts)
        self.sent += good

    def flows(self, feeder: Feeder, rows: int) -> None:
        """Wait until so many more rows than are fed by now came out."""
        self._wait_for(self.sent + feeder.sent + rows)

    def check(self) -> None:
        """Each row is there once and in order, and so is what the order log says."""
        self._wait_for(self.sent)
        assert self.deployment.lines(OUTPUT) == [expected(number) for number in range(self.sent)]
        check_order_log(self.deployment)

    def _wait_for(self, rows: int) -> None:
        while self._seen < rows:
            message = self._outputs.poll(LIMIT_S)
            assert message is not None, f"row {self._seen} of {rows} does not come out"
            self._seen += reader.check(message)


def lines(kafka: Kafka, zookeeper: ZooKeeper, folder: Path) -> Iterator[Line]:
    """Start three engines, and end them behind the tests."""
    made = Deployment(kafka, zookeeper, folder, settings=CALM)
    try:
        made.start(3)
        with reader.open_reader(kafka.bootstrap, {made.plan.outputs[OUTPUT]: 0}) as outputs:
            yield Line(made, outputs)
    finally:
        made.stop()


@pytest.fixture(scope="module")
def lasting(
    kafka: Kafka, zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Line]:
    """One for all tests: a start of three engines takes half a minute."""
    yield from lines(kafka, zookeeper, tmp_path_factory.mktemp("line"))


@pytest.fixture
def line(lasting: Line) -> Line:
    """The same, in sync again, whatever the test before has left."""
    lasting.deployment.wait_in_sync()
    return lasting


@pytest.fixture
def fresh_line(kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Line]:
    """One whose topics hold nothing of other tests."""
    yield from lines(kafka, zookeeper, tmp_path)


def row(number: int) -> str:
    return f"I,N,,{number},{4000 + number % 7},{9000 - number % 5},{1_700_000_000 + number}"


def expected(number: int) -> str:
    """The output for the number-th row, computed here: keys from 0, the last 20 counters."""
    total = sum(range(max(0, number - 19), number + 1))
    values = row(number).removeprefix("I,N,,")
    return f"I,N, {number},{values},{total:.6f}"


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


def test_kills_lose_and_double_nothing(line: Line) -> None:
    """Engine processes, supervisors and a standby die under load; the output is exact."""
    deployment = line.deployment
    chance = random.Random(7)
    with line.feed() as feeder:
        for fault in ("child", "child", "supervisor", "child and next", "frozen child", "zombie"):
            line.flows(feeder, chance.randrange(5, 25))
            active = deployment.active()
            others = [engine for engine in deployment.engines if engine is not active]
            victims = [active, *others[: fault == "child and next"]]
            again = restarted(*victims)
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
                try:
                    deployment.active_but(active)
                finally:
                    os.kill(pid, signal.SIGCONT)
                    active.kill(signal.SIGCONT)
            else:
                for victim in victims:
                    victim.kill_child()
            if fault != "supervisor":  # a new one knows of no other child
                again()
            deployment.wait_in_sync()
    assert deployment.order_records()[-1]["epoch"] >= 6


def switch_over(engine: Replica, *options: str) -> str:
    """Run `espha switchover` against an engine; return what it says last."""
    command = [sys.executable, "-m", "espha.cli", "switchover", *options]
    command += ["--address", f"127.0.0.1:{engine.port}", "--wait", f"{LIMIT_S:g}"]
    done = subprocess.run(
        command, env=engine.environment, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[-1]


@pytest.fixture
def arrived(line: Line, tmp_path: Path) -> Iterator[Reader]:
    """Return what has followed the outputs from before the test on."""
    deployment = line.deployment
    topic = deployment.plan.outputs[OUTPUT]
    made = Reader(deployment.kafka.bootstrap, tmp_path / "arrivals", [topic])
    yield made
    made.stop()


def test_switchovers_lose_and_restart_nothing(line: Line, arrived: Reader) -> None:
    """Three in a row, then one to the last in line, under load: exact, and no process is new."""
    deployment = line.deployment
    turns = [deployment.active()]
    processes = [(one.child(), one.told()["restarts"]) for one in deployment.engines]
    first = turns[0].told()["epoch"]
    with line.feed() as feeder:
        for epoch in range(first + 1, first + 4):
            line.flows(feeder, 25)
            said = switch_over(turns[-1])
            assert said.endswith(f" is active, epoch {epoch}")
            old, new = turns[-1], deployment.active_but(turns[-1])
            assert said.startswith(f"{new.name} is")
            turns.append(new)
            # Who has handed over goes to the end a moment later; until then it would be next.
            (third,) = [engine for engine in deployment.engines if engine not in (old, new)]
            wait_until(partial(in_line, [new, third, old]), LIMIT_S, "the old one stands last")
        assert turns[3] is turns[0]
        last = turns[2]
        # Asked of a standby, which leads to the active one by its peers.
        assert switch_over(last, "--to", last.name) == f"{last.name} is active, epoch {first + 4}"
        line.flows(feeder, 25)
    epochs = {record["epoch"] for record in deployment.order_records()}
    assert sorted(epoch for epoch in epochs if epoch >= first) == list(range(first, first + 5))
    now = [(one.child(), one.told()["restarts"]) for one in deployment.engines]
    assert now == processes
    wait_until(lambda: len(arrived.refresh()) == line.sent, LIMIT_S, "the reader has everything")
    gaps = [newer.time - older.time for older, newer in pairwise(arrived.arrivals)]
    print(f"longest gaps, ms: {[round(gap * 1000) for gap in sorted(gaps)[-5:]]}")


def test_bad_records_become_dead_letters(line: Line) -> None:
    """A row of the wrong type is set aside with its place and a reason; the others flow on."""
    deployment, next_row = line.deployment, line.sent
    bad = ["I,N,,x,1,2,3", "I,N,,1,2,3,y", "Q,N,,1,2,3,4", ""]
    line.publish(row(next_row), *bad, row(next_row + 1), good=2)
    line.check()
    deployment.wait_level()
    letters = deployment.records(deployment.plan.dead_letters)
    assert [letter.value().decode() for letter in letters] == bad
    headers = [dict(letter.headers() or []) for letter in letters]
    assert [entry["espha-window"] for entry in headers] == [SOURCE.encode()] * 4
    assert b"Record_Counter" in headers[0]["espha-reason"]
    assert b"opcode" in headers[2]["espha-reason"]
    assert deployment.active().told()["dead_letters"] == 4


def test_all_engines_at_once(line: Line) -> None:
    """When every engine dies together, they rebuild from the log and go on where it ends."""
    deployment = line.deployment
    line.publish(*(row(number) for number in range(line.sent, line.sent + 100)), good=100)
    line.check()
    for engine in deployment.engines:
        engine.kill()
    for engine in deployment.engines:
        engine.stop()
        engine.start()
    line.publish(*(row(number) for number in range(line.sent, line.sent + 50)), good=50)
    deployment.wait_in_sync()
    line.check()


@pytest.mark.long
def test_a_terminated_engine_aborts_no_transaction(fresh_line: Line) -> None:
    """SIGTERM, as from a drain, to each active engine under load: its last record names the heir.

    A reader of everything (read_uncommitted) sees no row that another one does not see.
    """
    deployment = fresh_line.deployment
    heirs = []
    with fresh_line.feed() as feeder:
        for _ in range(3):
            fresh_line.flows(feeder, 25)
            active = deployment.active()
            active.kill(signal.SIGTERM)
            assert active.process is not None
            assert active.process.wait(60) == 0
            heirs.append((active.name, deployment.active_but(active).name))
            active.start()
            deployment.wait_in_sync()
    assert uncommitted(deployment, deployment.plan.outputs[OUTPUT]) == fresh_line.sent
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
