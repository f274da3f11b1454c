"""Digests of states: marked, found, told and compared, by a worker that is a plain list."""

import pytest

from espha.engine.agreement import Agreement, Difference
from espha.protocol.checkpoint import CheckpointBegun, CheckpointOrder, CheckpointReport
from espha.protocol.order import OrderRecord, StateDigest


class Worker:
    """Digests states when it is told to."""

    def __init__(self) -> None:
        self.reports: list[CheckpointReport] = []
        self.busy = False

    def order(self) -> CheckpointOrder | None:
        """Return a place for the report."""
        return None if self.busy else CheckpointOrder(report="r")

    @property
    def is_busy(self) -> bool:
        """Whether another digest is under way."""
        return self.busy

    def begun(self, answer: CheckpointBegun | None) -> None:
        """Take the answer."""

    def finished(self) -> list[CheckpointReport]:
        """Return what there is."""
        reports, self.reports = self.reports, []
        return reports


class World:
    """A replica with its worker, and a clock."""

    def __init__(self) -> None:
        self.now, self.worker = 1000.0, Worker()
        self.agreement = Agreement(self.worker, lambda: self.now)

    def find(self, sequence: int, digest: str, took_ms: int = 1) -> None:
        """Have the worker find a digest."""
        self.worker.reports.append(
            CheckpointReport(sequence=sequence, state=digest, took_ms=took_ms)
        )


def record(sequence: int, digest: str) -> OrderRecord:
    return OrderRecord(
        sequence=sequence + 3,
        inputs=(),
        clock=1,
        outputs=0,
        digest="",
        model="",
        engine="engine-1",
        epoch=1,
        runtime="",
        state=StateDigest(sequence, digest),
    )


@pytest.mark.parametrize("log_first", [True, False])
def test_a_state_that_differs_is_found_whoever_is_first(log_first: bool) -> None:
    world = World()
    for step in (log_first, not log_first):
        assert world.agreement.difference() is None
        if step:
            world.agreement.heard(record(7, "there"))
        else:
            world.find(7, "here")
    assert world.agreement.difference() == Difference(7, "here", "there", "engine-1")
    assert world.agreement.difference() is None
    assert world.agreement.last == StateDigest(7, "here")


def test_states_that_agree_and_digests_that_are_missing_are_no_difference() -> None:
    world = World()
    world.find(7, "same")
    world.find(9, "only here")
    for sequence, digest in ((7, "same"), (8, "only there")):
        world.agreement.heard(record(sequence, digest))
    assert world.agreement.difference() is None


def test_a_snapshot_that_says_something_else_than_the_log_is_found() -> None:
    world = World()
    world.agreement.know(7, "of a peer")
    world.agreement.heard(record(7, "of the active engine"))
    difference = world.agreement.difference()
    assert difference is not None
    assert difference.sequence == 7


def test_a_digest_is_told_once_and_only_the_newest() -> None:
    world = World()
    world.find(7, "a")
    world.find(9, "b")
    assert world.agreement.told() == StateDigest(9, "b")
    assert world.agreement.told() is None


def test_marks_come_as_often_as_they_are_worth_it() -> None:
    """One a minute; less often where a fork or the digest takes long."""
    world = World()
    assert not world.agreement.due()
    world.now += 61
    assert world.agreement.due()
    world.agreement.order()
    assert not world.agreement.due()
    world.agreement.begun(CheckpointBegun(sequence=1, pause_ms=100))
    world.now += 99
    assert not world.agreement.due()
    world.now += 2
    assert world.agreement.due()
    world.find(1, "a", took_ms=30_000)
    world.agreement.told()
    world.agreement.order()
    world.now += 299
    assert not world.agreement.due()


def test_what_nobody_ever_compares_does_not_pile_up() -> None:
    world = World()
    for sequence in range(100):
        world.find(sequence, "x")
        world.agreement.difference()
        world.agreement.heard(record(1000 + sequence, "y"))
    assert len(world.agreement._here) == len(world.agreement._there) == 16
