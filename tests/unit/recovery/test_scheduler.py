"""When snapshots are written, and what a volume that fails does to an engine: nothing."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from espha.protocol.status import SnapshotFacts
from espha.recovery.divergence import DivergenceLog
from espha.recovery.plain import NotPlainError
from espha.recovery.scheduler import SnapshotScheduler
from espha.recovery.store import SnapshotStore
from unit.recovery.samples import BODY, meta, snapshot, store


class Clock:
    """A clock that stands still until it is told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Return the time in seconds."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def scheduler(shelf_: SnapshotStore | None, clock: Callable[[], float]) -> SnapshotScheduler:
    return SnapshotScheduler(
        shelf_,
        DivergenceLog(shelf_),
        engine="engine-0",
        runtime="espha 1",
        interval_s=60,
        wanted=threading.Event(),
        clock=clock,
    )


def wait(kept: SnapshotScheduler) -> None:
    for thread in threading.enumerate():
        if thread.name == "snapshot":
            thread.join(10)
    assert kept.news()


def test_a_snapshot_is_written_at_each_interval(tmp_path: Path, clock: Clock) -> None:
    own = store(tmp_path)
    kept = scheduler(own, clock)
    assert kept.due(active=False)  # what was replayed from the whole log is worth keeping
    kept.keep(meta(5), lambda: (5, BODY))
    wait(kept)
    written = own.read(own.files()[0])
    assert (written.body, written.header.sequence, written.header.engine) == (BODY, 5, "engine-0")
    assert kept.facts().snapshot_sequence == 5
    assert not kept.due(active=False)
    clock.now += 47
    assert not kept.due(active=False)
    clock.now += 26
    assert kept.due(active=False)


def test_the_active_one_does_it_rarely(tmp_path: Path, clock: Clock) -> None:
    kept = scheduler(store(tmp_path), clock)
    kept.loaded(snapshot())
    clock.now += 479
    assert not kept.due(active=True)
    clock.now += 250
    assert kept.due(active=True)


def test_one_that_is_asked_for_comes_at_once(tmp_path: Path, clock: Clock) -> None:
    wanted = threading.Event()
    own = store(tmp_path)
    kept = SnapshotScheduler(
        own, DivergenceLog(own), engine="e", runtime="r", interval_s=60, wanted=wanted, clock=clock
    )
    kept.loaded(snapshot())
    assert not kept.due(active=True)
    wanted.set()
    assert kept.due(active=True)
    kept.keep(meta(5), lambda: (5, BODY))
    wait(kept)
    assert not wanted.is_set()
    assert not kept.due(active=False)


def test_the_same_state_is_not_written_twice(tmp_path: Path, clock: Clock) -> None:
    """But it is when reading has come further: an idle engine then needs less of the topics."""
    own = store(tmp_path)
    kept = scheduler(own, clock)
    kept.keep(meta(5), lambda: (5, BODY))
    wait(kept)

    def refuse() -> tuple[int, bytes]:
        raise AssertionError

    kept.keep(meta(5), refuse)
    assert kept.facts().snapshot_failures == 0
    assert kept.news()
    kept.keep(meta(5, order_log=12), lambda: (5, BODY))
    wait(kept)
    assert own.read(own.files()[0]).header.order_log == 12


def test_slow_snapshots_become_rare(tmp_path: Path, clock: Clock) -> None:
    kept = scheduler(store(tmp_path), clock)

    def slow() -> tuple[int, bytes]:
        clock.now += 6
        return 5, BODY

    kept.keep(meta(5), slow)
    wait(kept)
    clock.now += 293
    assert not kept.due(active=False)
    clock.now += 2
    assert kept.due(active=False)
    assert kept.facts().snapshot_ms == 6000


def test_without_a_volume_nothing_is_due(clock: Clock) -> None:
    kept = scheduler(None, clock)
    clock.now += 10_000
    assert not kept.due(active=False)
    assert kept.facts() == SnapshotFacts()


def not_plain() -> tuple[int, bytes]:
    raise NotPlainError("collections.deque is no plain data")


@pytest.mark.parametrize("take", [not_plain, lambda: (None, b""), lambda: (4, BODY)])
def test_state_that_cannot_be_taken_is_counted(
    tmp_path: Path, clock: Clock, take: Callable[[], tuple[int | None, bytes]]
) -> None:
    own = store(tmp_path)
    kept = scheduler(own, clock)
    kept.keep(meta(5), take)
    assert kept.facts().snapshot_failures == 1
    assert own.files() == []
    clock.now += 60
    assert not kept.due(active=False)


def test_a_volume_that_fails_is_counted_and_tried_again(tmp_path: Path, clock: Clock) -> None:
    """A folder that is gone stands for any volume that cannot be written to."""
    own = store(tmp_path / "volume")
    own.folder.rmdir()
    kept = scheduler(own, clock)
    kept.keep(meta(5), lambda: (5, BODY))
    wait(kept)
    assert kept.facts().snapshot_failures == 1
    clock.now += 479
    assert not kept.due(active=False)
    clock.now += 250
    assert kept.due(active=False)
    own.folder.mkdir()
    kept.keep(meta(5), lambda: (5, BODY))
    wait(kept)
    assert [own.read(path).header.sequence for path in own.files()] == [5]


def test_a_new_snapshot_ends_a_divergence(tmp_path: Path, clock: Clock) -> None:
    own = store(tmp_path)
    DivergenceLog(own).diverged(4, 0, "record 4")
    kept = scheduler(own, clock)
    assert DivergenceLog(own).facts().diverged == "record 4"
    kept.keep(meta(5), lambda: (5, BODY))
    wait(kept)
    assert DivergenceLog(own).last.before is None
    assert DivergenceLog(own).facts().diverged_total == 1


def test_the_loaded_one_is_shown(tmp_path: Path, clock: Clock) -> None:
    kept = scheduler(store(tmp_path), clock)
    kept.loaded(snapshot(8))
    facts = kept.facts()
    assert (facts.snapshot_loaded, facts.snapshot_sequence) == (8, 8)
    assert facts.snapshot_made == 1_700_000_000.5
