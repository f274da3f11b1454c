"""What a supervisor makes of what its child says; tests/component has real ones."""

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from kazoo.client import KazooClient

from espha.ha import supervisor
from espha.ha.child import Child
from espha.ha.election import Membership
from espha.ha.family import Family
from espha.ha.kafka_probe import KafkaProbe
from espha.ha.spawner import Process, Spawner
from espha.ha.supervisor import Supervisor
from espha.ha.witness import Witness
from espha.protocol.settings import Settings
from espha.protocol.states import EngineState, KillReason, Role, Step
from espha.protocol.status import Activity, ChildStatus
from support.processes import crowded, descriptors, room_for
from support.servers import wait_until
from support.status import engine_status

LIMIT_S = 60.0


class Place:
    """A place in the queue, which remembers what becomes of it."""

    def __init__(self) -> None:
        self.leads = self.next_in_line = False
        self.told: list[str] = []

    def join(self, lifeline: str) -> None:
        """Remember it."""
        self.told.append("join")

    def fall_back(self) -> None:
        """Remember it."""
        self.told.append("fall back")

    def withdraw(self) -> None:
        """Remember it."""
        self.told.append("withdraw")

    def depose_leader(self) -> None:
        """Remember it."""
        self.told.append("depose")

    def close(self) -> None:
        """Remember it."""
        self.told.append("close")


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

    def killed(self, reason: KillReason, *, sound: bool) -> None:
        """Let the child be killed; `sound`: what serves the next one was not frozen."""
        told = self.place.told

        def kill() -> None:
            told.append("killed")
            self.supervisor._child_ended.set()

        child = SimpleNamespace(kill=kill)
        family = SimpleNamespace(kill_below=lambda: sound)
        spawner = SimpleNamespace(distrust=lambda: told.append("distrust"))
        self.supervisor._spawner = cast("Spawner", spawner)
        self.supervisor._kill(cast("Child", child), cast("Family", family), reason)


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
    assert scene.place.told == ["join", "fall back"]


def test_who_ends_keeps_its_place(scene: Scene) -> None:
    scene.says(EngineState.STANDBY)
    scene.says(EngineState.FAILED, in_sync=False)
    assert "fall back" not in scene.place.told


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


def test_who_leaves_for_another_model_stands_no_more(scene: Scene) -> None:
    """It writes its state for a while, and nobody waits for that."""
    scene.says(EngineState.STANDBY)
    scene.says(EngineState.LEAVING, in_sync=False)
    assert scene.place.told == ["join", "withdraw"]


@pytest.mark.parametrize(
    ("state", "leads", "silent_s", "reason"),
    [
        (EngineState.ACTIVE, False, 0.3, None),
        (EngineState.ACTIVE, False, 0.6, KillReason.SILENT),
        (EngineState.STANDBY, True, 0.6, KillReason.SILENT),
        (EngineState.STANDBY, False, 9.0, None),
        (EngineState.STANDBY, False, 11.0, KillReason.SILENT),
    ],
)
def test_a_child_that_others_wait_for_may_be_silent_for_less_long(
    scene: Scene, state: EngineState, leads: bool, silent_s: float, reason: KillReason | None
) -> None:
    """They wait for it since its election, and not since its first commit."""
    scene.says(state)
    scene.place.leads = leads
    for _ in range(round(silent_s * 10)):
        scene.supervisor._detector.tick()
    assert scene.supervisor._reason_to_kill() is reason


@pytest.mark.parametrize(
    ("reason", "step", "counts"),
    [
        (KillReason.SILENT, Step.RUNNING, True),
        (KillReason.STUCK, Step.RUNNING, True),
        (KillReason.STUCK, Step.COMMITTING, False),
        (KillReason.CUT_OFF, Step.RUNNING, False),
        (KillReason.STOPPED, Step.RUNNING, False),
    ],
)
def test_a_kill_for_which_no_record_is_to_blame_is_not_counted_as_a_death(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, reason: KillReason, step: Step, counts: bool
) -> None:
    """And what counts is noted before anybody else can see that the child has ended.

    Whoever takes over closes the session, and what is not written by then is lost with it. Behind
    that nothing is left that could be counted.
    """
    told, deaths = scene.place.told, scene.supervisor._deaths
    monkeypatch.setattr(deaths, "count", lambda *_: told.append("count"))
    monkeypatch.setattr(deaths, "forget", lambda: told.append("forget"))
    activity = Activity(step=step, turn=1, records=1)
    scene.supervisor._status = ChildStatus(
        state=EngineState.ACTIVE, in_sync=True, activity=activity
    )
    scene.supervisor._stands = True
    scene.killed(reason, sound=True)
    scene.supervisor._step_down()
    counted = ["count", "killed", "count", "close"]
    assert told == (counted if counts else ["killed", "forget", "close"])


@pytest.mark.parametrize(
    ("reason", "sound", "trusted"),
    [
        (KillReason.STOPPED, False, False),
        (KillReason.STUCK, False, False),
        (KillReason.STUCK, True, True),
        (KillReason.SILENT, False, True),
    ],
)
def test_a_jvm_that_was_frozen_serves_no_other_life(
    scene: Scene, reason: KillReason, sound: bool, trusted: bool
) -> None:
    scene.killed(reason, sound=sound)
    assert scene.place.told == ["killed", *([] if trusted else ["distrust"])]


def test_who_has_deposed_the_active_one_gives_the_next_one_time(scene: Scene) -> None:
    """Else two would depose each other in turns."""
    scene.supervisor._kafka = cast("KafkaProbe", SimpleNamespace(settled=True))
    told = scene.place.told
    witness = SimpleNamespace(suspects=lambda: True, deposed=lambda: told.append("deposed"))
    scene.supervisor._witness = cast("Witness", witness)
    scene.supervisor._bear_witness(cast("Membership", scene.place))
    assert told == ["depose", "deposed"]


class Unending:
    """A child that reports nothing, and that no signal ends: a disk holds it in the kernel."""

    pid = None

    def __init__(self) -> None:
        self.started = 0
        self.ended = threading.Event()

    def start(self, stdin: int, status: int) -> Process:
        """Start it."""
        self.started += 1
        return self

    def wait(self) -> None:
        """Wait until a test lets it go."""
        self.ended.wait()

    def code(self) -> int:
        """Say that it was killed."""
        return -9

    def kill(self) -> None:
        """Do nothing more than a kernel does."""

    def distrust(self) -> None:
        """It is alone."""

    def stop(self) -> None:
        """It is alone."""


class Leads:
    """A place in the queue that leads, until it is given up."""

    leads, last, next_in_line = True, False, False
    znode, state = "/espha/server-n_1", "CONNECTED"

    def __init__(self) -> None:
        self.client = KazooClient()
        self.closed = threading.Event()

    def close(self) -> None:
        """Give it up."""
        assert not self.closed.is_set(), "once"
        self.closed.set()


class HungLife:
    """A life whose child is killed for its silence, and does not end."""

    def __init__(self, folder: Path) -> None:
        self.child, self.place = Unending(), Leads()
        settings = Settings(
            bootstrap="none:1",
            name="b",
            http_host="127.0.0.1",
            snapshots=str(folder),
            failure_timeout_ms=200,
        )
        self.supervisor = Supervisor(settings, self.child)
        self.life = threading.Thread(target=self.supervisor._live, daemon=True)


@pytest.fixture
def hung(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HungLife]:
    made = HungLife(tmp_path)
    monkeypatch.setattr(supervisor, "Membership", lambda *_, **__: made.place)
    made.life.start()
    yield made
    made.child.ended.set()
    made.life.join(LIMIT_S)


def test_who_cannot_end_its_child_lets_another_one_lead(hung: HungLife) -> None:
    assert hung.place.closed.wait(LIMIT_S), "the place is given up"
    assert hung.life.is_alive(), "the child is waited for"
    assert hung.supervisor._heartbeats is not None
    assert hung.supervisor._heartbeats._closed.is_set(), "others take this one for dead"
    told = hung.supervisor.status()
    assert (told.role, told.state, told.in_sync) == (Role.STANDBY, EngineState.DOWN, False)
    assert told.kills == {KillReason.SILENT: 1}
    assert "does not end" in told.message


def test_beside_a_child_that_does_not_end_no_other_one_is_started(hung: HungLife) -> None:
    assert hung.place.closed.wait(LIMIT_S), "the place is given up"
    assert hung.life.is_alive()
    hung.child.ended.set()
    hung.life.join(LIMIT_S)
    assert not hung.life.is_alive(), "the next life may begin"
    assert hung.child.started == 1
    assert hung.supervisor.status().message == ""


def test_a_machine_without_room_costs_a_life_and_not_the_supervisor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the JVM would go with it, and on a crowded machine one supervisor after the other."""
    made = HungLife(tmp_path)
    full = iter([True])

    def place(*_: object, **__: object) -> Leads:
        if next(full, False):
            raise RuntimeError("can't start new thread")
        return made.place

    monkeypatch.setattr(supervisor, "Membership", place)
    made.supervisor._live()
    assert made.child.started == 0
    assert made.supervisor._heartbeats is not None
    assert made.supervisor._heartbeats._closed.is_set()
    assert "has no room" in made.supervisor.status().message
    made.life.start()
    assert made.place.closed.wait(LIMIT_S), "the next life has begun"
    assert made.child.started == 1
    made.child.ended.set()
    made.life.join(LIMIT_S)


def test_a_child_of_which_nobody_can_hear_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, killed = HungLife(tmp_path), threading.Event()
    monkeypatch.setattr(made.child, "kill", killed.set)

    made.supervisor._election = False
    with room_for(0):
        made.supervisor._live()
    assert made.child.started == 1
    assert killed.is_set()


@pytest.mark.parametrize("room", range(2))
def test_a_child_that_cannot_be_heard_leaves_no_descriptor(room: int) -> None:
    """Life follows upon life, until there is room again."""
    before = descriptors()

    def nothing(*_: object) -> None:
        """Hear it."""

    with room_for(room), pytest.raises(RuntimeError):
        Child(Unending(), nothing, lambda: None, nothing)
    wait_until(lambda: descriptors() <= before, LIMIT_S, "all are closed")


class Brokers:
    """What is known of three brokers, at each look."""

    silent_ms = (20, 40, 700)

    def __init__(self, *answers: tuple[bool, ...]) -> None:
        self._answers = list(answers)

    @property
    def answers(self) -> tuple[bool, ...]:
        """Which brokers answer now."""
        return self._answers.pop(0)


@pytest.mark.parametrize("still_silent", [True, False])
def test_a_broker_that_answers_while_others_are_asked_cuts_nobody_off(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, still_silent: bool
) -> None:
    """Those hear it as well by then, and never took its pause for more than one."""
    monkeypatch.setattr(supervisor, "others_reach_more", lambda *_: True)
    scene.place.leads = True
    brokers = Brokers((True, True, False), (True, True, not still_silent))
    scene.supervisor._kafka = cast("KafkaProbe", brokers)
    assert scene.supervisor._is_cut_off() is still_silent


def test_who_cannot_ask_others_about_a_broker_is_not_cut_off(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "others_reach_more", crowded)
    scene.place.leads = True
    scene.supervisor._kafka = cast("KafkaProbe", Brokers((True, True, False)))
    assert scene.supervisor._is_cut_off() is False


def test_who_cannot_ask_others_bears_no_witness(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.supervisor._kafka = cast("KafkaProbe", SimpleNamespace(settled=True))
    monkeypatch.setattr(scene.supervisor._witness, "suspects", crowded)
    scene.supervisor._bear_witness(cast("Membership", scene.place))
    assert scene.supervisor._depositions == 0
