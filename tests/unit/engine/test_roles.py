"""An engine that is told to take over, to step down, and to take over again, on plain lists."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from espha.connectors.topics import topic_plan
from espha.engine import engine as module
from espha.engine import leader
from espha.engine.digests import inputs_digest
from espha.engine.engine import Engine
from espha.kafka.held import HeldTopics
from espha.kafka.writer import Fenced, WriterFailed
from espha.pipeline.job import Batch, Input, Output, Result
from espha.protocol.activity import Doing
from espha.protocol.model_change import ModelRequest
from espha.protocol.order import OrderRecord, Range
from espha.protocol.states import EngineState, Role
from espha.protocol.status import EngineProgress, SnapshotFacts
from espha.reader import read_project
from support.models import SAMPLE

PROJECT = read_project(SAMPLE)
PLAN = topic_plan(PROJECT, "t")
TOPIC = PLAN.inputs["cq/memory"]


class Over(Exception):  # noqa: N818 - it ends a test
    """The scene has come to its end."""


class Stage:
    """Kafka, Spark, the supervisor: all that an engine talks to, and what it said, in order."""

    topic = PLAN.order_log
    cut = range(0)
    held_topics = HeldTopics()
    overslept = False
    model_request: ModelRequest | None = None
    follow, snapshots = threading.Event(), False
    shadow = False
    behind = 0

    def __init__(self, *scene: Callable[["Stage"], None]) -> None:
        """Play one step of the scene whenever the engine waits: for input, or for the log."""
        self.scene = list(scene)
        self.role, self.held = Role.STANDBY, 0
        self.heir, self.proof_wanted = "", threading.Event()
        self.warm = 0
        self.wake: Callable[[], None] = lambda: None
        self.renew: Callable[[], None] = lambda: None
        self.shut_out: Callable[[], None] = lambda: None
        self.log: list[OrderRecord] = []
        self.passed, self.rows = 0, 0
        self.said: list[str] = []
        self.doing = Doing()
        self.publisher = Publisher(self)

    def play(self) -> None:
        """Go on in the scene."""
        if not self.scene:
            raise Over
        self.scene.pop(0)(self)

    def other(self) -> None:
        """Let another engine take over and commit two batches."""
        for _ in range(2):
            self.commit_as("engine-1", self.log[-1].epoch + (self.log[-1].engine != "engine-1"))

    def commit_as(self, engine: str, epoch: int) -> None:
        """Append an order record of another engine."""
        ranges = (Range(TOPIC, self.rows, self.rows + 1),)
        inputs = self.read(ranges[0])
        result = self.run([Batch(None, 0, 0, inputs)])[0]
        done = self.log[-1]
        update = {"sequence": done.sequence + 1, "inputs": ranges, "engine": engine}
        digest = {"epoch": epoch, "digest": result.digest(), "outputs": 1}
        read = {"records": 1, "inputs_digest": inputs_digest(inputs)}
        self.log.append(done.model_copy(update={**update, **digest, **read}))
        self.rows += 1

    # The job
    def run(self, batches: list[Batch], transaction: int = 0) -> list[Result]:
        """Run batches that build on what is held; those of another engine count for nothing."""
        for batch in batches:
            if batch.sequence:
                assert batch.expect in (None, self.held)
                self.held = batch.sequence
        every = [[Output(entry.topic, entry.value, ()) for entry in b.inputs] for b in batches]
        return [Result(outputs, 0) for outputs in every]

    # The inputs
    def read(self, wanted: Range) -> list[Input]:
        """Return the records of a range."""
        return [Input(TOPIC, at, b"%d" % at) for at in range(wanted.start, wanted.end)]

    def take(self, limit: int, timeout: float) -> tuple[list[Range], list[Input]]:
        """Return the next row."""
        if timeout:
            self.play()
        self.rows += 1
        taken = Range(TOPIC, self.rows - 1, self.rows)
        return [taken], self.read(taken)

    def waiting(self) -> list[str]:
        """Have nothing that nobody orders."""
        return []

    def next_offsets(self) -> dict[str, int]:
        """Say nothing of any topic."""
        return {}

    # The order log
    def end(self, limit_s: float = 0) -> int:
        """Return the offset behind the last record."""
        return 2 * len(self.log)

    def at(self, end: int) -> bool:
        """Tell whether all before `end` was returned."""
        return 2 * self.passed >= end

    def read_to(self, end: int, limit: int) -> Iterator[list[OrderRecord]]:
        """Yield what stands before `end` and was not read yet."""
        found, self.passed = self.log[self.passed : end // 2], min(end // 2, len(self.log))
        yield found

    def poll(self, timeout: float, limit: int) -> list[OrderRecord]:
        """Go on in the scene, then return the rest."""
        self.play()
        return self.rest()

    def rest(self) -> list[OrderRecord]:
        """Return what was not read yet."""
        found, self.passed = self.log[self.passed :], len(self.log)
        return found

    def hurry(self) -> None:
        """Everything is quick here."""

    def keep_warm(self) -> None:
        """Remember it."""
        self.warm += 1

    def reopen(self, start: int) -> None:
        """Follow again."""
        self.said.append("follow")
        # A record takes two offsets, and the second one, its marker, may come late.
        assert start == 2 * len(self.log) - 1
        self.passed = (start + 1) // 2

    def close(self) -> None:
        """Follow no longer."""

    # The supervisor and the scheduler
    def lead(self) -> None:
        """Be active, as the order log says."""
        self.role = Role.ACTIVE

    def report(self, state: EngineState, in_sync: bool, progress: EngineProgress) -> None:
        """Hear it."""
        word = f"{state} {progress.sequence}/{progress.epoch} {progress.active}"
        if not self.said or self.said[-1] != word:
            self.said.append(word)

    def due(self) -> bool:
        """Keep nothing."""
        return False

    def news(self) -> bool:
        """Have none."""
        return False

    def facts(self) -> SnapshotFacts:
        """Have none."""
        return SnapshotFacts()


class Publisher:
    """A publisher that can fence once."""

    limit_s = 60.0
    moved: Callable[[], None]

    def __init__(self, stage: Stage) -> None:
        self.stage, self.fenced = stage, False

    @property
    def committed(self) -> int:
        """Offset behind the marker of the last record."""
        return 2 * len(self.stage.log)

    def fence(self) -> None:
        """As Kafka's: a second time is an error."""
        assert not self.fenced
        self.stage.shut_out()
        self.fenced = True

    def go_on(self, end: int) -> None:
        """Have one log, which everybody reads."""

    def begin(self) -> int:
        """Have no number."""
        return 0

    def commit(self, result: Result, order_record: bytes) -> None:
        """Append the order record."""
        assert self.fenced
        self.stage.log.append(OrderRecord.model_validate_json(order_record))
        self.stage.passed += 1

    def keep_warm(self) -> None:
        """Be warm always."""

    def renewed(self) -> "Publisher":
        """Return another one."""
        self.stage.renew()
        return Publisher(self.stage)


def elect(stage: Stage) -> None:
    stage.role = Role.ACTIVE


def step_down(stage: Stage) -> None:
    stage.role = Role.STANDBY


def elect_and_freeze(stage: Stage) -> None:
    stage.role, stage.overslept = Role.ACTIVE, True


def input_comes(stage: Stage) -> None:
    pass


def play(*scene: Callable[[Stage], None], end: type[Exception] = Over) -> Stage:
    stage = Stage(*scene)
    run(stage, end)
    return stage


def run(stage: Stage, end: type[Exception] = Over) -> None:
    mock = cast("Any", stage)
    engine = Engine(
        name="engine-0",
        project=PROJECT,
        plan=PLAN,
        job=mock,
        log=mock,
        inputs=mock,
        publisher=stage.publisher,
        control=mock,
        scheduler=mock,
        topic_ids={},
        start=None,
    )
    with pytest.raises(end):
        engine.run()


def test_a_batch_is_finished_before_the_engine_steps_down() -> None:
    """The row that had been taken is committed; then nothing more is."""
    stage = play(elect, input_comes, step_down)
    assert stage.said == [
        "replaying 0/0 ",
        "standby 0/0 ",
        "active 1/1 engine-0",
        "active 2/1 engine-0",
        "active 3/1 engine-0",
        "standby 3/1 engine-0",
        "follow",
    ]
    assert [record.inputs[0].start for record in stage.log] == [0, 1, 2]


def test_an_engine_that_has_stepped_down_follows_and_takes_over_again() -> None:
    """Its state is that of the last record all along; no process starts anew."""
    stage = play(elect, input_comes, step_down, Stage.other, elect, input_comes, step_down)
    assert [(one.sequence, one.epoch, one.engine) for one in stage.log] == [
        (1, 1, "engine-0"),
        (2, 1, "engine-0"),
        (3, 1, "engine-0"),
        (4, 2, "engine-1"),
        (5, 2, "engine-1"),
        (6, 3, "engine-0"),
        (7, 3, "engine-0"),
        (8, 3, "engine-0"),
    ]
    assert stage.held == 8
    assert "standby 5/2 engine-1" in stage.said


def test_what_the_one_before_commits_until_it_is_shut_out_is_read_and_not_made_again() -> None:
    """It may commit in the very moment of the fence: so the log's end is asked for behind that."""

    def elected(stage: Stage) -> None:
        def shut_out() -> None:
            threading.Event().wait(0.5)  # so long it may go on that does not wait for the fence
            stage.other()

        stage.shut_out = shut_out
        elect(stage)

    stage = play(elect, step_down, Stage.other, elected, input_comes)
    assert [record.sequence for record in stage.log] == list(range(1, len(stage.log) + 1))
    assert [(one.epoch, one.engine) for one in stage.log][-6:] == [
        *[(2, "engine-1")] * 4,
        *[(3, "engine-0")] * 2,
    ]


@pytest.mark.parametrize("jump_s", [86_400, -86_400])
def test_a_wall_clock_that_jumps_does_not_move_the_logs_clock(
    monkeypatch: pytest.MonkeyPatch, jump_s: int
) -> None:
    """Retention by time would empty everything, or nothing would leave for a day."""
    right = time.time_ns

    def jump(_: Stage) -> None:
        monkeypatch.setattr(time, "time_ns", lambda: right() + jump_s * 1_000_000_000)

    stage = play(elect, input_comes, jump, input_comes, step_down)
    clocks = [record.clock for record in stage.log]
    assert len(clocks) == 5
    assert clocks == sorted(clocks)
    assert clocks[-1] - clocks[0] < 60_000


def test_an_engine_that_wakes_up_too_late_shuts_nobody_out() -> None:
    """It was frozen between its election and its fence; another one leads by then."""
    stage = play(elect_and_freeze, end=Fenced)
    assert not stage.publisher.fenced
    assert stage.said[-1] == "standby 0/0 "


def hand_over(stage: Stage) -> None:
    stage.heir = "engine-1"
    step_down(stage)


def name_heir(heir: str) -> Callable[[Stage], None]:
    """Let the other one hand over."""

    def step(stage: Stage) -> None:
        stage.other()
        stage.log[-1] = stage.log[-1].model_copy(update={"heir": heir})

    return step


def test_the_last_record_of_one_that_hands_over_names_the_heir() -> None:
    stage = play(elect, input_comes, hand_over)
    assert [record.heir for record in stage.log] == ["", "", "", "engine-1"]
    assert stage.said[-2:] == ["standby 4/1 engine-0", "follow"]


def test_an_heir_leads_when_it_reads_that_it_is_one() -> None:
    """Nobody else tells it."""
    stage = play(elect, step_down, name_heir("engine-0"), input_comes)
    assert [(one.epoch, one.engine) for one in stage.log][-3:] == [
        (2, "engine-1"),
        (3, "engine-0"),
        (3, "engine-0"),
    ]


def test_an_heir_that_has_ended_meanwhile_does_not_lead_when_it_is_back() -> None:
    """The log may end with its name for seconds, while whoever named it goes on."""
    stage = Stage(input_comes, input_comes)
    stage.log = play(elect).log[:1]
    stage.log[0] = stage.log[0].model_copy(update={"engine": "engine-1", "heir": "engine-0"})
    run(stage)
    assert (stage.role, len(stage.log)) == (Role.STANDBY, 1)


def test_one_that_is_named_heir_while_it_gets_ready_leads() -> None:
    """It follows the log meanwhile; an heir that does not is passed over."""
    named, in_time = threading.Event(), []

    def stepped_down(stage: Stage) -> None:
        stage.renew = lambda: in_time.append(named.wait(10))
        step_down(stage)

    def name(stage: Stage) -> None:
        name_heir("engine-0")(stage)
        named.set()

    stage = play(elect, stepped_down, name, input_comes)
    assert in_time == [True]
    assert [(one.epoch, one.engine) for one in stage.log][-2:] == [(3, "engine-0")] * 2


def test_who_steps_down_leaves_the_processor_to_its_successor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It gets ready later, or as soon as it is named heir itself."""
    monkeypatch.setattr(leader, "_BESIDE_S", 600)
    ready = []

    def stepped_down(stage: Stage) -> None:
        stage.renew = lambda: ready.append(len(stage.log))
        step_down(stage)

    def look(stage: Stage) -> None:
        assert ready == []

    stage = play(elect, stepped_down, look, name_heir("engine-0"), input_comes)
    assert len(ready) == 1
    assert stage.log[-1].engine == "engine-0"


def test_one_that_does_not_get_ready_is_no_standby() -> None:
    """It ends at once, and not when it is elected."""

    def stepped_down(stage: Stage) -> None:
        stage.renew = fail
        step_down(stage)

    def fail() -> None:
        raise WriterFailed("no broker answers")

    def pass_time(stage: Stage) -> None:
        for thread in threading.enumerate():
            if thread.name == "renew":
                thread.join()

    play(elect, stepped_down, pass_time, input_comes, end=WriterFailed)


def test_another_ones_heir_stays_a_standby() -> None:
    stage = play(elect, step_down, name_heir("engine-2"), input_comes)
    assert stage.log[-1].engine == "engine-1"
    assert stage.role is Role.STANDBY


@pytest.mark.parametrize("known", [True, False])
def test_an_heir_that_comes_too_late_leaves_it(
    monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """Somebody has committed behind the record that names it, and this one has not read it yet.

    It knows of that record, or it was frozen, and does not.
    """

    def late(stage: Stage) -> None:
        name_heir("engine-0")(stage)
        if known:
            stage.behind = 1
        else:
            monkeypatch.setattr(module, "_PROMPT_S", 0.0)
        end = stage.end() + 2
        stage.end = lambda limit_s=0: end  # type: ignore[method-assign]

    stage = play(elect, step_down, late, input_comes)
    assert stage.log[-1].engine == "engine-1"
    assert stage.role is Role.STANDBY


def test_one_that_may_be_deposed_commits_without_input() -> None:
    """It asks the log, by a batch; else it would stay active until input comes."""

    def doubt(stage: Stage) -> None:
        stage.proof_wanted.set()

    stage = Stage(elect, doubt)
    taken = stage.take

    def once(limit: int, timeout: float) -> tuple[list[Range], list[Input]]:
        found = taken(limit, timeout)
        return found if stage.scene else ([], [])

    stage.take = once  # type: ignore[method-assign]
    run(stage)
    assert stage.log[-1].inputs == ()
    assert not stage.proof_wanted.is_set()


def test_an_idle_engine_asks_the_log_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("espha.engine.leader._PROOF_S", -1.0)
    stage = Stage(elect)
    looks = 0

    def nothing(limit: int, timeout: float) -> tuple[list[Range], list[Input]]:
        nonlocal looks
        looks += 1
        if looks > 3:
            raise Over
        return [], []

    stage.take = nothing  # type: ignore[method-assign]
    run(stage)
    assert [record.inputs for record in stage.log] == [(), (), ()]


def test_the_fence_does_not_wait_for_the_main_loop() -> None:
    """It begins when the role comes, while the standby still waits for the log."""
    fenced: list[bool] = []

    def elected(stage: Stage) -> None:
        stage.role = Role.ACTIVE
        stage.wake()
        for _ in range(1000):
            if stage.publisher.fenced:
                break
            threading.Event().wait(0.01)
        fenced.append(stage.publisher.fenced)

    play(elected, input_comes)
    assert fenced == [True]


def test_a_standby_keeps_warm_what_a_take_over_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is idle for minutes is closed by both ends, and a take-over would open it anew."""
    monkeypatch.setattr("espha.engine.engine._WARM_S", -1.0)
    stage = play(input_comes, input_comes, elect, input_comes)
    assert stage.warm == 4, "at the start, then once a round, and not while it is active"
    assert stage.log
