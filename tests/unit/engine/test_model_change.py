"""A change of the model at an order record, and back, on logs and jobs that are plain lists."""

import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest

from espha.connectors.topics import topic_plan
from espha.engine import engine as module
from espha.engine.choice import is_forced
from espha.engine.engine import Engine
from espha.engine.position import Position
from espha.engine.shadow import ShadowError, Spared, Switched
from espha.kafka.held import HeldTopics
from espha.kafka.reader import LogError
from espha.kafka.writer import Fenced
from espha.model import Project
from espha.pipeline.job import Batch, Input, Output, Result
from espha.protocol.activity import Doing
from espha.protocol.checkpoint import CheckpointBegun, CheckpointOrder
from espha.protocol.model_change import ModelAction, ModelRequest
from espha.protocol.order import (
    PLAIN_FORMAT,
    SWITCH_FORMAT,
    Cursor,
    OrderRecord,
    Range,
    Resume,
)
from espha.protocol.states import EngineState, Role
from espha.protocol.status import Counts, EngineProgress, SnapshotFacts
from espha.reader import read_project
from espha.recovery.skip import order_record
from espha.recovery.store import SnapshotMeta
from support.models import SAMPLE

LIMIT_S = 60.0

PROJECT = read_project(SAMPLE)
PLAN = topic_plan(PROJECT, "t")
TOPIC = PLAN.inputs["cq/memory"]


class Stopped(Exception):  # noqa: N818 - it ends a test
    """An engine was told to do more than the test wants."""


class Kafka:
    """What all engines of a test share: rows, and the order log."""

    def __init__(self) -> None:
        self.rows, self.log = list[int](), list[OrderRecord]()
        self.outputs: dict[int, list[bytes]] = {}
        self.holder: object = None


class Site:
    """One engine's surroundings; its model adds up rows, times a factor."""

    topic, cut, overslept, shadow, behind = PLAN.order_log, range(0), False, False, 0
    heir = ""
    held_topics = HeldTopics()
    model_request: ModelRequest | None = None
    follow, snapshots = threading.Event(), False
    message: str = ""

    def __init__(self, kafka: Kafka, model: str, name: str, factor: int = 1) -> None:
        """Make ready."""
        self.kafka, self.model, self.name, self.factor = kafka, model, name, factor
        self.states: dict[int, int] = {}
        self.passed = self.taken = 0
        self.role, self.state = Role.STANDBY, EngineState.STARTING
        self.progress: EngineProgress | None = None
        self.pinned: list[SnapshotMeta] = []
        self.doing = Doing()
        self.wake: Callable[[], None] = lambda: None
        self.moved: Callable[[], None] = lambda: None
        self.asked: list[int | None] = []
        self.steps: list[Callable[[], None]] = []
        self.proof_wanted = self

    # The job
    def run(self, batches: list[Batch], transaction: int = 0) -> list[Result]:
        """Add up rows."""
        return [self._run(batch) for batch in batches]

    def _run(self, batch: Batch) -> Result:
        total = 0 if batch.expect is None else self.states[batch.expect]
        outputs = []
        for entry in batch.inputs:
            total += self.factor * int(entry.value)
            outputs.append(Output(TOPIC, b"%d" % total, ()))
        self.states[batch.sequence] = total
        return Result(outputs, 0)

    def checkpoint(self, order: CheckpointOrder) -> CheckpointBegun:
        """Take none."""
        return CheckpointBegun(error="none here")

    # The inputs
    def read(self, wanted: Range) -> list[Input]:
        """Return the records of a range."""
        self.taken = wanted.end
        rows = self.kafka.rows
        return [Input(TOPIC, at, b"%d" % rows[at]) for at in range(wanted.start, wanted.end)]

    def pass_over(self, topic: str, end: int) -> None:
        """Go behind an offset."""
        self.taken = max(self.taken, end)

    def has(self, topic: str) -> bool:
        """Know the one topic."""
        return topic == TOPIC

    def used(self) -> tuple[tuple[str, int], ...]:
        """Say where it goes on."""
        return ((TOPIC, self.taken),) if self.taken else ()

    def take(self, limit: int, timeout: float) -> tuple[list[Range], list[Input]]:
        """Take what is new."""
        if timeout and self.taken == len(self.kafka.rows):
            self._play()
        if self.taken == len(self.kafka.rows):
            return [], []
        new = Range(TOPIC, self.taken, len(self.kafka.rows))
        return [new], self.read(new)

    def next_offsets(self) -> dict[str, int]:
        """Say where it goes on."""
        return {TOPIC: self.taken}

    def cursors(self) -> dict[str, Cursor]:
        """Say where it goes on."""
        return {TOPIC: Cursor(self.taken, self.taken)}

    def waiting(self) -> list[str]:
        """Have nothing that nobody orders."""
        return []

    # The order log
    def end(self, limit_s: float = 0) -> int:
        """Return the offset behind the last record."""
        return 2 * len(self.kafka.log)

    def at(self, end: int) -> bool:
        """Tell whether all before `end` was returned."""
        return 2 * self.passed >= end

    @property
    def reached(self) -> int:
        """Say how far it is."""
        return 2 * self.passed

    def read_to(self, end: int, limit: int) -> Iterator[list[OrderRecord]]:
        """Yield the rest."""
        yield self._rest()

    def poll(self, timeout: float, limit: int) -> list[OrderRecord]:
        """Return the rest, or go on in the test."""
        rest = self._rest()
        if not rest:
            self._play()
        return rest

    def _rest(self) -> list[OrderRecord]:
        rest, self.passed = self.kafka.log[self.passed :], len(self.kafka.log)
        return rest

    def hurry(self) -> None:
        """Nothing is slow here."""

    def keep_warm(self) -> None:
        """Nothing grows cold here."""

    def close(self) -> None:
        """Nothing is open here."""

    def reopen(self, start: int) -> None:
        """Follow again."""
        self.passed = len(self.kafka.log)

    # The publisher
    committed, limit_s = 0, 60.0

    def fence(self) -> None:
        """Be the only one."""
        self.kafka.holder = self

    def go_on(self, end: int) -> None:
        """Have one log, which everybody reads."""

    def begin(self) -> int:
        """Have no number."""
        return 0

    def commit(self, result: Result, order_record: bytes) -> None:
        """Append."""
        if self.kafka.holder is not self:
            raise Fenced("another one leads")
        record = OrderRecord.model_validate_json(order_record)
        self.kafka.log.append(record)
        self.kafka.outputs[record.sequence] = [output.value for output in result.outputs]
        self.committed = 2 * len(self.kafka.log)

    def renewed(self) -> "Site":
        """Be new."""
        return self

    # The supervisor
    def report(self, state: EngineState, in_sync: bool, progress: EngineProgress) -> None:
        """Hear it."""
        self.state, self.progress, self.in_sync = state, progress, in_sync

    def lead(self) -> None:
        """The order log says so."""
        self.role = Role.ACTIVE

    def is_set(self) -> bool:
        """Want no proof."""
        return False

    def clear(self) -> None:
        """Want no proof."""

    # The scheduler
    def due(self) -> bool:
        """Keep nothing."""
        return False

    def news(self) -> bool:
        """Have none."""
        return False

    def facts(self) -> SnapshotFacts:
        """Have none."""
        return SnapshotFacts()

    def pin(self, meta: SnapshotMeta, take: object, waits: object) -> None:
        """Keep it."""
        self.pinned.append(meta)

    def _play(self) -> None:
        if not self.steps:
            raise Stopped
        self.steps.pop(0)()

    def ask(self, since: int | None) -> str:
        """Note it."""
        self.asked.append(since)
        return ""

    def engine(
        self,
        start: SnapshotMeta | None = None,
        *,
        shadow: bool = False,
        begin: int = 0,
        forced: int | None = None,
    ) -> Engine:
        """Make the engine."""
        if start:
            self.passed = next(
                at + 1 for at, one in enumerate(self.kafka.log) if one.sequence == start.sequence
            )
            self.taken = start.inputs[TOPIC].next
        else:
            self.passed = begin
        mock = cast("Any", self)
        return Engine(
            name=self.name,
            project=cast("Project", SimpleNamespace(name=self.model)),
            plan=PLAN,
            job=self,
            log=mock,
            inputs=mock,
            publisher=self,
            control=mock,
            scheduler=mock,
            topic_ids={},
            start=start,
            tail=self.kafka.log[-1] if self.kafka.log else None,
            ask_for_shadow=self.ask if shadow else None,
            forced=forced,
        )


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Kafka:
    """Kafka, with models that are called by a letter."""
    monkeypatch.setattr(module, "model_digest", lambda project: project.name)
    monkeypatch.setattr(module, "_HEIR_S", 0.0)
    return Kafka()


def live(
    site: Site, ends: type[Exception] = Stopped, start: SnapshotMeta | None = None, **options: Any
) -> None:
    """Live one life, to its end."""
    with pytest.raises(ends):
        site.engine(start, **options).run()


def lead(kafka: Kafka, site: Site, *rows: int, **options: Any) -> Site:
    """Take over and commit each of these rows by itself."""
    site.role = Role.ACTIVE
    site.steps = [lambda row=row: kafka.rows.append(row) for row in rows]  # type: ignore[misc]
    live(site, **options)
    return site


def meta(kafka: Kafka, site: Site, sequence: int, since: int = 0) -> SnapshotMeta:
    """A snapshot behind an order record."""
    taken = max((r.end for one in kafka.log[:sequence] for r in one.inputs), default=0)
    return SnapshotMeta(
        sequence=sequence,
        epoch=kafka.log[sequence - 1].epoch,
        clock=kafka.log[sequence - 1].clock,
        model=site.model,
        order_log=2 * sequence,
        inputs={TOPIC: Cursor(taken, taken)},
        topics={},
        counts=Counts(),
        since=since,
    )


def request(action: str, model: str, **fields: Any) -> ModelRequest:
    return ModelRequest(action=ModelAction(action), model=model, **fields)


def foreign(kafka: Kafka, model: str) -> None:
    """Append what an espha without switches wrote when its model was changed: an empty batch."""
    last = kafka.log[-1]
    commit(kafka, last, sequence=last.sequence + 1, model=model, epoch=last.epoch + 1)


def change(kafka: Kafka) -> None:
    """A leads three rows, B runs beside it for two more, then the log goes over to B."""
    first = Site(kafka, "A", "engine-0")
    first.role = Role.ACTIVE

    def rows(*values: int) -> list[Callable[[], None]]:
        return [lambda row=value: kafka.rows.append(row) for value in values]  # type: ignore[misc]

    def ask(what: ModelRequest) -> Callable[[], None]:
        return lambda: setattr(first, "model_request", what)

    first.steps = [
        *rows(1, 2, 3),
        ask(request("shadow", "B")),
        *rows(10, 20),
        ask(request("switch", "B", heir="engine-2")),
    ]
    live(first, Switched)
    assert first.pinned[-1].sequence == kafka.log[-1].sequence
    assert (first.state, first.in_sync) == (EngineState.LEAVING, False)


def test_one_record_of_another_model_throws_no_state_away(kafka: Kafka) -> None:
    """It did: the next batch of the first model began with empty state, and nobody was told."""
    lead(kafka, Site(kafka, "A", "engine-0"), 1, 2, 3)
    foreign(kafka, "B")
    again = Site(kafka, "A", "engine-1")
    again.states = {kafka.log[-2].sequence: 6}
    again.role = Role.ACTIVE
    live(again, Switched, meta(kafka, again, kafka.log[-2].sequence))
    assert again.states[kafka.log[-1].sequence] == 6
    assert kafka.log[-1].model == "B", "it does not lead: the log is of another model"


def test_a_standby_of_another_model_is_not_in_sync(kafka: Kafka) -> None:
    """It was, and could lead, without having seen a row."""
    lead(kafka, Site(kafka, "A", "engine-0"), 1, 2)
    other = Site(kafka, "B", "engine-2")
    live(other, shadow=True, begin=len(kafka.log))
    assert (other.state, other.in_sync) == (EngineState.REPLAYING, False)


def test_a_model_runs_in_the_shadow_from_where_the_log_says_so(kafka: Kafka) -> None:
    change(kafka)
    first = next(one for one in kafka.log if one.shadow)
    assert first.shadow and (first.shadow.model, first.shadow.since) == ("B", first.sequence)
    assert first.shadow.cursors == ((TOPIC, 3),)
    marked = [one for one in kafka.log if one.shadow]
    assert all(one.shadow and not one.shadow.cursors for one in marked[1:])
    assert [one.switch for one in kafka.log[:-1]] == [""] * (len(kafka.log) - 1)
    assert (kafka.log[-1].switch, kafka.log[-1].heir) == ("B", "engine-2")
    assert (kafka.log[-1].format, kafka.log[-2].format) == (SWITCH_FORMAT, PLAIN_FORMAT)


@pytest.mark.parametrize("begin", [0, 4])
def test_behind_the_switch_the_next_model_goes_on_with_what_it_saw(
    kafka: Kafka, begin: int
) -> None:
    """From the log's beginning, or from where the shadow begins, it is the same."""
    change(kafka)
    second = Site(kafka, "B", "engine-2", factor=100)
    second.role = Role.ACTIVE
    second.steps = [lambda: kafka.rows.append(5)]
    live(second, begin=begin)
    assert kafka.outputs[kafka.log[-1].sequence] == [b"3500"]
    since = next(one.sequence for one in kafka.log if one.shadow)
    assert (kafka.log[-1].model, kafka.log[-1].since) == ("B", since)


def test_a_model_that_has_begun_goes_on_behind_the_input_of_the_one_before(kafka: Kafka) -> None:
    """Though no order record since has named that topic: the record at which it began says it."""
    first = Site(kafka, "A", "engine-0")
    first.role = Role.ACTIVE
    first.steps = [
        *(lambda row=row: kafka.rows.append(row) for row in (1, 2, 3)),
        lambda: setattr(first, "model_request", request("shadow", "B")),
        lambda: setattr(first, "model_request", request("switch", "B", heir="engine-2")),
    ]
    live(first, Switched)
    second = Site(kafka, "B", "engine-2")
    second.role = Role.ACTIVE
    second.steps = [lambda: kafka.rows.append(5)]
    live(second, begin=next(at for at, one in enumerate(kafka.log) if one.shadow))
    assert kafka.outputs[kafka.log[-1].sequence] == [b"5"]


def test_the_log_does_not_go_over_to_a_model_that_nobody_runs(kafka: Kafka) -> None:
    """It would begin with empty state, and nobody has asked for that."""
    first = Site(kafka, "A", "engine-0")
    first.role = Role.ACTIVE
    switch = request("switch", "B", heir="engine-2")
    first.steps = [
        lambda: kafka.rows.append(1),
        lambda: setattr(first, "model_request", switch),
        lambda: kafka.rows.append(2),
    ]
    live(first)
    assert {one.next_model for one in kafka.log} == {"A"}
    assert kafka.outputs[kafka.log[-1].sequence] == [b"3"]


def test_one_in_the_shadow_leads_when_it_is_named(kafka: Kafka) -> None:
    lead(kafka, Site(kafka, "A", "engine-0"), 1)
    other = Site(kafka, "B", "engine-2")
    seen: list[tuple[EngineState, bool]] = []
    last = kafka.log[-1]

    def mark() -> None:
        sequence = kafka.log[-1].sequence + 1
        shadow = {"model": "B", "since": sequence, "offset": 0, "cursors": [[TOPIC, 1]]}
        commit(kafka, last, sequence=sequence, shadow=shadow)

    def switch() -> None:
        seen.append((other.state, other.in_sync))
        shadow = {"model": "B", "since": last.sequence + 1}
        commit(
            kafka,
            last,
            sequence=last.sequence + 2,
            shadow=shadow,
            switch="B",
            heir="engine-2",
            format=SWITCH_FORMAT,
        )

    other.steps = [mark, switch, lambda: None]
    live(other, shadow=True, begin=len(kafka.log))
    assert seen == [(EngineState.SHADOW, False)]
    assert (other.state, other.in_sync) == (EngineState.ACTIVE, True)
    assert kafka.log[-1].engine == "engine-2"


def commit(kafka: Kafka, like: OrderRecord, **fields: Any) -> None:
    """Append a record without input."""
    told = {**like.model_dump(), "inputs": (), "records": None, "outputs": 0}
    digest = Result([], 0).digest()
    kafka.log.append(OrderRecord.model_validate({**told, "digest": digest, **fields}))


def test_who_lets_the_next_model_lead_keeps_its_place_for_the_heirs_first_commit(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next one in the queue would be elected, and might shut the heir out."""
    monkeypatch.setattr(module, "_HEIR_S", LIMIT_S)
    first, seen = Site(kafka, "A", "engine-0"), list[EngineState]()
    first.role = Role.ACTIVE

    def lead() -> None:
        seen.append(first.state)
        last = kafka.log[-1]
        commit(kafka, last, sequence=last.sequence + 1, epoch=last.epoch + 1, switch="", heir="")

    switch = request("switch", "B", heir="engine-2", blind=True)
    first.steps = [lambda: setattr(first, "model_request", switch), lambda: None, lead]
    live(first, Switched)
    assert seen == [EngineState.ACTIVE]
    assert first.state is EngineState.LEAVING


def test_who_is_elected_behind_the_switch_does_not_shut_the_heir_out(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It knows it as soon as it has read the record, though not processed it."""
    lead(kafka, Site(kafka, "A", "engine-0"), 1)
    other = Site(kafka, "A", "engine-1")
    heir = Site(kafka, "B", "engine-2")
    last = kafka.log[-1]
    run = other.run

    def elected(batches: list[Batch], transaction: int = 0) -> list[Result]:
        if kafka.log[-1].switch:
            other.role = Role.ACTIVE
            other.wake()
        return run(batches, transaction)

    monkeypatch.setattr(other, "run", elected)

    def switch() -> None:
        kafka.holder = heir
        commit(kafka, last, sequence=last.sequence + 1, switch="B", heir="engine-2")

    other.steps = [switch]
    live(other, Switched)
    assert kafka.holder is heir


def test_a_standby_of_the_old_model_leaves_at_the_switch(kafka: Kafka) -> None:
    """Two models never stand in one election; its state is kept for a roll-back."""
    change(kafka)
    other = Site(kafka, "A", "engine-1")
    live(other, Switched)
    assert (other.state, other.in_sync) == (EngineState.LEAVING, False)
    assert [one.sequence for one in other.pinned] == [kafka.log[-1].sequence]


def test_an_elected_engine_of_the_old_model_commits_nothing_behind_the_switch(
    kafka: Kafka,
) -> None:
    """It was elected before it had read that, and reads it when it has fenced."""
    change(kafka)
    records, last = len(kafka.log), kafka.log.pop()
    other = Site(kafka, "A", "engine-1")

    def elect() -> None:
        kafka.log.append(last)
        other.role = Role.ACTIVE

    other.steps = [elect]
    live(other, Switched)
    assert kafka.holder is other
    assert len(kafka.log) == records


def test_a_roll_back_is_as_if_the_old_model_had_never_left(kafka: Kafka) -> None:
    """It goes on from its snapshot at the switch, with the input that was named since."""
    change(kafka)
    position = kafka.log[-1].sequence
    second = Site(kafka, "B", "engine-2", factor=100)
    second.role = Role.ACTIVE

    def ask(what: ModelRequest) -> Callable[[], None]:
        return lambda: setattr(second, "model_request", what)

    old = Site(kafka, "A", "engine-0")
    old.states = {position: 36}
    second.steps = [
        lambda: kafka.rows.append(5),
        lambda: live(old, start=meta(kafka, old, position), shadow=True),
        ask(request("shadow", "A", since=0)),
        lambda: kafka.rows.append(6),
        ask(request("switch", "A", heir="engine-0")),
    ]
    live(second, Switched)
    assert (old.asked, old.state) == ([0], EngineState.REPLAYING)
    back = Site(kafka, "A", "engine-0")
    back.states, back.role = {position: 36}, Role.ACTIVE
    back.steps = [lambda: kafka.rows.append(7)]
    live(back, start=meta(kafka, back, position))
    assert kafka.outputs[kafka.log[-1].sequence] == [b"%d" % sum(kafka.rows)] == [b"54"]
    assert kafka.log[-1].since == 0
    models = [one.model for one in kafka.log]
    assert sum(one != two for one, two in pairwise(models)) == 2


def test_a_shadow_survives_a_failover(kafka: Kafka) -> None:
    first = Site(kafka, "A", "engine-0")
    first.role = Role.ACTIVE
    first.steps = [lambda: setattr(first, "model_request", request("shadow", "B"))]
    live(first)
    lead(kafka, Site(kafka, "A", "engine-1"), 5)
    shadows = [one.shadow for one in kafka.log if one.engine == "engine-1"]
    assert all(one and one.model == "B" for one in shadows)
    assert len({one.since for one in shadows if one}) == 1


def test_an_ended_shadow_is_run_no_longer(kafka: Kafka) -> None:
    lead(kafka, Site(kafka, "A", "engine-0"), 1)
    other, last = Site(kafka, "B", "engine-2"), kafka.log[-1]
    sequence = last.sequence + 1
    other.steps = [
        lambda: commit(kafka, last, sequence=sequence, shadow={"model": "B", "since": sequence}),
        lambda: commit(kafka, last, sequence=sequence + 1),
    ]
    live(other, ShadowError, shadow=True, begin=len(kafka.log))
    assert other.state is EngineState.SHADOW


def test_one_whose_state_began_elsewhere_is_not_that_shadow(kafka: Kafka) -> None:
    """It would stand for something else than the other replicas of its model."""
    lead(kafka, Site(kafka, "A", "engine-0"), 1)
    other, last = Site(kafka, "B", "engine-2"), kafka.log[-1]
    other.states = {last.sequence: 1}
    other.steps = [
        lambda: commit(kafka, last, sequence=last.sequence + 1, shadow={"model": "B", "since": 1})
    ]
    live(other, ShadowError, meta(kafka, other, last.sequence, since=77), shadow=True)


def test_a_model_whose_beginning_is_gone_does_not_start_with_empty_state(kafka: Kafka) -> None:
    change(kafka)
    second = Site(kafka, "B", "engine-2")
    second.role = Role.ACTIVE
    second.steps = [lambda: kafka.rows.append(5)]
    live(second)
    live(Site(kafka, "B", "engine-1"), LogError, begin=len(kafka.log) - 3)


def test_a_model_is_forced_where_the_old_one_can_commit_nothing(kafka: Kafka) -> None:
    """One that fails whenever time passes could never let another one begin."""
    lead(kafka, Site(kafka, "A", "engine-0"), 1, 2)
    last = kafka.log[-1].sequence
    second = Site(kafka, "B", "engine-2", factor=100)
    second.role, second.steps = Role.ACTIVE, [lambda: kafka.rows.append(5)]
    live(second, forced=last)
    assert kafka.outputs[kafka.log[-1].sequence] == [b"500"]
    assert {one.since for one in kafka.log if one.model == "B"} == {last}
    standby = Site(kafka, "B", "engine-1", factor=100)
    live(standby)
    assert standby.states[kafka.log[-1].sequence] == 500
    live(Site(kafka, "A", "engine-0"), Switched)
    commit(kafka, kafka.log[-1], sequence=kafka.log[-1].sequence + 1, model="C", engine="e")
    live(Site(kafka, "B", "engine-1", factor=100), Switched, forced=last)


def test_a_model_is_forced_by_the_first_digits_of_its_digest_behind_one_record_only() -> None:
    digest = "0123456789abcdef" * 4
    assert is_forced(f"{digest}@7", digest, 7)
    assert is_forced(f"{digest[:12]}@7", digest, 7)
    assert not is_forced(f"{digest[:12]}@7", digest, 8)
    assert not is_forced("0123456789ac@7", digest, 7)
    assert not is_forced("", digest, 7)


def test_one_that_is_not_needed_goes_back_to_the_model_it_was_given() -> None:
    """All pods were made anew in the middle of a change, and all ran the model of the log."""
    now = [0.0]
    spared, at = Spared(True, lambda: now[0]), Position()
    spared.look(True, at)
    now[0] = 21.0
    spared.look(False, at)  # there is one behind it in the queue
    spared.look(True, at)
    now[0] = 40.0
    spared.look(True, at)
    now[0] = 42.0
    with pytest.raises(ShadowError):
        spared.look(True, at)


def test_a_shadow_ends_when_nobody_leads(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is needed for the model of the order log itself."""
    monkeypatch.setattr("espha.engine.shadow._NOBODY_S", -1.0)
    lead(kafka, Site(kafka, "A", "engine-0"), 1)
    live(Site(kafka, "B", "engine-2"), ShadowError, shadow=True, begin=len(kafka.log))


def skip_to(kafka: Kafka, offset: int) -> None:
    """Append what `espha skip` writes."""
    kafka.log.append(order_record(kafka.log[-1], [Resume(TOPIC, offset)]))


@pytest.mark.parametrize("begin", ["the log", "a snapshot"])
def test_all_go_on_where_the_log_says_so(kafka: Kafka, begin: str) -> None:
    """Rows 3 and 4 are left out, by who leads behind it and by who follows."""
    lead(kafka, Site(kafka, "A", "engine-0"), 1, 2)
    behind = kafka.log[-1].sequence
    kafka.rows += [100, 200]
    skip_to(kafka, 4)
    second = lead(kafka, Site(kafka, "A", "engine-1"), 5)
    assert kafka.outputs[kafka.log[-1].sequence] == [b"8"]
    assert kafka.log[-1].inputs == (Range(TOPIC, 4, 5),)
    third = Site(kafka, "A", "engine-2")
    third.states = {behind: 3}
    live(third, start=meta(kafka, third, behind) if begin == "a snapshot" else None)
    assert third.states[kafka.log[-1].sequence] == second.states[kafka.log[-1].sequence] == 8


def test_nobody_goes_back_where_the_log_says_so(kafka: Kafka) -> None:
    lead(kafka, Site(kafka, "A", "engine-0"), 1, 2)
    skip_to(kafka, 1)
    second = lead(kafka, Site(kafka, "A", "engine-1"), 5)
    assert second.states[kafka.log[-1].sequence] == 8


def test_one_whose_model_has_not_begun_leaves_it_out_too(kafka: Kafka) -> None:
    lead(kafka, Site(kafka, "A", "engine-0"), 1, 2)
    kafka.rows += [100, 200]
    skip_to(kafka, 4)
    other = Site(kafka, "B", "engine-2")
    live(other, shadow=True)
    assert other.taken == 4
