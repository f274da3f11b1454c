"""What an engine does with the snapshots of earlier lives."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from espha.connectors.topics import topic_plan
from espha.kafka.reader import LogError, Offsets
from espha.pipeline.job import BatchJob
from espha.protocol.settings import Settings
from espha.protocol.sizes import LEAST_BYTES
from espha.reader import read_project
from espha.recovery.candidates import Requirements
from espha.recovery.healing import NoStateError
from espha.recovery.plain import NotPlainError
from espha.recovery.restore import Recovery, requirements
from espha.recovery.store import DOUBTED, check
from support.models import source, xml
from unit.recovery.samples import REQUIREMENTS, damage, store


class Job:
    """Restores what it is told to."""

    def __init__(self, refused: dict[int, Exception]) -> None:
        self.refused, self.held = refused, 0

    def restore(self, path: Path, offset: int, sequence: int) -> None:
        """Hold a state, or refuse it."""
        if sequence in self.refused:
            raise self.refused[sequence]
        self.held = sequence


def recovery(folder: Path) -> Recovery:
    return Recovery(Settings(bootstrap="none:1", name="e", snapshots=str(folder)))


def test_the_next_one_is_tried_when_a_state_is_refused(tmp_path: Path) -> None:
    store(tmp_path, 3, 6, 9)
    job, mine = Job({9: NotPlainError("KeyError: 'q/w'")}), recovery(tmp_path)
    begun, _ = mine.restore(cast("BatchJob", job), lambda: REQUIREMENTS)
    assert begun is not None
    assert (begun.header.sequence, job.held) == (6, 6)
    assert "9 of engine-1: KeyError: 'q/w'" in mine.passed_over()


def test_one_that_ends_spark_is_not_tried_twice(tmp_path: Path) -> None:
    store(tmp_path, 3, 6)
    job = Job({6: RuntimeError("the JVM is gone")})
    with pytest.raises(RuntimeError, match="JVM"):
        recovery(tmp_path).restore(cast("BatchJob", job), lambda: REQUIREMENTS)
    begun, _ = recovery(tmp_path).restore(cast("BatchJob", job), lambda: REQUIREMENTS)
    assert begun is not None
    assert begun.header.sequence == 3


TRIMMED = REQUIREMENTS._replace(first={"p.I": 7, "p.M": 5})


def test_what_ends_spark_is_tried_again_where_the_log_is_cut(tmp_path: Path) -> None:
    """Too little memory for a while must not cost the state."""
    store(tmp_path, 3, 6)
    poor = Job({3: RuntimeError("the JVM is gone"), 6: RuntimeError("the JVM is gone")})
    lives = [lived(tmp_path, poor, TRIMMED) for _ in range(8)]
    assert lives == [-6, -3, None, -6, None, -3, None, -6]
    assert lived(tmp_path, Job({}), TRIMMED) is None
    assert lived(tmp_path, Job({}), TRIMMED) == 3


def lived(folder: Path, job: Job, wanted: Requirements) -> int | None:
    """Return what a life begins with; negative: what ends it; None: a replay that fails."""
    mine = recovery(folder)
    try:
        begun, _ = mine.restore(cast("BatchJob", job), lambda: wanted)
    except RuntimeError:
        assert mine.store is not None
        return -check(mine.store.last_resort([DOUBTED])[-1]).header.sequence
    if begun is None:
        mine.replay_failed()
    return begun.header.sequence if begun else None


def test_what_ends_spark_is_tried_again_where_inputs_are_cut(tmp_path: Path) -> None:
    """The order log is whole, and cannot be replayed all the same."""
    store(tmp_path, 6)
    cut = REQUIREMENTS._replace(first={"p.I": 7, "p.M": 0})
    poor = Job({6: RuntimeError("the JVM is gone")})
    assert [lived(tmp_path, poor, cut) for _ in range(3)] == [-6, None, -6]
    assert [lived(tmp_path, Job({}), cut) for _ in range(2)] == [None, 6]


def test_a_model_that_began_behind_the_cut_is_replayed(tmp_path: Path) -> None:
    """Nothing is tried again and again where the log can rebuild the state."""
    store(tmp_path, 6)
    poor = Job({6: RuntimeError("the JVM is gone")})
    assert lived(tmp_path, poor, TRIMMED) == -6
    for _ in range(3):
        assert recovery(tmp_path).restore(cast("BatchJob", poor), lambda: TRIMMED)[0] is None


def test_what_this_espha_cannot_read_is_there_for_the_one_before(tmp_path: Path) -> None:
    """After an upgrade and a roll-back, on a log that no longer reaches back."""
    store(tmp_path, 3, 6)
    newer = Job({number: NotPlainError("KeyError: 'q/w'") for number in (3, 6)})
    assert [lived(tmp_path, newer, TRIMMED) for _ in range(4)] == [None] * 4
    assert lived(tmp_path, Job({}), TRIMMED) is not None


def test_a_broker_that_hides_the_end_of_the_log_costs_no_snapshot(tmp_path: Path) -> None:
    """It is cut off, and takes itself for the leader; the log no longer reaches back."""
    store(tmp_path, 6)
    assert lived(tmp_path, Job({}), TRIMMED._replace(end={"p.M": 9, "p.I": 99})) is None
    assert lived(tmp_path, Job({}), TRIMMED._replace(end={"p.M": 12, "p.I": 99})) == 6


def test_a_whole_log_is_replayed_rather_than_what_ends_spark(tmp_path: Path) -> None:
    store(tmp_path, 6)
    poor = Job({6: RuntimeError("the JVM is gone")})
    with pytest.raises(RuntimeError, match="JVM"):
        recovery(tmp_path).restore(cast("BatchJob", poor), lambda: REQUIREMENTS)
    assert recovery(tmp_path).restore(cast("BatchJob", poor), lambda: REQUIREMENTS)[0] is None


def test_many_refusals_are_cut_short(tmp_path: Path) -> None:
    for path in store(tmp_path, *range(1, 7)).files():
        damage(path)
    mine = recovery(tmp_path)
    assert mine.restore(cast("BatchJob", Job({})), lambda: REQUIREMENTS)[0] is None
    assert mine.passed_over().count("checksum of its body") == 4
    assert mine.passed_over().endswith("; and 2 more")


def test_a_volume_that_cannot_be_used_is_no_volume(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    mine = recovery(tmp_path / "file" / "folder")
    assert mine.store is None
    assert mine.restore(cast("BatchJob", Job({})), lambda: REQUIREMENTS)[0] is None
    assert mine.passed_over() == ""


@pytest.mark.parametrize("small", ["p.M", "t.E"])
def test_a_topic_that_takes_too_little_is_refused(
    small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An order record, or what is left of a dead letter, might not fit."""
    project = read_project(xml(source("id*:int64"), ""))
    plan = replace(topic_plan(project, "t"), order_log="p.M", dead_letters="t.E")

    def setting(_: Offsets, topic: str, name: str) -> int:
        assert name == "max.message.bytes"
        return LEAST_BYTES - (topic == small)

    monkeypatch.setattr(Offsets, "_setting", setting)
    with pytest.raises(LogError, match=f"topic {small} takes messages of {LEAST_BYTES - 1} bytes"):
        requirements("none:1", project, plan)


@pytest.mark.parametrize("divided", ["p.M", "t.p.q.in.I"])
def test_a_topic_with_more_partitions_is_refused(
    divided: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Input on another one would be lost without a word."""
    text = xml(source("id*:int64"), "")
    project = read_project(text)
    plan = replace(topic_plan(project, "t"), order_log="p.M")

    def describe(_: Offsets, topic: str) -> SimpleNamespace:
        return SimpleNamespace(topic_id=topic, partitions=[0] * (3 if topic == divided else 1))

    monkeypatch.setattr(Offsets, "_description", describe)
    monkeypatch.setattr(Offsets, "_offset", lambda *_: 0)
    monkeypatch.setattr(Offsets, "_setting", lambda *_: LEAST_BYTES)
    with pytest.raises(LogError, match=rf"topic {divided} has 3 partitions.*make the topic anew"):
        requirements("none:1", project, plan)
    divided = ""
    assert requirements("none:1", project, plan).topics["p.M"] == "p.M"


def test_without_the_setting_there_is_no_volume() -> None:
    assert Recovery(Settings(bootstrap="none:1", name="e")).store is None


@pytest.fixture
def diverged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recovery:
    """The next life of an engine that began with its only snapshot, and has diverged since."""
    monkeypatch.setattr("espha.recovery.healing._NOBODY_S", 0.1)
    store(tmp_path, 6)
    recovery(tmp_path).divergences.diverged(8, 6, "order record 8: other outputs")
    return recovery(tmp_path)


def test_who_cannot_go_back_on_a_trimmed_log_takes_a_state_from_behind(diverged: Recovery) -> None:
    """Its own snapshots are set aside after a divergence, and what is before them is gone."""
    trimmed = REQUIREMENTS._replace(first={"p.I": 19, "p.M": 12})
    mine = diverged
    with pytest.raises(NoStateError, match="order record 8"):
        mine.restore(cast("BatchJob", Job({})), lambda: trimmed)
    assert (mine.divergences.last.behind, mine.divergences.last.at) == (8, 8)


def test_who_cannot_go_back_since_inputs_are_cut_takes_a_state_from_behind(
    tmp_path: Path, diverged: Recovery
) -> None:
    """The order log is whole, and retention has removed what its first records name."""
    assert diverged.restore(cast("BatchJob", Job({})), lambda: REQUIREMENTS)[0] is None
    diverged.replay_failed()
    assert recovery(tmp_path).divergences.last.behind == 8


def test_a_base_that_is_all_there_is_stays(tmp_path: Path) -> None:
    """Each life would set one more aside, and nothing would be left to begin with."""
    own = store(tmp_path, 2, 4)
    log = recovery(tmp_path).divergences
    for base in (4, 2, 2, 2):
        log.diverged(9, base, "order record 9: no memory", ("p.I", 26))
    assert [check(path).header.sequence for path in own.files()] == [2]
    assert recovery(tmp_path).divergences.last.broken == (("p.I", 26),)


def test_who_has_the_whole_log_goes_back_to_its_beginning(diverged: Recovery) -> None:
    assert diverged.restore(cast("BatchJob", Job({})), lambda: REQUIREMENTS)[0] is None
