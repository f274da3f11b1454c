"""How many order records a standby processes together, and for how long it waits for them."""

from typing import Any

import pytest

from espha.engine import gathering
from espha.engine.follower import Diverged
from espha.engine.forgiveness import Forgiveness
from espha.engine.gathering import Gathering
from espha.kafka.order_log import StrayError
from espha.protocol.order import OrderRecord, Range, StateDigest
from espha.recovery.store import check
from unit.engine.test_engine import Elected, Log, Make, make, meta, record, wait_for_snapshot

__all__ = ["make"]


@pytest.fixture
def practised(monkeypatch: pytest.MonkeyPatch) -> None:
    """A JVM has run jobs enough."""
    monkeypatch.setattr(gathering, "_PRACTICE", 0)


class Clock:
    """Seconds that a test moves on."""

    now = 0.0

    def __call__(self) -> float:
        """Return what time it is."""
        return self.now


def held(*records: OrderRecord, at: float = 0.0) -> Gathering:
    """Hold records from second 0 on; it is `at` now."""
    clock = Clock()
    made = Gathering(clock)
    for one in records:
        made.put([one])
    clock.now = at
    return made


@pytest.mark.usefixtures("practised")
def test_a_few_records_are_held_until_they_are_worth_a_job() -> None:
    assert not held().is_due
    assert not held(record(1)).is_due
    assert not held(record(1), record(2)).is_due
    assert held(record(1), record(2), record(3)).is_due


@pytest.mark.usefixtures("practised")
def test_no_record_waits_for_long() -> None:
    """The first one's time counts, though another one came just now."""
    assert not held(record(1), at=0.05).is_due
    waiting = held(record(1), at=0.1)
    waiting.put([])
    assert waiting.is_due
    waiting.put([record(2)])
    assert waiting.is_due
    assert [one.sequence for one in waiting.take()] == [1, 2]
    assert not waiting.is_due
    waiting.put([record(3)])
    assert not waiting.is_due


@pytest.mark.usefixtures("practised")
@pytest.mark.parametrize(
    "changes",
    [{"heir": "engine-0"}, {"records": 101}, {"inputs": (Range("t", 0, 60), Range("u", 0, 60))}],
)
def test_neither_an_heir_nor_a_large_batch_waits(changes: dict[str, Any]) -> None:
    assert held(record(1, **changes)).is_due


def test_a_young_engine_practises() -> None:
    young = held()
    for sequence in range(gathering._PRACTICE):
        young.put([record(sequence)])
        assert young.is_due
        young.take()
    young.put([record(0)])
    assert not young.is_due


class HeldLog(Log):
    """One that has more records for a standby that waits; nothing more comes then."""

    def __init__(self, known: list[OrderRecord], more: list[OrderRecord]) -> None:
        super().__init__(known)
        self.more = more

    def poll(self, timeout: float, limit: int) -> list[OrderRecord]:
        """Return what has come since; then end the test."""
        more, self.more = self.more, []
        self.reached += 2 * len(more)
        return more or super().poll(timeout, limit)


@pytest.mark.usefixtures("practised")
def test_a_snapshot_is_of_all_that_was_read(make: Make) -> None:
    """Else whoever begins with it would never read what was held."""
    engine, job, own = make(HeldLog([], [record(6, epoch=3), record(7, epoch=3)]), meta(5))
    engine._log.reached = 10  # type: ignore[misc]
    with pytest.raises(Elected):
        engine.run()
    wait_for_snapshot()
    assert job.held == 7
    header = check(own.files()[0]).header
    assert (header.sequence, header.order_log, header.counts.batches) == (7, 14, 7)


@pytest.mark.usefixtures("practised")
def test_who_takes_over_has_processed_what_was_held_before_the_fence_is_there(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, job, _ = make(HeldLog([record(1)], []))
    engine._follower.read_to(2)
    engine._follower._gathering.put([record(2)])
    seen: list[int | None] = []

    class Fence:
        """One that looks how far the engine is when it is waited for."""

        took_s = 0.0

        def wait(self) -> None:
            """Look."""
            seen.append(job.held)
            raise Elected

    monkeypatch.setattr(engine, "_begin_to_fence", Fence)
    monkeypatch.setattr(engine._log, "hurry", lambda: None, raising=False)
    with pytest.raises(Elected):
        engine._take_over()
    assert seen == [2]


@pytest.mark.usefixtures("practised")
def test_what_is_held_may_tell_of_another_state_before_a_take_over(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is nothing left to read then, and this engine's state would become the truth."""
    engine, _, _ = make(Log([]))
    monkeypatch.setattr(engine._log, "read_to", lambda end, limit: iter(()))
    engine._follower._agreement.know(1, "mine")
    engine._follower._gathering.put([record(1, state=StateDigest(1, "theirs"))])
    with pytest.raises(Diverged):
        engine._follower.read_to(0)


@pytest.mark.usefixtures("practised")
def test_a_log_is_read_on_behind_what_is_held(make: Make) -> None:
    engine, job, _ = make(Log([record(2), record(3)]))
    engine._follower._gathering.put([record(1)])
    engine._follower.read_to(6)
    assert job.sequences == [1, 2, 3]


@pytest.mark.usefixtures("practised")
def test_a_stray_record_comes_behind_what_is_held(make: Make) -> None:
    """Whoever meets it says which order record it is at."""
    engine, job, _ = make(Log([]), forgiveness=Forgiveness(True))
    engine._follower._gathering.put([record(1)])
    engine._follower._meet_stray(StrayError("offset 2"))
    assert job.sequences == [1]


@pytest.mark.usefixtures("practised")
def test_the_first_record_of_a_successor_is_not_held(make: Make) -> None:
    """Whoever still takes its predecessor for the leader would not lead at once at its end."""
    log = HeldLog([record(1)], [record(2), record(3, epoch=2, engine="engine-2")])
    engine, job, _ = make(log)
    engine._follower.read_to(2)
    engine._follower.poll(0)
    assert job.sequences == [1, 2, 3]
    assert engine._follower.is_settled


@pytest.mark.usefixtures("practised")
def test_input_of_records_that_are_held_is_not_said_to_wait(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = HeldLog([record(1)], [record(2)])
    engine, _, _ = make(log)
    looks: list[int] = []
    monkeypatch.setattr(engine._witness, "look", lambda: looks.append(engine._at.sequence))
    monkeypatch.setattr(engine._scheduler, "due", lambda: False)
    with pytest.raises(Elected):
        engine.run()
    assert looks == []
