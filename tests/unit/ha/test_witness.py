"""When a standby's supervisor deposes an active engine that does not take its input."""

import pytest

from espha.ha import witness as module
from espha.ha.witness import Witness
from espha.protocol.states import EngineState, Step
from espha.protocol.status import ChildStatus
from support.status import engine_status


class Scene:
    """A standby, what it sees, and what the active one says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.witness = Witness(0.5, "127.0.0.1:1", lambda: self.now)
        self.leader = engine_status("a", EngineState.ACTIVE, sequence=9)
        self.says(Step.WAITING)
        self.answers = True
        monkeypatch.setattr(
            module, "ask_peer", lambda address: self.leader if self.answers else None
        )

    def says(self, step: Step, sequence: int = 9) -> None:
        """Let the active engine say that it is in a step, behind an order record."""
        assert self.leader.engine
        progress = self.leader.engine.model_copy(update={"sequence": sequence})
        self.leader = self.leader.model_copy(update={"step": step, "progress": progress})

    def sees(self, unordered_ms: int | None, epoch: int = 2, sequence: int = 9) -> None:
        """Let the standby report."""
        progress = engine_status("b", sequence=sequence, epoch=epoch).engine
        self.witness.heard(
            ChildStatus(
                state=EngineState.STANDBY,
                in_sync=True,
                unordered_ms=unordered_ms,
                progress=progress,
            )
        )

    def suspects(self) -> bool:
        """Look as often as it takes to be sure."""
        return [self.witness.suspects() for _ in range(3)][-1]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def test_who_waits_for_input_that_is_there_is_deposed(scene: Scene) -> None:
    scene.sees(400)
    assert not scene.suspects()
    scene.sees(600)
    assert not scene.witness.suspects(), "one look is none"
    assert scene.witness.suspects()


def test_who_computes_is_judged_by_its_own_supervisor(scene: Scene) -> None:
    scene.says(Step.RUNNING)
    scene.sees(20_000)
    assert not scene.suspects()


@pytest.mark.parametrize("step", [Step.COMMITTING, Step.FENCING, Step.READING_BACK])
def test_who_waits_for_kafka_has_more_time(scene: Scene, step: Step) -> None:
    scene.says(step)
    scene.sees(1900)
    assert not scene.suspects()
    scene.sees(2100)
    assert scene.suspects()


def test_who_does_not_answer_has_more_time_too(scene: Scene) -> None:
    scene.answers = False
    scene.sees(1900)
    assert not scene.suspects()
    scene.sees(2100)
    assert scene.suspects()


def test_who_is_ahead_of_the_witness_stays(scene: Scene) -> None:
    scene.says(Step.WAITING, sequence=10)
    scene.sees(5000)
    assert not scene.suspects()


def test_what_is_usual_is_no_fault(scene: Scene) -> None:
    scene.sees(400)
    scene.sees(None)
    scene.sees(1500)
    assert not scene.suspects()
    scene.sees(1700)
    assert scene.suspects()


def test_two_never_depose_each_other_in_turns(scene: Scene) -> None:
    limits = []
    for epoch in range(3, 8):
        waits = 0
        while not scene.suspects():
            waits += 100
            scene.sees(waits, epoch - 1)
        limits.append(waits)
        scene.witness.deposed()
        scene.now += 1
        scene.sees(100, epoch)
    assert limits[0] == 600
    assert limits == sorted(limits)
    assert limits[-1] > 10_000
    scene.sees(None, 7)
    scene.now += 60
    scene.sees(None, 7)
    scene.sees(600, 7)
    assert scene.suspects(), "input is taken again: it is forgotten"
