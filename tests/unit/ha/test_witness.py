"""When a standby's supervisor deposes an active engine that does not take its input."""

import pytest

from espha.ha import witness as module
from espha.ha.witness import Witness
from espha.protocol.states import EngineState, Step
from espha.protocol.status import ChildStatus
from support.status import engine_status


class Scene:
    """A standby that is the next in line, what it sees, and what others say."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.witness = Witness(0.5, "127.0.0.1:1,127.0.0.1:2", lambda: self.now)
        self.others = {1: engine_status("a", EngineState.ACTIVE, active="a")}
        self.says(Step.WAITING)
        monkeypatch.setattr(module, "ask_peer", lambda address: self.others.get(int(address[-1])))
        self.waited_ms, self.epoch = 0, 2
        self.passes(2)

    def says(
        self,
        step: Step,
        sequence: int = 9,
        *,
        who: int = 1,
        name: str = "a",
        state: EngineState = EngineState.ACTIVE,
        step_s: float | None = None,
    ) -> None:
        """Let a replica say that it is in a step, behind an order record."""
        told = engine_status(name, state, sequence=sequence, active="a")
        self.others[who] = told.model_copy(update={"step": step, "step_s": step_s})

    def sees(self, unordered_ms: int | None) -> None:
        """Let the standby report."""
        self.witness.heard(
            ChildStatus(
                state=EngineState.STANDBY,
                in_sync=True,
                unordered_ms=unordered_ms,
                progress=engine_status("b", sequence=9, epoch=self.epoch, active="a").engine,
            )
        )

    def passes(self, seconds: float, *, asked: bool = True) -> None:
        """Let time pass in which all is in order."""
        self.waited_ms = 0
        for _ in range(round(seconds * 10)):
            self.now += 0.1
            self.sees(None)
            assert not (asked and self.witness.suspects())

    def waits(self, seconds: float, *, asked: bool = True) -> bool:
        """Let input wait on; return whether the active one is suspected meanwhile."""
        for _ in range(round(seconds * 10)):
            self.now += 0.1
            self.waited_ms += 100
            self.sees(self.waited_ms)
            if asked and self.witness.suspects():
                return True
        return False


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def test_who_waits_for_input_that_is_there_is_deposed(scene: Scene) -> None:
    assert not scene.waits(0.5)
    assert not scene.waits(0.1), "one look is none"
    assert scene.waits(0.1)


def test_who_computes_is_judged_by_its_own_supervisor(scene: Scene) -> None:
    scene.says(Step.RUNNING)
    assert not scene.waits(20)


@pytest.mark.parametrize("step", [Step.COMMITTING, Step.FENCING, Step.READING_BACK])
def test_who_waits_for_kafka_has_more_time(scene: Scene, step: Step) -> None:
    scene.says(step)
    assert not scene.waits(2)
    assert scene.waits(0.3)


def test_who_has_computed_for_long_has_that_time_to_commit(scene: Scene) -> None:
    """Input has waited for long by then; the commit has not lasted yet."""
    scene.says(Step.RUNNING)
    assert not scene.waits(10)
    scene.says(Step.COMMITTING, step_s=1.9)
    assert not scene.waits(1)
    scene.says(Step.COMMITTING, step_s=2.1)
    assert scene.waits(0.3)


def test_who_does_not_answer_has_more_time_too(scene: Scene) -> None:
    scene.others.clear()
    assert not scene.waits(2)
    assert scene.waits(0.3)


def test_who_has_answered_a_moment_ago_has_that_time_anew(scene: Scene) -> None:
    scene.says(Step.RUNNING)
    assert not scene.waits(10)
    scene.others.clear()
    assert not scene.waits(2)
    assert scene.waits(0.3)


def test_who_is_ahead_of_the_witness_stays(scene: Scene) -> None:
    scene.says(Step.WAITING, sequence=10)
    assert not scene.waits(5)


def test_what_is_usual_is_no_fault(scene: Scene) -> None:
    assert not scene.waits(0.4)
    scene.passes(0.1)
    assert not scene.waits(1.6)
    assert scene.waits(0.2)


def test_who_takes_over_for_long_leads_already(scene: Scene) -> None:
    """It is no active engine before its first commit, and input has waited since the failure."""
    scene.others.clear()
    assert not scene.waits(1.5)
    for step in (Step.FENCING, Step.READING_BACK, Step.RUNNING, Step.COMMITTING):
        scene.says(step, who=2, name="c", state=EngineState.STANDBY, step_s=1.9)
        assert not scene.waits(5)


def test_who_takes_over_counts_before_the_one_that_led(scene: Scene) -> None:
    scene.says(Step.RUNNING, who=2, name="c", state=EngineState.STANDBY)
    assert not scene.waits(20)


def test_who_hangs_in_its_take_over_is_deposed(scene: Scene) -> None:
    scene.says(Step.FENCING, who=2, name="c", state=EngineState.STANDBY, step_s=60)
    assert not scene.waits(2.5)
    assert scene.waits(0.5)


def test_who_was_frozen_in_its_take_over_is_no_leader(scene: Scene) -> None:
    scene.says(Step.RUNNING, 8, who=2, name="c", state=EngineState.STANDBY)
    assert scene.waits(0.7)


def test_a_follower_is_no_leader(scene: Scene) -> None:
    scene.says(Step.REPLAYING, who=2, name="c", state=EngineState.STANDBY)
    assert scene.waits(0.7)


def test_for_a_new_leader_the_time_begins_anew(scene: Scene) -> None:
    """Who becomes the next in line does not know how long the one before it stands there."""
    assert not scene.waits(5, asked=False)
    assert not scene.waits(0.5)
    assert scene.waits(0.2)


def test_for_an_heir_the_time_begins_anew(scene: Scene) -> None:
    scene.says(Step.RUNNING)
    assert not scene.waits(5)
    scene.says(Step.WAITING, who=2, name="c")
    del scene.others[1]
    assert not scene.waits(0.5)
    assert scene.waits(0.3)


def test_two_never_depose_each_other_in_turns(scene: Scene) -> None:
    limits = []
    for epoch in range(3, 8):
        scene.waited_ms = 0
        while not scene.waits(0.1):
            pass
        limits.append(scene.waited_ms)
        scene.witness.deposed()
        scene.epoch = epoch
    assert limits[0] == 700
    assert limits == sorted(limits)
    assert limits[-1] > 10_000
    scene.passes(60)
    assert scene.waits(0.7), "input is taken again: it is forgotten"
