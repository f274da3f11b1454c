"""Engines that die on a record: the record is set aside, and all others are processed, once."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espha.engine.agreement import Agreement
from espha.engine.batch_size import BatchSize
from espha.engine.checkpoints import Checkpoints
from espha.engine.clock import LogClock
from espha.engine.inputs import Inputs
from espha.engine.leader import Leader
from espha.engine.position import Position
from espha.engine.quarantine import Quarantine
from espha.kafka.writer import Fenced, TooLarge, WriterFailed
from espha.pipeline.job import Batch, BrokenRecordError, Input, Result
from espha.pipeline.stream import Summed
from espha.protocol.activity import Doing
from espha.protocol.checkpoint import CheckpointBegun, CheckpointOrder
from espha.protocol.deaths import Deaths, UnderWay, UnderWayNote, first_death
from espha.protocol.order import OrderRecord, Range

pytestmark = pytest.mark.usefixtures("dead_hold_nothing")

TOPIC = "t.I"


class Died(Exception):  # noqa: N818 - it names what has happened
    """The process was killed."""


class Site:
    """What outlives engines: input, log, ZooKeeper, and the note on the volume."""

    deaths: Deaths | None = None
    limit_s = 60.0
    clock: Callable[[], LogClock] = LogClock
    now = begun = 0.0
    """What time it is, and when the last transaction has begun."""

    def __init__(self, rows: int, folder: Path) -> None:
        self.rows = [Input(TOPIC, place, b"x") for place in range(rows)]
        self.log: list[OrderRecord] = []
        self.batches: list[Batch] = []
        self.lives = 0
        self.kills: dict[int, Callable[[Batch], Exception | None]] = {}
        self.note = UnderWayNote(folder / "note")
        self.taken = 0

    # The inputs
    def take(self, limit: int, timeout: float) -> tuple[list[Range], list[Input]]:
        """Take rows."""
        found = self.rows[self.taken : self.taken + limit]
        if not found:
            return [], []
        self.taken += len(found)
        return [Range(TOPIC, found[0].offset, self.taken)], found

    def next_offsets(self) -> Mapping[str, int]:
        """Say where the rows go on."""
        return {TOPIC: self.taken}

    # The publisher
    def begin(self) -> int:
        """Have no number."""
        self.begun = self.now
        return 0

    def commit(self, result: Result, order_record: bytes) -> None:
        """Append to the log, unless that comes too late."""
        if self.now - self.begun > self.limit_s:
            raise Fenced("the brokers have ended the transaction")
        self.log.append(OrderRecord.model_validate_json(order_record))

    @property
    def processed(self) -> list[int]:
        """Offsets that the model has seen, in the order of the log."""
        skipped = {skip.offset for record in self.log for skip in record.skipped}
        ranges = [each for record in self.log for each in record.inputs]
        return [at for _, start, end in ranges for at in range(start, end) if at not in skipped]

    @property
    def skipped(self) -> list[int]:
        """Offsets that were set aside."""
        return [skip.offset for record in self.log for skip in record.skipped]


class Job:
    """A model that ends the process as a test wants."""

    waits_s = 0.0
    """So long the outputs of each record wait for Kafka."""

    def __init__(self, kill: Callable[[Batch], Exception | None], waited_s: float) -> None:
        self.kill, self.waited_s = kill, waited_s

    def run(self, batches: list[Batch], transaction: int = 0) -> list[Result]:
        """Run a batch; records that are set aside are not seen."""
        (batch,) = batches
        aside = {skip.offset for skip in batch.skipped}
        seen = [entry for entry in batch.inputs if entry.offset not in aside]
        error = self.kill(batch._replace(inputs=seen))
        if error:
            raise error
        waited_s = self.waited_s + self.waits_s * len(seen)
        return [Result([], 0, summed=Summed(0, 0, b"", "", None, waited_s))]

    def checkpoint(self, order: CheckpointOrder) -> CheckpointBegun:
        """Take none."""
        return CheckpointBegun(error="none here")


def live(site: Site, kill: Callable[[Batch], Exception | None], *, waited_s: float = 0.0) -> bool:
    """Live one life from a take-over on; say whether it processed all there is.

    Of the time that each batch takes it waits so long for Kafka.
    """
    site.lives += 1
    leader = elected(site, kill, waited_s)
    try:
        leader.take_over()
        for _ in range(10_000):
            if site.taken == len(site.rows):
                return True
            leader.step()
    except (BrokenRecordError, Died, WriterFailed):
        pass
    died = site.note.read()
    site.note.remove()
    if died:
        site.deaths = site.deaths.with_(died, "e") if site.deaths else first_death(died, "e")
    return False


def elected(site: Site, kill: Callable[[Batch], Exception | None], waited_s: float = 0.0) -> Leader:
    """Return an engine's leader that stands behind the log, and has to take over."""
    last = site.log[-1] if site.log else None
    at = Position(len(site.log), site.lives, last.clock if last else 0)
    site.taken = max((end for record in site.log for _, _, end in record.inputs), default=0)
    site.note.open()
    return Leader(
        Job(kill, waited_s),
        cast("Inputs", site),
        cast(Any, site),
        at,
        name="e",
        model="m",
        runtime="r",
        acknowledge=lambda record: None,
        quarantine=Quarantine(site, site.note, "id"),
        clock=site.clock(),
        agreement=Agreement(Checkpoints()),
        doing=Doing(),
        size=BatchSize(),
    )


def live_on(site: Site, kill: Callable[[Batch], Exception | None], lives: int = 60) -> None:
    while not live(site, kill):
        assert site.lives < lives, "this goes on for ever"


def unnamed(*offsets: int) -> Callable[[Batch], Exception | None]:
    """Kill the process at these records, without a word."""
    return lambda batch: Died() if {entry.offset for entry in batch.inputs} & set(offsets) else None


def named(*offsets: int) -> Callable[[Batch], Exception | None]:
    """Fail at these records, with their names."""

    def kill(batch: Batch) -> Exception | None:
        bad = [entry.offset for entry in batch.inputs if entry.offset in offsets]
        return BrokenRecordError(TOPIC, bad[0], "it fails") if bad else None

    return kill


@pytest.mark.parametrize("offset", [0, 2500, 4999])
def test_a_record_that_kills_without_a_word_costs_six_lives(tmp_path: Path, offset: int) -> None:
    """512 rows twice, 32, 2, one alone, and once more: the seventh life goes on."""
    site = Site(5000, tmp_path)
    live_on(site, unnamed(offset))
    assert site.lives <= 7, "fewer where the last batch was a short one"
    assert site.skipped == [offset]
    assert site.processed == [at for at in range(5000) if at != offset]


def test_a_record_that_the_kernel_names_costs_two_lives(tmp_path: Path) -> None:
    site = Site(5000, tmp_path)
    live_on(site, named(2500))
    assert site.lives == 3
    assert site.skipped == [2500]
    (skip,) = [skip for record in site.log for skip in record.skipped]
    assert skip.reason == "set aside after it had ended 2 engines: it fails"


def test_a_single_record_is_set_aside_when_it_was_careful_twice(tmp_path: Path) -> None:
    """Batches of one row are usual: two kills there say nothing yet."""
    site = Site(1, tmp_path)
    live_on(site, unnamed(0))
    assert site.lives == 5
    assert site.skipped == [0]


def test_what_has_come_meanwhile_is_not_tried_with_the_batch_that_ended_an_engine(
    tmp_path: Path,
) -> None:
    """Else a record among few would be looked for among all that a pause lets come together."""
    site = Site(9, tmp_path)
    assert not live(site, unnamed(3))
    site.rows += [Input(TOPIC, place, b"x") for place in range(9, 600)]
    live_on(site, unnamed(3))
    assert site.lives == 5, "9 twice, one alone twice; then it goes on"
    assert site.skipped == [3]


def test_behind_a_batch_that_was_tried_again_all_is_as_ever(tmp_path: Path) -> None:
    site = Site(9, tmp_path)
    assert not live(site, unnamed(3))
    site.rows += [Input(TOPIC, place, b"x") for place in range(9, 600)]
    live_on(site, lambda batch: None)
    assert [record.records for record in site.log] == [9, 512, 79]


def test_kills_of_healthy_engines_set_nothing_aside(tmp_path: Path) -> None:
    """Four in a row in the middle of batches behind the same order record."""
    site = Site(40, tmp_path)
    for _ in range(4):
        site.kills = {}
        begun = len(site.log)

        def kill(batch: Batch, begun: int = begun) -> Exception | None:
            return Died() if len(batch.inputs) > 0 and len(site.log) == begun else None

        live(site, kill)
    live_on(site, lambda batch: None)
    assert site.skipped == []
    assert site.processed == list(range(40))


def test_time_that_kills_is_laid_on_no_record(tmp_path: Path) -> None:
    """Every batch fails whose clock is newer than the log's: no record is to blame."""
    site = Site(100, tmp_path)

    def kill(batch: Batch) -> Exception | None:
        newest = site.log[-1].clock if site.log else 0
        return Died() if batch.clock > newest else None

    for _ in range(12):
        assert not live(site, kill)
    assert site.log == []
    assert site.deaths is not None
    assert (site.deaths.records, site.deaths.count) == (0, 12)
    live_on(site, lambda batch: None)
    assert site.processed == list(range(100))


class Ticking(LogClock):
    """One by which a second has passed at each look."""

    def next(self, last: int, since_ms: float) -> int:
        """Go on."""
        return last + 1000


def test_time_stands_still_where_records_are_tried_one_by_one(tmp_path: Path) -> None:
    """Else what a window does at its time would be laid on the record that came along."""
    site, seen = Site(40, tmp_path), list[tuple[int, int]]()
    site.clock = Ticking

    def kill(batch: Batch) -> Exception | None:
        under_way = site.note.read()
        if under_way and under_way.careful:
            seen.append((batch.clock, site.log[-1].clock))
        return unnamed(7)(batch)

    live_on(site, kill)
    assert seen
    assert all(clock == before for clock, before in seen)


def dead_at(site: Site, *, records: int) -> None:
    """Let two engines have died in the first batch, of so many records."""
    died = UnderWay(log="id", after=len(site.log), records=records, inputs=(Range(TOPIC, 0, 5),))
    site.deaths = first_death(died, "a").with_(died, "b")


def test_who_hands_over_where_engines_have_died_takes_no_input_along(tmp_path: Path) -> None:
    """It would be as large a batch as those that have ended them."""
    site = Site(40, tmp_path)
    leader = elected(site, lambda batch: None)
    leader.take_over()
    site.taken = 0
    dead_at(site, records=5)
    leader.hand_over("b")
    assert (site.log[-1].heir, site.log[-1].inputs) == ("b", ())


def test_who_takes_over_once_more_where_engines_have_died_lets_time_pass_first(
    tmp_path: Path,
) -> None:
    site = Site(40, tmp_path)
    dead_at(site, records=5)
    leader = elected(site, lambda batch: None)
    leader.take_over()
    leader.take_over()
    assert [record.inputs for record in site.log] == [(), ()]


def test_a_record_of_another_log_is_not_set_aside(tmp_path: Path) -> None:
    """Topics were made anew; the same offset is another record's."""
    site = Site(10, tmp_path)
    alone = UnderWay(log="old", after=3, records=1, inputs=(Range(TOPIC, 4, 5),), careful=True)
    site.deaths = first_death(alone, "a").with_(alone, "b")
    assert site.deaths.blamed[0].times == 2
    live_on(site, lambda batch: None)
    assert (site.skipped, site.processed) == ([], list(range(10)))


def test_what_kafka_does_is_no_records_fault(tmp_path: Path) -> None:
    site = Site(3, tmp_path)
    for _ in range(5):
        assert not live(site, lambda batch: WriterFailed("brokers are away"))
    assert site.deaths is None
    live_on(site, lambda batch: None)
    assert site.processed == [0, 1, 2]


def test_a_record_that_the_broker_does_not_take_is_set_aside(tmp_path: Path) -> None:
    site = Site(300, tmp_path)
    live_on(
        site,
        lambda batch: (
            TooLarge("too large") if any(entry.offset == 7 for entry in batch.inputs) else None
        ),
    )
    assert site.skipped == [7]
    assert site.lives == 6


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Site], None]:
    """Have engines go by the time of a site."""

    def with_time_of(site: Site) -> None:
        clock = SimpleNamespace(monotonic=lambda: site.now)
        monkeypatch.setattr("espha.engine.leader.time", clock)

    return with_time_of


def slow(site: Site, cost_s: float, **dear: float) -> Callable[[Batch], None]:
    """Let each record take so long; some by their offsets ("at_7") longer."""

    def work(batch: Batch) -> None:
        site.now += sum(dear.get(f"at_{entry.offset}", cost_s) for entry in batch.inputs)

    return work


@pytest.mark.parametrize(
    ("cost_s", "lives"), [(0.0001, 1), (0.012, 1), (0.1, 1), (0.2, 3), (1.5, 3), (10.0, 4)]
)
def test_a_backlog_of_heavy_records_is_processed(
    tmp_path: Path, timed: Callable[[Site], None], cost_s: float, lives: int
) -> None:
    """Brokers end a transaction after a minute; no record is to blame for that."""
    site = Site(5200, tmp_path)
    timed(site)
    live_on(site, slow(site, cost_s), lives=8)
    assert site.lives == lives
    assert site.skipped == []
    assert site.processed == list(range(5200))


def test_heavy_records_behind_light_ones_cost_lives_until_batches_are_small(
    tmp_path: Path, timed: Callable[[Site], None]
) -> None:
    """Nothing foretells them; the next engine begins with less, and learns what they cost."""
    site = Site(30_000, tmp_path)
    timed(site)
    heavy = {f"at_{at}": 0.1 for at in range(20_000, 30_000)}
    live_on(site, slow(site, 0.0001, **heavy), lives=8)
    assert site.lives == 3
    assert site.skipped == []
    assert site.processed == list(range(30_000))


def test_a_record_that_alone_takes_longer_than_a_transaction_is_set_aside(
    tmp_path: Path, timed: Callable[[Site], None]
) -> None:
    site = Site(300, tmp_path)
    timed(site)
    live_on(site, slow(site, 0.001, at_7=100.0))
    assert site.lives == 6
    (skip,) = [skip for record in site.log for skip in record.skipped]
    assert skip.offset == 7
    assert skip.reason == (
        "set aside after it had ended 2 engines: a batch of 1 records has computed for 100 s, and "
        "brokers end a transaction after 60 s"
    )


def test_waiting_for_kafka_is_no_records_fault(
    tmp_path: Path, timed: Callable[[Site], None]
) -> None:
    """The transaction is lost as well; but records have taken 10 s of that time."""
    site = Site(1, tmp_path)
    timed(site)
    for _ in range(6):
        assert not live(site, slow(site, 100.0), waited_s=90.0)
    assert site.deaths is not None
    assert (site.deaths.count, site.deaths.blamed) == (6, ())
    live_on(site, slow(site, 1.0))
    assert site.processed == [0]


def test_outputs_that_wait_for_long_come_in_smaller_batches(
    tmp_path: Path, timed: Callable[[Site], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of 512 records need 100 s, and every engine would begin with so many, for ever."""
    site = Site(2000, tmp_path)
    timed(site)
    monkeypatch.setattr(Job, "waits_s", 0.2)
    live_on(site, lambda batch: setattr(site, "now", site.now + 0.2 * len(batch.inputs)))
    assert site.lives == 3, "batches are small from then on"
    assert site.skipped == []
    assert site.processed == list(range(2000))


def test_who_dies_while_its_publisher_gets_ready_dies_of_no_record(tmp_path: Path) -> None:
    """It may have to fence first, and be killed for what Kafka does then."""
    site = Site(1, tmp_path)

    def killed() -> int:
        raise Died

    site.begin = killed  # type: ignore[method-assign]
    assert not live(site, lambda batch: None)
    assert site.deaths is None


@given(
    rows=st.integers(1, 400),
    bad=st.sets(st.integers(0, 399), max_size=4),
    silent=st.sets(st.integers(0, 399), max_size=4),
)
@settings(max_examples=60)
def test_all_others_are_processed_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, rows: int, bad: set[int], silent: set[int]
) -> None:
    site = Site(rows, tmp_path_factory.mktemp("note"))

    def kill(batch: Batch) -> Exception | None:
        return named(*bad)(batch) or unnamed(*silent)(batch)

    live_on(site, kill, lives=2 + 7 * len(bad | silent))
    poison = sorted((bad | silent) & set(range(rows)))
    assert site.skipped == poison
    assert site.processed == [at for at in range(rows) if at not in poison]
    assert [record.sequence for record in site.log] == list(range(1, len(site.log) + 1))


def test_a_note_outlives_its_engine(tmp_path: Path) -> None:
    """Also one that is longer than the one after it."""
    note = UnderWayNote(tmp_path / "deep" / "note")
    assert note.read() is None
    note.open()
    long = UnderWay(log="id", after=7, records=1, inputs=(Range("t" * 200, 1, 2),))
    note.write(long)
    assert UnderWayNote(tmp_path / "deep" / "note").read() == long
    short = UnderWay(log="id", after=8, records=0)
    note.write(short)
    assert note.read() == short
    note.clear()
    assert note.read() is None


def test_a_note_that_cannot_be_written_is_none() -> None:
    note = UnderWayNote(Path(os.devnull) / "note")
    note.open()
    note.write(UnderWay(log="id", after=8, records=0))
    assert note.read() is None


def test_a_report_that_comes_late_changes_nothing() -> None:
    """A supervisor that was killed with its engine counts when it is back."""
    now = first_death(UnderWay(log="id", after=9, records=5, inputs=(Range(TOPIC, 9, 14),)), "a")
    late = UnderWay(log="id", after=7, records=5, inputs=(Range(TOPIC, 1, 6),))
    assert now.with_(late, "b") is now
    anew = UnderWay(log="another", after=7, records=5, inputs=(Range(TOPIC, 1, 6),))
    assert now.with_(anew, "b").count == 1, "topics that were made anew begin anew"
    assert now.outranks(None)
    assert not now.outranks(now)
