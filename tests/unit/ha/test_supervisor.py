"""What a supervisor makes of what its child says; tests/component has real ones."""

from pathlib import Path
from typing import cast

import pytest

from espha.ha.election import Membership
from espha.ha.spawner import Spawner
from espha.ha.supervisor import Supervisor
from espha.protocol.settings import Settings
from espha.protocol.states import EngineState
from espha.protocol.status import ChildStatus
from support.status import engine_status


class Place:
    """A place in the queue, which remembers what becomes of it."""

    def __init__(self) -> None:
        self.leads = False
        self.told: list[str] = []

    def join(self, lifeline: str) -> None:
        """Remember it."""
        self.told.append("join")

    def requeue(self) -> None:
        """Remember it."""
        self.told.append("requeue")


class Scene:
    """A supervisor whose child says what a test says."""

    def __init__(self, folder: Path) -> None:
        settings = Settings(bootstrap="none:1", name="b", snapshots=str(folder))
        self.place, self.supervisor = Place(), Supervisor(settings, cast("Spawner", None))
        self.supervisor._member = cast("Membership", self.place)

    def says(self, state: EngineState, *, in_sync: bool = True, active: str = "") -> None:
        """Let the child say something."""
        told = engine_status("b", state, active=active)
        self.supervisor._heard(ChildStatus(state=state, in_sync=in_sync, progress=told.progress))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_who_falls_behind_goes_to_the_end_of_the_queue(scene: Scene) -> None:
    """Others are further, and would take over sooner."""
    scene.says(EngineState.REPLAYING, in_sync=False)
    scene.says(EngineState.STANDBY)
    assert scene.place.told == ["join"]
    scene.says(EngineState.REPLAYING, in_sync=False)
    scene.says(EngineState.REPLAYING, in_sync=False)
    assert scene.place.told == ["join", "requeue"]


def test_who_leads_or_ends_keeps_its_place(scene: Scene) -> None:
    scene.says(EngineState.STANDBY)
    scene.says(EngineState.FAILED, in_sync=False)
    scene.says(EngineState.STANDBY)
    scene.place.leads = True
    scene.says(EngineState.REPLAYING, in_sync=False)
    assert "requeue" not in scene.place.told


@pytest.mark.parametrize(
    ("dead", "succeeds"), [(["a"], True), (["c"], False), (["c", "a"], True), ([], False)]
)
def test_one_leads_at_once_only_where_the_logs_leader_is_among_the_dead(
    scene: Scene, dead: list[str], succeeds: bool
) -> None:
    """Another one may have taken over, and no connection to it has been made yet."""
    scene.says(EngineState.STANDBY, active="a")
    assert scene.supervisor._succeeds(dead) is succeeds


def test_who_knows_of_no_leader_may_lead_at_once(scene: Scene) -> None:
    scene.says(EngineState.STANDBY)
    assert scene.supervisor._succeeds(["a"])
    scene.says(EngineState.STANDBY, in_sync=False)
    assert not scene.supervisor._succeeds(["a"])
    scene.says(EngineState.REPLAYING)
    assert not scene.supervisor._succeeds(["a"])
