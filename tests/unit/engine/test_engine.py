"""The engine's way of beginning, following and ending, on logs and jobs that are plain lists."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from itertools import dropwhile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from espha.connectors.topics import topic_plan
from espha.engine import follower, hearing
from espha.engine.agreement import Agreement
from espha.engine.digests import inputs_digest
from espha.engine.engine import Engine
from espha.engine.follower import Diverged
from espha.engine.forgiveness import Forgiveness
from espha.engine.inputs import Inputs
from espha.engine.lag import FAR
from espha.engine.shadow import Switched
from espha.kafka.held import HeldTopics
from espha.kafka.order_log import OrderLog, StrayError
from espha.kafka.reader import LogError
from espha.kernel import SEMANTICS
from espha.model import model_digest
from espha.pipeline.job import Batch, BrokenRecordError, Input, Output, Result
from espha.protocol.checkpoint import CheckpointBegun, CheckpointOrder, CheckpointReport
from espha.protocol.child_side import Control
from espha.protocol.order import Cursor, OrderRecord, Range, Shadow, Skip, StateDigest
from espha.protocol.states import EngineState, Role
from espha.protocol.status import Counts
from espha.reader import read_project
from espha.recovery.divergence import DivergenceLog
from espha.recovery.scheduler import SnapshotScheduler
from espha.recovery.store import SnapshotMeta, SnapshotStore, check
from support.models import SAMPLE
from unit.recovery.samples import body_of, store

PROJECT = read_project(SAMPLE)
PLAN = topic_plan(PROJECT, "t")
TOPIC = PLAN.inputs["cq/memory"]


class Elected(Exception):  # noqa: N818 - it ends a test's engine
    """The engine has come to the end of its log and would wait."""


class Job:
    """Remembers what it was asked; its outputs are its inputs."""

    def __init__(self, held: int | None = None) -> None:
        self.held, self.sequences = held, list[int]()
        self.skipped: list[tuple[Skip, ...]] = []

    def run(self, batches: list[Batch], transaction: int = 0) -> list[Result]:
        """Run batches that build on what is held."""
        for batch in batches:
            assert batch.expect in (None, self.held)
            self.held = batch.sequence
            self.sequences.append(batch.sequence)
            self.skipped.append(batch.skipped)
        return [
            outcome(batch.inputs)._replace(
                checkpoint=CheckpointBegun(sequence=batch.sequence) if batch.checkpoint else None
            )
            for batch in batches
        ]

    def checkpoint(self, order: CheckpointOrder) -> CheckpointBegun:
        """Write what stands for the state."""
        body = f"state {self.held}".encode()
        Path(order.path).write_bytes(bytes(order.offset) + body)
        checksum = hashlib.sha256(body).hexdigest()
        with Path(order.report).open("wb") as pipe:
            pipe.write(CheckpointReport(length=len(body), checksum=checksum).encode())
        return CheckpointBegun(sequence=self.held)


def outcome(inputs: list[Input]) -> Result:
    return Result([Output(entry.topic, entry.value, ()) for entry in inputs], 0)


class Log:
    """An order log; one record takes two offsets, as in Kafka."""

    topic = "t.M"
    behind = 0

    def __init__(self, records: list[OrderRecord], start: int = 0, cut: range = range(0)) -> None:
        self.records, self.reached, self.cut = records, start, cut
        self.polled = False

    def end(self) -> int:
        """Return the offset behind the last record."""
        return self.reached + 2 * len(self.records)

    def at(self, end: int) -> bool:
        """Tell whether all before `end` was returned."""
        return self.reached >= end

    def read_to(self, end: int, limit: int) -> Iterator[list[OrderRecord]]:
        """Yield everything."""
        records, self.records, self.reached = self.records, [], end
        yield records

    def keep_warm(self) -> None:
        """Nothing grows cold here."""

    def poll(self, timeout: float, limit: int) -> list[OrderRecord]:
        """Return nothing, then end the test."""
        if self.polled:
            raise Elected
        self.polled = True
        return []


class Rows:
    """One input record for each offset."""

    def read(self, wanted: Range) -> list[Input]:
        """Return the records of a range."""
        return [Input(wanted.topic, at, b"%d" % at) for at in range(wanted.start, wanted.end)]

    def pass_over(self, topic: str, end: int) -> None:
        """Go behind an offset."""

    held_topics = HeldTopics()

    def waiting(self) -> list[str]:
        """Have nothing that nobody orders."""
        return []

    def next_offsets(self) -> dict[str, int]:
        """Say nothing of any topic."""
        return {}

    def cursors(self) -> dict[str, Cursor]:
        """Return a fixed place."""
        return {TOPIC: Cursor(30, 31)}


def record(sequence: int, **changes: Any) -> OrderRecord:
    ranges = (Range(TOPIC, sequence, sequence + 1),)
    made = OrderRecord(
        sequence=sequence,
        inputs=ranges,
        clock=sequence,
        outputs=1,
        digest=outcome(Rows().read(ranges[0])).digest(),
        model=model_digest(PROJECT),
        engine="engine-1",
        epoch=1,
        runtime="r",
    )
    return made.model_copy(update=changes)


def meta(sequence: int) -> SnapshotMeta:
    return SnapshotMeta(
        sequence=sequence,
        epoch=3,
        clock=sequence,
        model=model_digest(PROJECT),
        order_log=2 * sequence,
        inputs={},
        topics={},
        counts=Counts(batches=sequence),
    )


Make = Callable[..., tuple[Engine, Job, SnapshotStore]]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make an engine that runs to the end of its log, and writes a snapshot there."""
    monkeypatch.delenv("ESPHA_STATUS_FD", raising=False)

    def made(
        log: Log, start: SnapshotMeta | None = None, **options: Any
    ) -> tuple[Engine, Job, SnapshotStore]:
        own, wanted = store(tmp_path), threading.Event()
        wanted.set()
        scheduler = SnapshotScheduler(
            own, DivergenceLog(own), engine="e", runtime="r", interval_s=60, wanted=wanted
        )
        job = Job(start.sequence if start else None)
        control = Control()
        control._active.clear()
        engine = Engine(
            name="engine-0",
            project=PROJECT,
            plan=PLAN,
            job=job,
            log=cast("OrderLog", log),
            inputs=cast("Inputs", Rows()),
            publisher=cast("Any", SimpleNamespace()),
            control=control,
            scheduler=scheduler,
            topic_ids={},
            start=start,
            **options,
        )
        return engine, job, own

    return made


def run(engine: Engine) -> None:
    with pytest.raises(Elected):
        engine.run()


def replayed(job: Job, warm_up: int) -> list[int]:
    """Sequences of the batches behind the warm-up's."""
    assert job.sequences[0] == warm_up
    return list(dropwhile(lambda sequence: sequence == warm_up, job.sequences))


def test_everything_is_replayed_without_a_snapshot(make: Make) -> None:
    engine, job, _ = make(Log([record(number) for number in range(1, 8)]))
    run(engine)
    assert replayed(job, 0) == [1, 2, 3, 4, 5, 6, 7]


def test_a_restored_engine_replays_only_what_is_behind_it(make: Make) -> None:
    engine, job, _ = make(Log([record(6), record(7)], start=10), meta(5))
    run(engine)
    assert replayed(job, 5) == [6, 7]


@pytest.mark.parametrize("start", [None, meta(5)])
def test_missing_order_records_are_named(make: Make, start: SnapshotMeta | None) -> None:
    engine, _, _ = make(Log([record(9), record(10)]), start)
    first = 6 if start else 1
    with pytest.raises(LogError, match=rf"t\.M: order records {first} to 8 are gone"):
        engine.run()


def test_an_order_record_that_comes_twice_is_not_processed_twice(make: Make) -> None:
    engine, _, _ = make(Log([record(6), record(7), record(7)], start=10), meta(5))
    with pytest.raises(LogError, match=r"t\.M: order record 7 follows 7"):
        engine.run()


@pytest.mark.parametrize("limit", ["REPLAY_BYTES", "_REPLAY_INPUTS"])
def test_what_is_replayed_in_one_call_is_bounded(
    make: Make, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """Else a backlog takes more memory than a worker has, in each life."""
    monkeypatch.setattr(follower, limit, 3)
    engine, job, _ = make(Log([record(number) for number in range(1, 9)]))
    calls: list[int] = []
    really = job.run

    def run_all(batches: list[Batch], transaction: int = 0) -> list[Result]:
        calls.append(sum(len(batch.inputs) for batch in batches))
        return really(batches)

    monkeypatch.setattr(job, "run", run_all)
    run(engine)
    assert [count for count in calls if count] == [3, 3, 2]


def test_a_log_without_any_record_left_is_not_taken_for_a_new_one(make: Make) -> None:
    """It would make sequence 1 a second time."""
    engine, _, _ = make(Log([], start=40, cut=range(40)))
    with pytest.raises(LogError, match="offsets 0 to 39 come next after order record 0"):
        engine.run()


def test_a_divergence_names_the_record_and_what_it_was_built_on(make: Make) -> None:
    engine, _, _ = make(Log([record(6), record(7, digest="0" * 64)], start=10), meta(5))
    with pytest.raises(Diverged, match="order record 7: 1 outputs") as raised:
        engine.run()
    assert (raised.value.sequence, raised.value.base) == (7, 5)


@pytest.mark.parametrize(
    "changes", [{"records": 2}, {"inputs_digest": "0" * 64}, {"records": 0, "inputs_digest": ""}]
)
def test_other_input_than_the_active_engine_had_is_found_at_once(
    make: Make, changes: dict[str, Any]
) -> None:
    """A record inside of a range is missing, is another one, or was not there."""
    right = {"records": 1, "inputs_digest": inputs_digest(Rows().read(Range(TOPIC, 2, 3)))}
    log = Log([record(1), record(2, **{**right, **changes}), record(3)])
    engine, job, _ = make(log)
    with pytest.raises(Diverged, match=r"order record 2: its input \(.* 2 to 2\) has 1") as raised:
        engine.run()
    assert (raised.value.sequence, raised.value.base) == (2, 0)
    assert job.held in (0, 1)


def test_the_right_input_is_processed(make: Make) -> None:
    right = {"records": 1, "inputs_digest": inputs_digest(Rows().read(Range(TOPIC, 1, 2)))}
    engine, job, _ = make(Log([record(1, **right)]))
    run(engine)
    assert replayed(job, 0) == [1]


def test_a_changed_model_needs_nothing_that_retention_has_removed(make: Make) -> None:
    """It has no state yet; the first record of the old model that is left says where it is."""
    foreign = [record(number, model="old", epoch=4) for number in (501, 502)]
    engine, job, own = make(Log([*foreign, record(503, epoch=5)], cut=range(1000)))
    run(engine)
    assert replayed(job, 0) == [503]
    wait_for_snapshot()
    assert check(own.files()[0]).header.sequence == 503


def test_a_gap_between_records_of_another_model_is_still_found(make: Make) -> None:
    engine, _, _ = make(Log([record(501, model="old"), record(503, model="old")]))
    with pytest.raises(LogError, match=r"order records 502 to 502 are gone"):
        engine.run()


@pytest.mark.parametrize("semantics", [None, SEMANTICS])
def test_what_an_engine_of_the_same_version_has_made_is_compared(
    make: Make, semantics: int | None
) -> None:
    engine, _, _ = make(Log([record(1, digest="0" * 64, semantics=semantics)]))
    with pytest.raises(Diverged, match="order record 1: 1 outputs"):
        engine.run()


@pytest.mark.parametrize("semantics", [SEMANTICS - 1, SEMANTICS + 1])
def test_what_an_engine_of_another_version_has_made_stands(make: Make, semantics: int) -> None:
    """Else a roll-out would stop at the first pod: it would never be in sync."""
    other = {"digest": "0" * 64, "semantics": semantics}
    engine, job, _ = make(Log([record(1, **other), record(2, **other), record(3)]))
    run(engine)
    assert replayed(job, 0) == [1, 2, 3]
    engine, job, _ = make(Log([record(1, **other), record(2, digest="0" * 64)]))
    with pytest.raises(Diverged, match="order record 2: 1 outputs"):
        engine.run()


def test_what_an_engine_of_another_version_has_read_is_compared(make: Make) -> None:
    wrong = {"records": 2, "inputs_digest": "0" * 64, "semantics": SEMANTICS + 1}
    engine, _, _ = make(Log([record(1, **wrong)]))
    with pytest.raises(Diverged, match="order record 1: its input"):
        engine.run()


@pytest.mark.parametrize(("topic", "at"), [(TOPIC, 7), (None, 6)])
def test_who_fails_at_what_the_active_engine_has_processed_takes_the_state_from_behind_it(
    make: Make, monkeypatch: pytest.MonkeyPatch, topic: str | None, at: int
) -> None:
    """It would fail in each life: its espha has an error there, or its memory is too small."""
    engine, job, _ = make(Log([record(6), record(7)], start=10), meta(5))
    broken = BrokenRecordError(topic, 7 if topic else None, "no memory")
    really = job.run

    def run(batches: list[Batch], transaction: int = 0) -> list[Result]:
        if batches[0].inputs:
            raise broken
        return really(batches)

    monkeypatch.setattr(job, "run", run)
    with pytest.raises(Diverged, match=r"engine-1 has processed: .* no memory") as raised:
        engine.run()
    assert (raised.value.sequence, raised.value.base) == (at, 5)
    assert raised.value.broken == ((TOPIC, 7) if topic else None)


def test_where_nobody_could_know_better_the_log_is_left_as_it_is(make: Make) -> None:
    """What this engine makes of it is the state; from then on it is as strict as ever."""
    log = Log([record(1), record(2, digest="0" * 64), record(3)])
    forgiveness = Forgiveness(True)
    engine, job, _ = make(log, forgiveness=forgiveness)
    run(engine)
    assert replayed(job, 0) == [1, 2, 3]
    assert (forgiveness.covers(3), forgiveness.covers(4)) == (True, False)


def test_a_record_that_this_engine_cannot_process_is_left_out_where_nobody_knows_better(
    make: Make,
) -> None:
    """Else it would end each life, and rebuild no state."""
    log = Log([record(1), record(2), record(3)])
    engine, job, _ = make(log, forgiveness=Forgiveness(True, [(TOPIC, 2), ("other", 3)]))
    run(engine)
    assert replayed(job, 0) == [1, 2, 3]
    assert [[skip[:2] for skip in each] for each in job.skipped[-3:]] == [[], [(TOPIC, 2)], []]


def test_a_roll_back_to_the_first_model_needs_its_beginning(make: Make) -> None:
    """It began with the first order record, which is gone: not with empty state, here."""
    mine = model_digest(PROJECT)
    switch = {"shadow": Shadow(model=mine, since=0), "switch": mine}
    foreign = [record(501, model="other"), record(502, model="other", **switch)]
    engine, _, _ = make(Log([*foreign, record(503)], cut=range(1000)))
    with pytest.raises(LogError, match="order record 503 began with the first one, which is gone"):
        engine.run()


def reports(make: Make, log: Log, then: Callable[[EngineState], None]) -> list[tuple[Any, bool]]:
    """Run an engine; return the states that it has said, and whether it was in sync."""
    engine, _, _ = make(log)
    said: list[tuple[Any, bool]] = []

    def hear(state: EngineState, sync: bool) -> None:
        said.append((state, sync))
        then(state)

    engine._control = cast("Any", Reporter(hear, engine._control))
    run(engine)
    return said


def test_a_standby_that_falls_behind_is_not_in_sync(make: Make) -> None:
    """Else it would be elected, and readers would wait for it."""
    log = Log([record(1)])

    def fall_behind(state: EngineState) -> None:
        log.behind = (FAR + 1) * (state is EngineState.STANDBY)

    said = reports(make, log, fall_behind)
    there = said.index((EngineState.STANDBY, True))
    assert said[there + 1] == (EngineState.REPLAYING, False)


def test_who_has_replayed_to_an_end_that_is_old_by_now_is_not_in_sync(make: Make) -> None:
    log = Log([record(1)])
    log.behind = FAR + 1
    assert not any(sync for _, sync in reports(make, log, lambda state: None))


class StrayLog(Log):
    """One to which somebody else has written, behind its second record."""

    at_stray: Callable[[StrayError], None]
    numbered = False

    def read_to(self, end: int, limit: int) -> Iterator[list[OrderRecord]]:
        """Yield everything."""
        yield self.records[:2]
        stray = StrayError("topic t.M, offset 4: not an order record", numbered=self.numbered)
        self.at_stray(stray)
        self.records = self.records[2:]
        yield from super().read_to(end, limit)


@pytest.mark.parametrize("numbered", [False, True])
def test_who_meets_a_stray_record_takes_the_state_of_one_that_is_behind_it(
    make: Make, numbered: bool
) -> None:
    """It ends as one that cannot recompute order record 3, which comes next."""
    log = StrayLog([record(number) for number in range(1, 6)])
    log.numbered = numbered
    engine, job, _ = make(log)
    with pytest.raises(Diverged, match="offset 4: not an order record") as raised:
        engine.run()
    assert (raised.value.sequence, raised.value.base, job.held) == (3, 0, 2)


def test_where_nobody_is_behind_a_stray_record_it_is_passed_over(make: Make) -> None:
    engine, job, _ = make(
        StrayLog([record(number) for number in range(1, 6)]), forgiveness=Forgiveness(True)
    )
    run(engine)
    assert replayed(job, 0) == [1, 2, 3, 4, 5]


class MutedLog(Log):
    """One whose reader gets nothing more, though there is more."""

    def end(self, limit_s: float = 30) -> int:
        """Return the offset behind the last record."""
        return super().end() if self.records else self.reached + 2


def test_a_standby_that_does_not_hear_the_order_log_is_not_in_sync(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would stand first in the queue for hours, and have hours of log to read then."""
    monkeypatch.setattr(hearing, "_SILENT_S", -1.0)
    monkeypatch.setattr(hearing, "_TWICE", 1)
    engine, _, _ = make(MutedLog([record(1)]))
    said: list[tuple[EngineState, bool]] = []
    engine._control = cast(
        "Any", Reporter(lambda state, sync: said.append((state, sync)), engine._control)
    )
    run(engine)
    assert said[-2:] == [(EngineState.STANDBY, True), (EngineState.REPLAYING, False)]


class Reporter:
    """A supervisor that listens."""

    role = Role.STANDBY

    def __init__(self, hear: Callable[[EngineState, bool], None], control: Control) -> None:
        self._hear, self._control = hear, control

    def __getattr__(self, name: str) -> Any:
        return getattr(self._control, name)

    def report(self, state: EngineState, in_sync: bool, *_: Any, **__: Any) -> None:
        """Hear it."""
        self._hear(state, in_sync)


class Digests:
    """A worker that finds the same digest after each record that is marked."""

    def __init__(self, digest: str, *, slow: bool = False) -> None:
        self.digest, self.marked = digest, list[int]()
        self.found: list[CheckpointReport] = []
        self.slow = slow
        """Nothing else is begun before its digest is taken."""
        self.is_busy = False

    def order(self) -> CheckpointOrder | None:
        """Return a place for the report."""
        if self.is_busy:
            return None
        self.is_busy = self.slow
        return CheckpointOrder(report="r")

    def begun(self, answer: CheckpointBegun | None) -> None:
        """Find a digest."""
        assert answer is not None
        assert answer.sequence is not None
        self.marked.append(answer.sequence)
        self.found.append(CheckpointReport(sequence=answer.sequence, state=self.digest))

    def finished(self) -> list[CheckpointReport]:
        """Return what there is."""
        found, self.found = self.found, []
        self.is_busy = self.is_busy and not found
        return found


def test_another_state_than_the_active_engines_is_found_before_a_failover(make: Make) -> None:
    """Though all outputs are the same."""
    told = StateDigest(2, "b" * 64)
    log = Log([record(1), record(2, checkpoint=True), record(3, state=told)])
    digests = Digests("a" * 64)
    engine, _, _ = make(log, agreement=Agreement(digests))
    with pytest.raises(Diverged, match="order record 2: the state after it has") as raised:
        engine.run()
    assert (raised.value.sequence, raised.value.state) == (2, "a" * 64)
    assert digests.marked == [2]


LATER = [
    record(2, checkpoint=True),
    record(3, state=StateDigest(2, "a" * 64)),
    record(4, checkpoint=True),
    record(5, state=StateDigest(4, "b" * 64)),
]


def test_who_has_diverged_looks_at_each_mark_of_the_log_it_replays(make: Make) -> None:
    """Else a state that is wrong in the same way would be in sync, and lead."""
    digests = Digests("a" * 64, slow=True)
    engine, _, _ = make(Log([record(1), *LATER]), agreement=Agreement(digests), careful=True)
    with pytest.raises(Diverged, match="order record 4: the state after it has"):
        engine.run()
    assert digests.marked == [2, 4]


def test_who_has_diverged_forgets_no_mark_before_it_was_compared(make: Make) -> None:
    """Many may be read at once, where the log is slow."""
    wrong = [record(1, checkpoint=True), record(2, state=StateDigest(1, "b" * 64))]
    many = [
        each
        for at in range(3, 83, 2)
        for each in (
            record(at, checkpoint=True),
            record(at + 1, state=StateDigest(at, "a" * 64)),
        )
    ]
    digests = Digests("a" * 64, slow=True)
    engine, _, _ = make(Log([*wrong, *many]), agreement=Agreement(digests), careful=True)
    with pytest.raises(Diverged, match="order record 1: the state after it has"):
        engine.run()


def test_who_has_waited_for_a_digest_reads_on_before_it_is_in_sync(make: Make) -> None:
    log = Log([record(1), record(2, checkpoint=True)])
    digests, more = Digests("a" * 64, slow=True), [record(3), record(4)]
    really = digests.finished

    def finished() -> list[CheckpointReport]:
        if digests.is_busy and more:
            log.records, log.reached = more.copy(), log.reached
            more.clear()
        return really()

    digests.finished = finished  # type: ignore[method-assign]
    engine, job, _ = make(log, agreement=Agreement(digests), careful=True)
    said: list[tuple[EngineState, int]] = []
    engine._control = cast(
        "Any",
        Reporter(lambda state, sync: said.append((state, job.held or 0)), engine._control),
    )
    run(engine)
    assert [at for state, at in said if state is EngineState.STANDBY][:1] == [4]


def test_what_others_have_written_meanwhile_is_not_forgiven(make: Make) -> None:
    """One of them leads by then, with a state of its own."""
    log = Log([record(1, digest="0" * 64), record(2, checkpoint=True)])
    more = [record(3), record(4, digest="0" * 64)]
    really = log.read_to

    def read_to(end: int, limit: int) -> Iterator[list[OrderRecord]]:
        yield from really(end, limit)
        log.records = more.copy()
        more.clear()

    log.read_to = read_to  # type: ignore[method-assign]
    engine, _, _ = make(
        log,
        agreement=Agreement(Digests("a" * 64, slow=True)),
        careful=True,
        forgiveness=Forgiveness(True),
    )
    with pytest.raises(Diverged, match="order record 4: 1 outputs"):
        engine.run()


def test_a_digest_of_what_was_forgiven_is_forgiven_too(make: Make) -> None:
    """Also where the log tells it later than the replay has come."""
    log = Log([record(1), *LATER, record(6, checkpoint=True)])
    behind = [record(7, state=StateDigest(6, "b" * 64)), record(8, checkpoint=True)]
    later = [behind, [record(9, state=StateDigest(8, "b" * 64))]]
    log.poll = lambda timeout, limit: later.pop(0)  # type: ignore[method-assign]
    digests = Digests("a" * 64, slow=True)
    engine, _, _ = make(
        log, agreement=Agreement(digests), careful=True, forgiveness=Forgiveness(True)
    )
    with pytest.raises(Diverged, match="order record 8: the state after it has"):
        engine.run()


def test_the_state_of_an_engine_of_another_version_is_not_compared(make: Make) -> None:
    told = {"state": StateDigest(2, "b" * 64), "semantics": SEMANTICS + 1}
    log = Log([record(1), record(2, checkpoint=True), record(3, **told)])
    engine, job, _ = make(log, agreement=Agreement(Digests("a" * 64)))
    run(engine)
    assert replayed(job, 0) == [1, 2, 3]


def test_the_same_state_is_no_news(make: Make) -> None:
    told = StateDigest(2, "a" * 64)
    log = Log([record(1), record(2, checkpoint=True), record(3, state=told)])
    engine, job, _ = make(log, agreement=Agreement(Digests("a" * 64)))
    run(engine)
    assert replayed(job, 0) == [1, 2, 3]


def test_a_standby_keeps_what_its_state_stands_for(make: Make) -> None:
    engine, _, own = make(Log([record(6), record(7)], start=10), meta(5))
    run(engine)
    wait_for_snapshot()
    kept = check(own.files()[0])
    header = kept.header
    assert body_of(kept) == b"state 7"
    assert (header.sequence, header.epoch, header.clock) == (7, 1, 7)
    assert (header.order_log, header.inputs) == (14, {TOPIC: Cursor(30, 31)})
    assert header.counts.batches == 7


def test_an_engine_without_state_keeps_nothing(make: Make) -> None:
    """Before the first order record of its model there is nothing to keep."""
    engine, _, own = make(Log([record(1, model="another")]))
    with pytest.raises(Switched):
        engine.run()
    wait_for_snapshot()
    assert own.files() == []


def wait_for_snapshot() -> None:
    for thread in threading.enumerate():
        if thread.name == "snapshot":
            thread.join(10)
