"""The invariants I1 to I6 of docs/explanation/protocol.md, each with someone who tries to break it.

The engines are real, and so are Kafka and the transactions in Spark's JVM; only the model is a
small one in this process instead of Spark, which lets a test stop an engine at any line.
docs/explanation/fault-campaign.md says for each test with which change of the code it was seen to
fail.
"""

import ast
import gc
import inspect
import json
import re
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import KafkaException, Producer
from pyspark.sql import SparkSession

import espha
from chaos.here import ENVIRONMENT
from espha.checker.batches import check_batches
from espha.checker.order import check_order
from espha.checker.watch import read_all, read_written
from espha.connectors.topics import TopicPlan, topic_plan
from espha.engine.engine import Engine
from espha.engine.inputs import Inputs
from espha.engine.shadow import Switched
from espha.kafka.order_log import OrderLog
from espha.kafka.reader import Ends, Offsets, open_reader, read_range, records_backwards
from espha.kafka.writer import Fenced, FencedWriter, WriterFailed
from espha.model import Project, model_digest
from espha.pipeline.channel import Wanted
from espha.pipeline.job import Batch, Output, Result
from espha.pipeline.transactions import Transactions
from espha.protocol.activity import Doing
from espha.protocol.checkpoint import CheckpointBegun, CheckpointOrder
from espha.protocol.model_change import ModelAction, ModelRequest
from espha.protocol.order import OrderRecord
from espha.protocol.sizes import MESSAGE_BYTES
from espha.protocol.states import EngineState, Role
from espha.protocol.status import EngineProgress, SnapshotFacts
from espha.reader import read_project
from support.deployment import SAMPLE_MODEL
from support.servers import Kafka, wait_until

pytestmark = pytest.mark.component

PROJECT = read_project(SAMPLE_MODEL.read_text())
LIMIT_S = 60


class Stopped(Exception):  # noqa: N818 - it names a state
    """The test has ended an engine."""


class Running:
    """A model whose outputs show all that may go into them: state, clock, and nothing else."""

    def __init__(self, plan: TopicPlan) -> None:
        (self._target,) = plan.outputs.values()
        self.states: dict[int, tuple[int, int]] = {0: (0, 0)}
        """For each sequence number: rows so far, and the sum of the clocks at which they came."""

    def run(self, batches: list[Batch], transaction: int = 0) -> list[Result]:
        """Run batches one after the other."""
        return [self._run(batch) for batch in batches]

    def _run(self, batch: Batch) -> Result:
        rows, clocks = self.states[batch.expect or 0]
        outputs = []
        for entry in batch.inputs:
            rows, clocks = rows + 1, clocks + batch.clock
            identity = f"{entry.topic}:{entry.offset}:0".encode()
            value = f"{entry.value.decode()} {rows} {clocks}".encode()
            outputs.append(Output(self._target, value, (("espha-id", identity),)))
        self.states[batch.sequence] = (rows, clocks)
        return Result(outputs, 0)

    def checkpoint(self, order: CheckpointOrder) -> CheckpointBegun:
        """Take none."""
        return CheckpointBegun(error="none here")


class Seat:
    """One engine in a thread; stands for its supervisor, keeper and fence as well."""

    model_request: ModelRequest | None = None
    follow, snapshots = threading.Event(), False
    shadow = False

    def __init__(
        self, kafka: Kafka, spark: SparkSession, plan: TopicPlan, name: str, project: Project
    ) -> None:
        self.name, self.role, self.state = name, Role.STANDBY, EngineState.STARTING
        self.sequence, self.looks, self.epoch = 0, 0, 0
        self.heir, self.proof_wanted, self.overslept = "", threading.Event(), False
        self.doing = Doing()
        self.raised: BaseException | None = None
        self.doing, self.overslept = Doing(), False
        self._ended = threading.Event()
        self.transactions = Transactions(spark, kafka.bootstrap, plan.order_log)
        self.model = Running(plan)
        inputs = list(plan.inputs.values())
        mock = cast(Any, self)
        self.engine = Engine(
            name=name,
            project=project,
            plan=plan,
            job=self.model,
            log=OrderLog(kafka.bootstrap, plan.order_log),
            inputs=Inputs(kafka.bootstrap, inputs),
            publisher=self.transactions,
            control=mock,
            scheduler=mock,
            topic_ids={},
            start=None,
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.engine.run()
        except BaseException as error:  # the test looks at it
            self.raised = error

    def wait_active(self, timeout: float) -> bool:
        """As the supervisor: nobody waits here."""
        return self.role is Role.ACTIVE

    def lead(self) -> None:
        """As the supervisor's line: the order log names this one."""
        self.role = Role.ACTIVE

    def report(self, state: EngineState, in_sync: bool, progress: EngineProgress) -> None:
        """As the supervisor: hear where the engine is."""
        self.state, self.sequence, self.epoch = state, progress.sequence, progress.epoch

    def due(self) -> bool:
        """As the scheduler, which is asked once a round: keep no snapshot; end when told to."""
        self.looks += 1
        if self._ended.is_set():
            raise Stopped
        return False

    def news(self) -> bool:
        """As the scheduler: none."""
        return False

    def pin(self, *_: object) -> None:
        """As the scheduler: keep nothing."""

    def facts(self) -> SnapshotFacts:
        """As the scheduler: none."""
        return SnapshotFacts()

    def elect(self) -> None:
        """Elect it, and wait until it has taken over."""
        self.role = Role.ACTIVE
        self.wait(lambda: self.state is EngineState.ACTIVE, "takes over")

    def reach(self, sequence: int) -> None:
        """Wait until it has processed an order record."""
        self.wait(lambda: self.sequence >= sequence, f"reaches order record {sequence}")

    def look_again(self, times: int = 5) -> None:
        """Wait until it has looked for order records so often since now."""
        wanted = self.looks + times
        self.wait(lambda: self.looks >= wanted, "looks at the order log")

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for something of this engine; fail at once when it has ended."""
        wait_until(lambda: condition() or self.raised is not None, LIMIT_S, f"{self.name} {what}")
        assert self.raised is None, f"{self.name} ended: {self.raised!r}"

    def end(self) -> BaseException | None:
        """Wait until it has ended by itself; return why."""
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive(), f"{self.name} goes on"
        return self.raised

    def stop(self) -> None:
        """End it."""
        self._ended.set()
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive(), f"{self.name} does not end"


class Table:
    """Topics, and engines around them."""

    def __init__(self, kafka: Kafka, spark: SparkSession) -> None:
        self.kafka, self._spark = kafka, spark
        self.plan = topic_plan(PROJECT, f"i{uuid.uuid4().hex[:8]}")
        kafka.make_topics(*self.plan.all())
        (self.source,), (self.target,) = self.plan.inputs.values(), self.plan.outputs.values()
        self._producer = Producer({"bootstrap.servers": kafka.bootstrap})
        self.offsets = Offsets(kafka.bootstrap)
        self.seats: list[Seat] = []
        self.rows = 0

    def seat(self, name: str, project: Project = PROJECT) -> Seat:
        """Start an engine as a standby."""
        self.seats.append(Seat(self.kafka, self._spark, self.plan, name, project))
        return self.seats[-1]

    def feed(self, rows: int = 3) -> None:
        """Write rows to the input topic."""
        for _ in range(rows):
            self._producer.produce(self.source, f"row-{self.rows}".encode(), partition=0)
            self.rows += 1
        assert self._producer.flush(LIMIT_S) == 0

    def settled_order(self) -> list[str]:
        """Return the order log, when the commit before shows there, too; nobody's may be open."""
        self.offsets.settled(self.plan.order_log)
        return self.order()

    def order(self) -> list[str]:
        """Return the order log."""
        return [each.value for each in read_all(self.kafka.bootstrap, self.plan.order_log)]

    def outputs(self) -> list[str]:
        """Return which rows have come out, in order."""
        values = [each.value for each in read_all(self.kafka.bootstrap, self.target)]
        return [value.split()[0] for value in values]

    def wait_for_all(self) -> None:
        """Wait until every row has come out."""
        wait_until(lambda: len(self.outputs()) >= self.rows, LIMIT_S, f"{self.rows} outputs")

    def wait_until_open(self, topic: str) -> None:
        """Wait until a record of an open transaction is on the brokers."""
        wait_until(lambda: self.offsets.ends(topic).open, LIMIT_S, f"{topic} has an open end")

    def check(self) -> None:
        """Everything came out once and in order, in whole batches, as the order log says."""
        assert self.outputs() == [f"row-{number}" for number in range(self.rows)]
        assert check_order(self.order()).problems == []
        written = {self.target: read_written(self.kafka.bootstrap, self.target)}
        assert check_batches(self.order(), written, self.plan.order_log).problems() == []


@pytest.fixture
def table(kafka: Kafka, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    """Topics of the test's own; engines commit what they are given, and nothing in between."""
    monkeypatch.setattr("espha.engine.leader._PROOF_S", 86_400.0)
    made = Table(kafka, spark)
    yield made
    while made.seats:
        made.seats.pop().stop()
    gc.collect()  # connections last as long as engines, whose parts name each other


def test_i1_only_the_newest_epoch_writes(table: Table) -> None:
    """A deposed engine that does not know it tries to commit, and changes nothing."""
    old, new = table.seat("old"), table.seat("new")
    old.elect()
    table.feed()
    table.wait_for_all()
    new.elect()
    before = len(table.order())
    table.feed()  # both take it; both believe that they are active
    assert isinstance(old.end(), Fenced)
    table.wait_for_all()
    table.check()
    engines = [record.partition('"engine":"')[2].partition('"')[0] for record in table.order()]
    assert engines[before:] == ["new"] * (len(engines) - before) != []
    with pytest.raises(WriterFailed):
        old.transactions.commit(Result([Output(table.target, b"once more", ())], 0), b"{}")
    table.check()


def nothing_new(timeout: float, limit: int) -> list[OrderRecord]:
    """Wait a little, and return no record."""
    time.sleep(0.01)
    return []


def test_i2_who_was_shown_an_older_end_of_the_log_commits_nothing(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that is cut off from the others took itself for the leader, and hid the rest.

    It would process once more what was processed.
    """
    first, second = table.seat("first"), table.seat("second")
    first.elect()
    table.feed()
    table.wait_for_all()
    last = len(table.settled_order())
    second.reach(last)
    log = second.engine._log
    old = log.end()
    monkeypatch.setattr(log, "end", lambda *_: old)
    monkeypatch.setattr(log, "poll", nothing_new)
    second.look_again()
    table.feed()
    table.wait_for_all()
    first.stop()
    second.role = Role.ACTIVE
    error = second.end()
    assert isinstance(error, WriterFailed)
    assert "goes on behind what was read of it" in str(error)
    third = table.seat("third")
    third.elect()
    table.feed()
    table.wait_for_all()
    table.check()


@pytest.mark.parametrize("place", [1, 3, 4])
def test_i2_a_batch_and_its_order_record_are_one(
    table: Table, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    """An engine dies in the middle of its batch, also between outputs and order record."""
    first, second = table.seat("first"), table.seat("second")
    first.elect()
    table.feed()
    table.wait_for_all()
    left, ask = place, first.transactions._ask

    def dying(doing: str, wanted: Wanted, *content: bytes) -> bytes:
        nonlocal left
        left -= 1
        if left == 0:
            if place > 1:
                table.wait_until_open(table.target)
            raise WriterFailed("killed by the test")
        return ask(doing, wanted, *content)

    monkeypatch.setattr(first.transactions, "_ask", dying)
    table.feed()
    assert isinstance(first.end(), WriterFailed)
    assert table.outputs() == ["row-0", "row-1", "row-2"]
    second.elect()
    table.wait_for_all()
    table.check()


def test_i2_outputs_are_nothing_without_their_order_record(table: Table) -> None:
    """The order record is what fails; the outputs are on the brokers, and count for nothing."""
    first, second = table.seat("first"), table.seat("second")
    first.elect()
    table.feed()
    table.wait_for_all()
    first.stop()
    first.transactions.send(Output(table.target, b"never", ()))
    table.wait_until_open(table.target)
    with pytest.raises(WriterFailed):
        first.transactions.commit(Result([], 0), bytes(2 * MESSAGE_BYTES))
    second.elect()
    table.feed()
    table.wait_for_all()
    table.check()


def test_i1_nobody_leads_while_another_id_has_the_log_open(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fence shuts out holders of its id only; a former espha had another one.

    Here it is `<prefix>.<project>`, whose holder has died in the middle of a transaction.
    """
    dead = FencedWriter(table.kafka.bootstrap, f"{table.plan.prefix}.{PROJECT.name}")
    dead.fence()
    dead._producer.begin_transaction()
    dead._producer.produce(table.plan.order_log, b"open", partition=0)
    dead._producer.flush(LIMIT_S)
    seat, looks = table.seat("new"), 0
    ends = seat.transactions._offsets.ends

    def counting(topic: str) -> Ends:
        nonlocal looks
        looks += 1
        return ends(topic)

    monkeypatch.setattr(seat.transactions._offsets, "ends", counting)
    seat.role = Role.ACTIVE
    table.feed()
    try:
        seat.wait(lambda: looks > 3, "looks whether a transaction is open")
        assert seat.state is not EngineState.ACTIVE
    finally:
        with suppress(KafkaException):  # brokers have done it, when this took long
            dead._producer.abort_transaction(LIMIT_S)
    seat.wait(lambda: seat.state is EngineState.ACTIVE, "takes over")
    table.wait_for_all()
    table.check()


def test_i1_a_renamed_project_shuts_out_whoever_ran_the_log_before(table: Table) -> None:
    """The id is the order log's: what its former leader left open ends with the fence."""
    old = table.seat("old")
    old.elect()
    table.feed()
    table.wait_for_all()
    renamed = PROJECT.model_copy(update={"name": "Renamed"})
    request = ModelRequest(action=ModelAction.SWITCH, model=model_digest(renamed), blind=True)
    old.model_request = request
    assert isinstance(old.end(), Switched)
    old.transactions.send(Output(table.target, b"never", ()))
    old.transactions.send(Output(table.plan.order_log, b"never", ()))
    table.wait_until_open(table.plan.order_log)
    new = table.seat("new", renamed)
    new.elect()
    table.feed()
    table.wait_for_all()
    with pytest.raises(WriterFailed):
        old.transactions.commit(Result([], 0), b"{}")
    table.check()


def test_i3_state_is_a_function_of_the_log(table: Table) -> None:
    """Engines that follow at once, or later and in other steps, come to the very same state."""
    active, follower = table.seat("active"), table.seat("follower")
    active.elect()
    for rows in (1, 5, 2):
        table.feed(rows)
        table.wait_for_all()
    late = table.seat("late")
    last = len(table.settled_order())
    for seat in (active, follower, late):
        seat.reach(last)
    assert active.model.states[last] == follower.model.states[last] == late.model.states[last]
    assert active.model.states[last][0] == table.rows
    active.stop()
    late.elect()
    table.feed()
    table.wait_for_all()
    table.check()


def test_i4_a_standby_is_never_ahead(table: Table) -> None:
    """Neither input that nobody ordered nor a decision that is not committed moves a standby."""
    active, standby = table.seat("active"), table.seat("standby")
    active.elect()
    table.feed()
    table.wait_for_all()
    committed = len(table.settled_order())
    standby.reach(committed)
    active.stop()
    table.feed()  # nobody orders it
    end = Offsets(table.kafka.bootstrap).end(table.source)
    decision = json.loads(table.order()[-1])
    decision |= {"sequence": committed + 1, "inputs": [[table.source, 3, end]]}
    active.transactions.send(Output(table.plan.order_log, json.dumps(decision).encode(), ()))
    table.wait_until_open(table.plan.order_log)
    standby.look_again()
    assert standby.sequence == committed
    assert max(standby.model.states) == committed
    standby.elect()
    table.wait_for_all()
    table.check()


def test_i5_engines_know_neither_kubernetes_nor_the_operator() -> None:
    """All that a failover needs is Kafka and ZooKeeper: nothing else can even be called."""
    program = (
        "import sys, espha.cli, espha.engine.main, espha.ha.supervisor,"
        " espha.adapters.file_input.run, espha.adapters.file_output.run\n"
        "known = {name.partition('.')[0] for name in sys.modules}\n"
        "print(*known & {'kopf', 'kubernetes', 'espha_operator'})"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=ENVIRONMENT,
    )
    assert ran.stdout.strip() == ""


def test_i6_no_reader_sees_what_is_not_committed(table: Table) -> None:
    """Aborted outputs and those of an open transaction are invisible to all ways of reading."""
    active = table.seat("active")
    active.elect()
    table.feed()
    table.wait_for_all()
    active.stop()
    held = active.transactions
    for last in (False, True):
        for topic in (table.target, table.plan.order_log):
            held.send(Output(topic, b"never", ()))
            table.wait_until_open(topic)
        if not last:
            held = held.renewed()
            held.fence()  # what was open is aborted
    bootstrap = table.kafka.bootstrap
    for topic in (table.target, table.plan.order_log):
        stable = Offsets(bootstrap).end(topic)
        ways = [read_range(bootstrap, topic, 0, stable), records_backwards(bootstrap, topic)]
        seen = [message.value() for way in ways for message in way]
        with open_reader(bootstrap, {topic: 0}) as reader:
            while (message := reader.poll(LIMIT_S)) is not None and message.error() is None:
                seen.append(message.value())
        assert b"never" not in seen
        assert seen
    table.check()


def test_i6_all_readers_are_made_where_it_says_read_committed() -> None:
    """No code of espha opens a consumer of its own; one asks for offsets, and reads nothing."""
    package = Path(espha.__file__).parent
    made = [
        f"{path.relative_to(package)}: {ast.unparse(node.func)}"
        for path in sorted(package.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Consumer")
    ]
    assert made == ["kafka/reader.py: Consumer"] * 2
    offsets = inspect.getsource(Offsets)
    assert "Consumer(" in offsets
    assert not re.search(r"\.(poll|consume|assign|subscribe)\(", offsets)
