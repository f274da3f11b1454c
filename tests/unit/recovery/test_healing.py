"""How an engine gets over an order record that it cannot recompute, with peers on real HTTP."""

import threading
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import cast

import pytest

from espha.ha.status_server import serve_status
from espha.pipeline.job import BatchJob
from espha.protocol.settings import Settings
from espha.protocol.states import EngineState
from espha.protocol.status import EngineProgress, ReplicaStatus
from espha.recovery import healing
from espha.recovery.candidates import Requirements
from espha.recovery.healing import NoStateError, have_snapshot_written, hope, sides, statuses
from espha.recovery.restore import Recovery
from espha.recovery.store import check
from support.processes import room_for
from unit.recovery.samples import REQUIREMENTS, store, written

SHOWN = "open sesame"


class Peer:
    """A replica's supervisor; its engine writes a snapshot of order record 12 when asked to."""

    def __init__(self, folder: Path, *kept: int, state: EngineState = EngineState.ACTIVE) -> None:
        self.store, self.state, self.kept = store(folder, *kept), state, max(kept, default=None)
        self.asked, self.writes, self.diverged = 0, True, ""
        self.diverged_at: int | None = None
        self.sequence = 12
        self.name = folder.name
        self.server: ThreadingHTTPServer = serve_status(
            ("127.0.0.1", 0), self.status, self.store, self.ask, token=SHOWN
        )
        self.address = f"127.0.0.1:{self.server.server_port}"

    def status(self) -> ReplicaStatus:
        """As its supervisor."""
        progress = EngineProgress(
            sequence=self.sequence,
            epoch=1,
            active="e",
            model="m",
            model_digest="m",
            replayed=0,
            snapshot_sequence=self.kept,
        )
        sync = self.state in (EngineState.ACTIVE, EngineState.STANDBY)
        return ReplicaStatus(
            name=self.name,
            state=self.state,
            in_sync=sync,
            progress=progress,
            diverged=self.diverged,
            diverged_at=self.diverged_at,
        )

    def ask(self) -> bool:
        """As its engine."""
        self.asked += 1
        if self.writes:
            written(self.store, 12)
            self.kept = 12
        return True


class Job:
    """Holds what it is told to."""

    held = 0

    def restore(self, path: Path, offset: int, sequence: int) -> None:
        """Hold a state."""
        self.held = sequence


Make = Callable[..., Peer]


@pytest.fixture
def peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Make peers; nobody waits long."""
    monkeypatch.setattr(healing, "_LOOK_S", 0.01)
    monkeypatch.setattr(healing, "_NOBODY_S", 0.2)
    monkeypatch.setattr(healing, "_STILL_S", 0.2)
    made: list[Peer] = []

    def make(*kept: int, state: EngineState = EngineState.ACTIVE) -> Peer:
        made.append(Peer(tmp_path / f"engine-{len(made) + 1}", *kept, state=state))
        return made[-1]

    yield make
    threads = [threading.Thread(target=one.server.shutdown) for one in made]
    for thread in threads:
        thread.start()
    for thread, one in zip(threads, made, strict=True):
        thread.join()
        one.server.server_close()


def recovery(folder: Path, *peers: Peer) -> Recovery:
    addresses = ",".join(one.address for one in peers)
    return Recovery(
        Settings(
            bootstrap="none:1", name="engine-0", snapshots=str(folder), peers=addresses,
            token=SHOWN,
        )
    )  # fmt: skip


def restored(mine: Recovery, ask: Callable[[], Requirements] = lambda: REQUIREMENTS) -> int:
    """Return the order record of the state that an engine begins with; 0: none."""
    begun, _ = mine.restore(cast("BatchJob", Job()), ask)
    return begun.header.sequence if begun else 0


def test_at_the_same_record_once_more_it_takes_the_active_engines_state(
    tmp_path: Path, peer: Make
) -> None:
    """First it goes back before the record; then that is no use any more."""
    active = peer(3)
    own = store(tmp_path / "own", 2, 4, 8)
    recovery(own.folder, active).divergences.diverged(9, 8, "order record 9: …")
    assert restored(recovery(own.folder, active)) == 4
    assert active.asked == 0
    recovery(own.folder, active).divergences.diverged(9, 4, "order record 9: …")
    mine = recovery(own.folder, active)
    assert restored(mine) == 12
    assert active.asked == 1
    assert not mine.forgives
    assert 12 in [check(path).header.sequence for path in own.files()]


def test_at_another_record_it_goes_back_further(tmp_path: Path, peer: Make) -> None:
    """What it went back to first was wrong already."""
    own = store(tmp_path / "own", 2, 4, 8)
    log = recovery(own.folder).divergences
    log.diverged(9, 8, "x")
    log.diverged(6, 4, "x")
    assert (log.last.before, log.last.behind, log.last.total) == (4, None, 2)
    assert restored(recovery(own.folder)) == 2


def diverge_twice(mine: Recovery) -> None:
    """Come to the same order record with the same end once more."""
    for _ in range(2):
        mine.divergences.diverged(9, 4, "x")


def test_a_snapshot_that_is_there_already_is_taken(tmp_path: Path, peer: Make) -> None:
    standby = peer(9, state=EngineState.STANDBY)
    mine = recovery(tmp_path / "own", standby)
    diverge_twice(mine)
    assert (restored(mine), standby.asked) == (9, 0)


def test_who_never_writes_one_is_not_waited_for_for_ever(tmp_path: Path, peer: Make) -> None:
    active = peer(3)
    active.writes = False
    mine = recovery(tmp_path / "own", active)
    diverge_twice(mine)
    with pytest.raises(NoStateError, match="does not write a snapshot from behind order record 9"):
        restored(mine)
    assert active.asked == 1


def test_who_goes_on_and_never_writes_one_is_not_waited_for_either(peer: Make) -> None:
    """The active engine commits all the time, and has no volume."""
    active, now = peer(3), 0.0
    active.writes = False

    def sleep(_: float) -> None:
        nonlocal now
        now, active.sequence = now + 10, active.sequence + 1
        assert now < 1000, "it is waited for without end"

    with pytest.raises(NoStateError, match="does not write a snapshot from behind order record 9"):
        have_snapshot_written(
            lambda: [active.address], "engine-0", SHOWN, 9, clock=lambda: now, sleep=sleep
        )


def test_while_others_may_still_lead_it_waits_for_them(
    tmp_path: Path, peer: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A standby is in sync: it has a state from behind the record, or will diverge as well."""
    monkeypatch.setattr("espha.recovery.divergence._LONGEST_PAUSE_S", 0.0)
    monkeypatch.setattr("espha.recovery.healing._NOBODY_S", 0.1)
    standby = peer(3, state=EngineState.STANDBY)
    for _ in range(6):
        mine = recovery(tmp_path / "own", standby)
        diverge_twice(mine)
        with pytest.raises(NoStateError, match="nobody is active"):
            restored(mine)


def test_where_nobody_can_recompute_the_log_it_is_left_at_that_after_some_lives(
    tmp_path: Path, peer: Make
) -> None:
    """All engines have diverged at a record: else the deployment would never come back."""
    other = peer(3, state=EngineState.DIVERGED)
    other.diverged_at = 9
    own = store(tmp_path / "own", 2, 4)
    lives = 0
    mine = recovery(own.folder, other)
    mine.divergences.diverged(9, 5, "order record 9: …")
    mine.divergences.diverged(9, 5, "order record 9: …")
    while not mine.forgives:
        mine = recovery(own.folder, other)
        lives += 1
        try:
            begun = restored(mine)
        except NoStateError:
            assert lives < 5
    assert (lives, begun) == (3, 4)


def test_the_only_engine_there_is_helps_itself_after_more_lives(tmp_path: Path, peer: Make) -> None:
    """Its own address is the only one that its peers' name stands for."""
    myself = peer(state=EngineState.DIVERGED)
    myself.name = "engine-0"
    own = store(tmp_path / "own", 2, 4)
    mine = recovery(own.folder, myself)
    mine.divergences.diverged(9, 5, "order record 9: …")
    mine.divergences.diverged(9, 5, "order record 9: …")
    lives = 0
    while not mine.forgives:
        mine = recovery(own.folder, myself)
        lives += 1
        try:
            begun = restored(mine)
        except NoStateError as error:
            assert (error.hopeless, error.unlikely) == (False, True)
            assert lives < 9
    assert (lives, begun) == (7, 4)


@pytest.mark.parametrize("silent", [False, True], ids=["begins anew", "does not answer"])
def test_who_may_still_have_a_state_is_waited_for_longer(
    tmp_path: Path, peer: Make, silent: bool
) -> None:
    """The active engine's machine was restarted, and two others differ from it."""
    other = peer(3, state=EngineState.DIVERGED)
    other.diverged_at = 9
    active = peer(12, state=EngineState.REPLAYING)
    if silent:
        active.server.server_close()
    own = store(tmp_path / "own", 2, 4)
    recovery(own.folder).divergences.diverged(9, 5, "order record 9: …")
    recovery(own.folder).divergences.diverged(9, 5, "order record 9: …")
    for _ in range(6):
        with pytest.raises(NoStateError) as error:
            restored(recovery(own.folder, other, active))
        assert (error.value.hopeless, error.value.unlikely) == (False, True)
    mine = recovery(own.folder, other, active)
    assert (restored(mine), mine.forgives) == (4, True)


def test_the_snapshot_that_was_asked_for_may_be_newer_than_topics_were(
    tmp_path: Path, peer: Make
) -> None:
    """The log goes on while it is written."""
    active = peer(3)
    mine = recovery(tmp_path / "own", active)
    diverge_twice(mine)
    ends = {0: {"p.M": 17, "p.I": 28}, 1: {"p.M": 24, "p.I": 36}}
    assert restored(mine, lambda: REQUIREMENTS._replace(end=ends[active.asked])) == 12


def test_a_state_from_behind_that_is_on_its_own_volume_is_asked_nobody_for(tmp_path: Path) -> None:
    """It has healed already, and has written none itself since."""
    own = store(tmp_path / "own", 2)
    diverge_twice(recovery(own.folder))
    written(own, 12)
    assert restored(recovery(own.folder)) == 12


def test_what_is_in_doubt_serves_where_nobody_can_recompute_the_log(
    tmp_path: Path, peer: Make
) -> None:
    """It was set aside after the divergence, and topics may not hold what is before it."""
    other = peer(state=EngineState.DIVERGED)
    other.diverged_at = 9
    own = store(tmp_path / "own", 6)
    recovery(own.folder).divergences.diverged(9, 6, "order record 9: …")
    recovery(own.folder).divergences.diverged(9, 0, "order record 9: …")
    assert own.files() == []
    for _ in range(2):
        with pytest.raises(NoStateError):
            restored(recovery(own.folder, other))
    mine = recovery(own.folder, other)
    assert (restored(mine), mine.forgives) == (6, True)


def test_whoever_does_not_answer_is_there_all_the_same(tmp_path: Path, peer: Make) -> None:
    myself, other = peer(), peer()
    myself.name = "engine-0"
    assert hope([myself.address], "engine-0", 9) == (False, True)
    assert hope([myself.address, "127.0.0.1:1"], "engine-0", 9) == (False, False)
    assert hope([myself.address, other.address], "engine-0", 9) == (False, False)
    assert hope([], "engine-0", 9) == (False, False), "nobody knows the name"


@pytest.mark.parametrize(("at", "hopeless"), [(None, False), (9, True), (20, False)])
def test_who_waits_for_a_later_record_has_been_at_this_one(
    peer: Make, at: int | None, hopeless: bool
) -> None:
    other = peer(state=EngineState.DIVERGED)
    other.diverged_at = at
    assert hope([other.address], "engine-0", 9) == (hopeless, True)


def test_who_holds_a_state_from_behind_waits_for_none(tmp_path: Path) -> None:
    own = store(tmp_path, 2)
    diverge_twice(recovery(own.folder))
    assert recovery(own.folder).divergences.facts().diverged_at == 9
    written(own, 12)
    assert recovery(own.folder).divergences.facts().diverged_at is None


def test_who_has_begun_waits_for_nobody(tmp_path: Path, peer: Make) -> None:
    """It has helped itself; others must not take it for one that waits when it restarts."""
    own = store(tmp_path / "own", 2)
    for _ in range(4):
        recovery(own.folder).divergences.diverged(9, 5, "order record 9: …")
    mine = recovery(own.folder)
    assert mine.divergences.facts().diverged_at == 9
    assert (restored(mine), mine.forgives) == (2, True)
    assert mine.divergences.facts().diverged_at is None
    mine.divergences.diverged(9, 2, "order record 9: …")
    assert mine.divergences.facts().diverged_at == 9


def test_who_finds_no_thread_to_ask_others_goes_on_without_their_word(peer: Make) -> None:
    """It has diverged, and has to note that first of all."""
    active = peer()
    with room_for(0):
        assert statuses([active.address], "engine-0") == {}
    assert list(statuses([active.address], "engine-0")) == [active.address]


def test_the_one_that_is_alone_is_named(tmp_path: Path, peer: Make) -> None:
    """More than one standby differs: the active engine may be wrong."""
    active, standby = peer(), peer(state=EngineState.DIVERGED)
    standby.diverged = "order record 9: 1 outputs"
    told = statuses([active.address, standby.address], "engine-0")
    assert sides(told, 9) == " (engine-1 agree with the log; engine-2 differ there as well)"
    assert sides(told, 8) == " (engine-1 agree with the log)"
    assert sides({}, 9) == ""


def test_others_are_not_asked_too_often(tmp_path: Path) -> None:
    """An engine may differ again and again, on a broken machine."""
    log = recovery(tmp_path / "own").divergences
    pauses = []
    for sequence in range(8):
        log.diverged(sequence, 0, "x")
        pauses.append(log.last.pause_s)
    assert pauses == [0, 0, 5, 10, 20, 40, 60, 60]
