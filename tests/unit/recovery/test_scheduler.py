"""When snapshots are written, and what a volume that fails does to an engine: nothing."""

import errno
import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from espha.durable import UNFINISHED
from espha.engine.checkpoints import Checkpoints
from espha.protocol.checkpoint import CheckpointBegun, CheckpointOrder, CheckpointReport
from espha.protocol.status import SnapshotFacts
from espha.recovery.divergence import DivergenceLog
from espha.recovery.scheduler import SnapshotScheduler
from espha.recovery.store import DOUBTED, Draft, Header, SnapshotStore, check
from support.processes import crowded, room_for
from unit.recovery.samples import BODY, body_of, meta, store, written


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


class Worker:
    """Takes what it is told to hold, at once; `ends` says how the forked process ends."""

    def __init__(self, sequence: int | None = 5, **ends: Any) -> None:
        self.sequence, self.ends = sequence, ends
        self.asked = 0

    def __call__(self, order: CheckpointOrder) -> CheckpointBegun:
        """Begin, and end."""
        self.asked += 1
        pipe = os.open(order.report, os.O_WRONLY)
        if "silent" not in self.ends:
            os.write(pipe, self.report(order).encode())
        os.close(pipe)
        return CheckpointBegun(sequence=self.sequence, pause_ms=7.2)

    def report(self, order: CheckpointOrder) -> CheckpointReport:
        """Write the state, and say so."""
        try:
            Path(order.path).write_bytes(bytes(order.offset) + BODY)
        except OSError as error:
            return CheckpointReport(error=str(error.strerror))
        made = CheckpointReport(
            state="s" * 64,
            length=len(BODY),
            checksum=hashlib.sha256(BODY).hexdigest(),
            took_ms=1234,
            memory=99,
        )
        return made.model_copy(update=self.ends)


def scheduler(
    shelf_: SnapshotStore | None,
    clock: Callable[[], float],
    chosen: Callable[[], bool] = lambda: True,
) -> SnapshotScheduler:
    return SnapshotScheduler(
        shelf_,
        DivergenceLog(shelf_),
        engine="engine-0",
        runtime="espha 1",
        interval_s=60,
        wanted=threading.Event(),
        chosen=chosen,
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
    assert kept.due()  # what was replayed from the whole log is worth keeping
    kept.keep(meta(5), Worker())
    wait(kept)
    made = check(own.files()[0])
    assert (body_of(made), made.header.sequence, made.header.engine) == (BODY, 5, "engine-0")
    assert made.header.state == "s" * 64
    facts = kept.facts()
    assert (facts.snapshot_sequence, facts.snapshot_ms, facts.snapshot_took_ms) == (5, 7, 1234)
    assert facts.snapshot_memory == 99
    assert not kept.due()
    clock.now += 47
    assert not kept.due()
    clock.now += 26
    assert kept.due()


def test_only_the_chosen_one_does_it_without_being_asked(tmp_path: Path, clock: Clock) -> None:
    """The last one in the queue: never the active engine while others stand."""
    chosen, wanted = [False], threading.Event()
    own = store(tmp_path)
    kept = SnapshotScheduler(
        own, DivergenceLog(own), engine="e", runtime="r", interval_s=60, wanted=wanted,
        chosen=lambda: chosen[0], clock=clock,
    )  # fmt: skip
    clock.now += 100_000
    assert not kept.due()
    wanted.set()
    assert kept.due()
    wanted.clear()
    chosen[0] = True
    assert kept.due()


def test_one_that_is_asked_for_comes_at_once(tmp_path: Path, clock: Clock) -> None:
    wanted = threading.Event()
    own = store(tmp_path)
    kept = SnapshotScheduler(
        own, DivergenceLog(own), engine="e", runtime="r", interval_s=60, wanted=wanted, clock=clock
    )
    kept.loaded(written(store(tmp_path / "other")))
    assert not kept.due()
    wanted.set()
    assert kept.due()
    kept.keep(meta(5), Worker())
    wait(kept)
    assert not wanted.is_set()
    assert not kept.due()


def test_the_same_state_is_not_written_twice(tmp_path: Path, clock: Clock) -> None:
    """But it is when reading has come further: an idle engine then needs less of the topics."""
    own, worker = store(tmp_path), Worker()
    kept = scheduler(own, clock)
    kept.keep(meta(5), worker)
    wait(kept)
    kept.keep(meta(5), worker)
    assert worker.asked == 1
    assert kept.facts().snapshot_failures == 0
    assert kept.news()
    kept.keep(meta(5, order_log=12), worker)
    wait(kept)
    assert check(own.files()[0]).header.order_log == 12


def test_slow_snapshots_become_rare(tmp_path: Path, clock: Clock) -> None:
    kept = scheduler(store(tmp_path), clock)
    kept.keep(meta(5), Worker(took_ms=30_000))
    wait(kept)
    clock.now += 299
    assert not kept.due()
    clock.now += 2
    assert kept.due()


def test_without_a_volume_nothing_is_due(clock: Clock) -> None:
    kept = scheduler(None, clock)
    clock.now += 10_000
    assert not kept.due()
    assert kept.facts() == SnapshotFacts()


def test_nothing_else_is_due_while_one_is_under_way(tmp_path: Path, clock: Clock) -> None:
    """And the engine's loop does not wait for it."""
    kept = scheduler(store(tmp_path), clock)
    pipes: list[int] = []

    def begin(order: CheckpointOrder) -> CheckpointBegun:
        pipes.append(os.open(order.report, os.O_WRONLY))
        return CheckpointBegun(sequence=5)

    kept.keep(meta(5), begin)
    clock.now += 100_000
    assert not kept.due()
    os.close(pipes[0])
    wait(kept)
    assert kept.facts().snapshot_failures == 1


def test_a_worker_that_is_busy_is_asked_again_soon(tmp_path: Path, clock: Clock) -> None:
    kept = scheduler(store(tmp_path), clock)
    kept.keep(meta(5), lambda order: CheckpointBegun(error="one is under way", busy=True))
    assert kept.facts().snapshot_failures == 0
    assert not kept.due()
    clock.now += 2
    assert kept.due()


def refuse(order: CheckpointOrder) -> CheckpointBegun:
    raise RuntimeError("Spark is gone")


@pytest.mark.parametrize(
    "take",
    [refuse, Worker(None), Worker(4), lambda order: CheckpointBegun(error="cannot fork")],
)
def test_state_that_cannot_be_taken_is_counted(
    tmp_path: Path, clock: Clock, take: Callable[[CheckpointOrder], CheckpointBegun]
) -> None:
    own = store(tmp_path)
    kept = scheduler(own, clock)
    kept.keep(meta(5), take)
    assert kept.facts().snapshot_failures == 1
    assert own.files() == []
    clock.now += 60
    assert not kept.due()


def full(*_: object) -> None:
    """Be a process without a free file descriptor."""
    raise OSError(errno.EMFILE, "Too many open files")


@pytest.mark.parametrize(
    ("what", "lacks"), [("threading.Thread.start", crowded), ("os.pipe", full)]
)
def test_a_machine_without_room_costs_a_snapshot_and_nothing_else(
    tmp_path: Path,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
    lacks: Callable[..., None],
) -> None:
    kept = scheduler(store(tmp_path), clock)
    with monkeypatch.context() as patched:
        patched.setattr(what, lacks)
        kept.keep(meta(5), Worker())
    assert kept.facts().snapshot_failures == 1
    clock.now += 100_000
    assert kept.due(), "it is tried again"
    kept.keep(meta(6), Worker(6))
    wait(kept)
    assert kept.facts().snapshot_sequence == 6


@pytest.mark.parametrize("call", ["scandir", "unlink", "open"])
def test_the_engine_itself_does_not_touch_the_volume(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """It may be read-only by now, or not answer at all."""
    own, mine = store(tmp_path), threading.current_thread()
    left = own.folder / f"snapshot-{3:020d}.espha{UNFINISHED}"
    left.write_bytes(b"state")
    really = getattr(os, call)

    def of_others(*args: Any, **named: Any) -> Any:
        if threading.current_thread() is mine and str(args[0]).startswith(str(own.folder)):
            raise OSError(errno.EROFS, "Read-only file system")
        return really(*args, **named)

    def begin(order: CheckpointOrder) -> CheckpointBegun:
        one = threading.Thread(target=Worker(), args=(order,))
        one.start()
        one.join()
        return CheckpointBegun(sequence=5)

    kept = scheduler(own, clock)
    with monkeypatch.context() as patched:
        patched.setattr(os, call, of_others)
        kept.keep(meta(5), begin)
        wait(kept)
    assert [path.name for path in own.folder.iterdir()] == [own.files()[0].name]


def test_what_was_written_for_nobody_is_removed(tmp_path: Path, clock: Clock) -> None:
    """The process that writes it may begin when nobody waits for it any more."""
    own, late = store(tmp_path), list[Path]()
    kept = scheduler(own, clock)

    def begin(order: CheckpointOrder) -> CheckpointBegun:
        late.append(Path(order.path))
        return CheckpointBegun(sequence=5)

    with room_for(0):
        kept.keep(meta(5), begin)
    late[0].write_bytes(b"state")
    clock.now += 100_000
    kept.keep(meta(6), Worker(6))
    wait(kept)
    assert [path.name for path in own.folder.iterdir()] == [own.files()[0].name]


@pytest.mark.parametrize(
    ("what", "lacks"), [("threading.Thread.start", crowded), ("os.pipe", full)]
)
def test_a_machine_without_room_costs_a_digest_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, what: str, lacks: Callable[..., None]
) -> None:
    """All engines come to the same record, which would end each of them."""
    checkpoints = Checkpoints()
    with monkeypatch.context() as patched:
        patched.setattr(what, lacks)
        checkpoints.order()
        checkpoints.begun(CheckpointBegun(sequence=5))
        assert checkpoints.finished() == []
    assert checkpoints.order() is not None


@pytest.mark.parametrize(
    "ends", [{"silent": True}, {"error": "no plain data"}, {"length": 1 << 40}]
)
def test_one_that_fails_on_its_way_is_counted(
    tmp_path: Path, clock: Clock, ends: dict[str, Any]
) -> None:
    """Also when the process that writes it is killed."""
    kept = scheduler(store(tmp_path), clock)
    kept.keep(meta(5), Worker(**ends))
    wait(kept)
    assert kept.facts().snapshot_failures == 1
    assert list(tmp_path.iterdir()) == []
    clock.now += 60
    assert not kept.due()


def test_a_volume_that_fails_is_counted_and_tried_again(tmp_path: Path, clock: Clock) -> None:
    """A folder that is gone stands for any volume that cannot be written to."""
    own = store(tmp_path / "volume")
    own.folder.rmdir()
    kept = scheduler(own, clock)
    kept.keep(meta(5), Worker())
    wait(kept)
    assert kept.facts().snapshot_failures == 1
    clock.now += 479
    assert not kept.due()
    clock.now += 250
    assert kept.due()
    own.folder.mkdir()
    kept.keep(meta(5), Worker())
    wait(kept)
    assert [check(path).header.sequence for path in own.files()] == [5]


def test_a_new_snapshot_ends_a_divergence(tmp_path: Path, clock: Clock) -> None:
    own = store(tmp_path)
    DivergenceLog(own).diverged(4, 0, "record 4")
    kept = scheduler(own, clock)
    assert DivergenceLog(own).facts().diverged == "record 4"
    kept.keep(meta(5), Worker())
    wait(kept)
    assert DivergenceLog(own).last.before is None
    assert DivergenceLog(own).facts().diverged_total == 1


def test_a_snapshot_of_a_state_that_is_wrong_is_not_finished(tmp_path: Path, clock: Clock) -> None:
    """Else the next life would begin with it, and not know that it has diverged."""
    own = store(tmp_path)
    log = DivergenceLog(own)
    kept = SnapshotScheduler(
        own, log, engine="e", runtime="r", interval_s=60, wanted=threading.Event(), clock=clock
    )
    worker, pipes = Worker(), list[int]()

    def begin(order: CheckpointOrder) -> CheckpointBegun:
        pipes.append(os.open(order.report, os.O_WRONLY))
        os.write(pipes[0], worker.report(order).encode())
        return CheckpointBegun(sequence=5)

    kept.keep(meta(5), begin)
    log.condemn()
    log.diverged(4, 0, "record 4")
    os.close(pipes[0])
    wait(kept)
    assert own.files() == []
    assert [path.name for path in tmp_path.iterdir()] == ["diverged.json"]
    assert (DivergenceLog(own).last.at, DivergenceLog(own).last.before) == (4, 4)


def test_one_that_is_nearly_finished_is_set_aside(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever notes a divergence waits for it."""
    own = store(tmp_path)
    log, begun, goes_on = DivergenceLog(own), threading.Event(), threading.Event()
    kept = SnapshotScheduler(
        own, log, engine="e", runtime="r", interval_s=60, wanted=threading.Event(), clock=clock
    )
    really = own.finish

    def finish(draft: Draft, header: Header) -> Path:
        begun.set()
        assert goes_on.wait(10)
        return really(draft, header)

    monkeypatch.setattr(own, "finish", finish)
    kept.keep(meta(5), Worker())
    assert begun.wait(10)
    threading.Timer(0.2, goes_on.set).start()
    log.condemn()
    log.diverged(4, 0, "record 4")
    wait(kept)
    assert own.files() == []
    assert DivergenceLog(own).last.at == 4


def test_one_that_is_not_on_the_volume_is_not_offered(tmp_path: Path, clock: Clock) -> None:
    """A peer's, for which the volume has no room: others would wait for it in vain."""
    kept = scheduler(store(tmp_path / "own"), clock)
    kept.loaded(written(store(tmp_path / "spare"), 8))
    facts = kept.facts()
    assert (facts.snapshot_loaded, facts.snapshot_sequence) == (8, None)


def test_one_that_is_in_doubt_is_not_offered(tmp_path: Path, clock: Clock) -> None:
    """Peers get what is in use only."""
    own = store(tmp_path, 8)
    own.set_aside(own.files()[0], DOUBTED)
    kept = scheduler(own, clock)
    kept.loaded(check(own.last_resort([DOUBTED])[0]))
    facts = kept.facts()
    assert (facts.snapshot_loaded, facts.snapshot_sequence) == (8, None)


def test_the_loaded_one_is_shown(tmp_path: Path, clock: Clock) -> None:
    own = store(tmp_path)
    kept = scheduler(own, clock)
    kept.loaded(written(own, 8))
    facts = kept.facts()
    assert (facts.snapshot_loaded, facts.snapshot_sequence) == (8, 8)
    assert facts.snapshot_made == 1_700_000_000.5
