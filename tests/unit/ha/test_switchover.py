"""What a supervisor answers when it is asked to hand over, and when it leaves its place."""

import threading
from typing import cast

import pytest
from kazoo.exceptions import ConnectionLoss

from espha.ha.child import Child
from espha.ha.election import Membership
from espha.ha.switchover import HandOver, switch_over
from espha.protocol.http import NoAnswerError
from espha.protocol.states import EngineState, Step, SwitchoverReason
from espha.protocol.status import ChildStatus, InputProgress, ReplicaStatus
from espha.protocol.switchover import SwitchoverAnswer
from support.processes import crowded, room_for
from support.servers import wait_until
from support.status import engine_status

ACTIVE = engine_status("a", EngineState.ACTIVE, epoch=3, active="a")


class Line:
    """The queue and the child, which only remember what they are told."""

    def __init__(self, *names: str) -> None:
        self.names, self.told = list(names), list[str]()
        self.broken = False
        self.leads = True

    def queue(self) -> list[str]:
        """Return who stands."""
        if self.broken:
            raise ConnectionLoss
        return self.names

    def call_for(self, name: str | None) -> None:
        """Remember a call."""
        self.told.append(f"call {name}")

    def requeue(self) -> None:
        """Remember it."""
        self.told.append("requeue")

    def make_standby(self, heir: str = "") -> None:
        """Remember it."""
        self.told.append(f"heir {heir}")

    def make_active(self) -> None:
        """Remember it."""
        self.told.append("active")


def hand_over(line: Line, wait_ms: int = 10_000, peers: str = "") -> HandOver:
    return HandOver("a", cast("Membership", line), cast("Child", line), wait_ms, peers)


def says(state: EngineState, epoch: int) -> ChildStatus:
    progress = engine_status("a", state, epoch=epoch).engine
    return ChildStatus(state=state, in_sync=True, progress=progress)


def wait_for(line: Line, *told: str) -> None:
    wait_until(lambda: line.told[2:] == list(told), 10, f"{told}")


@pytest.mark.parametrize(("to", "heir"), [(None, "b"), ("c", "c")])
def test_the_place_is_left_when_the_heir_leads(to: str | None, heir: str) -> None:
    line = Line("a", "b", "c")
    giving = hand_over(line)
    assert giving.ask(ACTIVE, to).code == 202
    giving.heard(says(EngineState.ACTIVE, 3))
    assert line.told == [f"call {to}", f"heir {heir}"]
    assert not giving._taken_over.is_set()
    giving.heard(says(EngineState.STANDBY, 3))
    giving.heard(says(EngineState.STANDBY, 3))
    assert line.told[2:] == []
    giving.heard(says(EngineState.STANDBY, 4))
    wait_for(line, "requeue")


def test_an_heir_that_does_not_come_is_forgotten() -> None:
    """It is dead, or behind: the old one goes on, in its old place, and can be asked again."""
    line = Line("a", "b")
    giving = hand_over(line, wait_ms=50)
    giving.ask(ACTIVE, None)
    giving.heard(says(EngineState.STANDBY, 3))
    wait_for(line, "active", "call None")
    wait_until(lambda: not giving._begun, 10, "it is over")
    assert giving.ask(ACTIVE, "b").code == 202


def test_zookeeper_is_not_needed_to_go_on() -> None:
    """Its quorum is lost in the middle of it: there is an active engine all the same."""
    line = Line("a", "b")
    giving = hand_over(line, wait_ms=50)
    giving.ask(ACTIVE, None)

    def lost(name: str | None) -> None:
        raise ConnectionLoss

    line.call_for = lost  # type: ignore[method-assign]
    giving.heard(says(EngineState.STANDBY, 3))
    wait_for(line, "active")


def test_who_goes_on_can_be_asked_again_though_zookeeper_does_not_answer() -> None:
    """Whoever asks it while it is connected to anew waits, and nobody knows for how long."""
    line, asked = Line("a", "b"), threading.Event()
    giving = hand_over(line, wait_ms=50)
    giving.ask(ACTIVE, None)

    def waits(name: str | None) -> None:
        if name is None:
            asked.set()
            threading.Event().wait()

    line.call_for = waits  # type: ignore[method-assign]
    giving.heard(says(EngineState.STANDBY, 3))
    assert asked.wait(10)
    assert giving.ask(ACTIVE, "b").reason is SwitchoverReason.BEGUN


def test_a_machine_without_room_for_a_thread_ends_no_switchover_half_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("espha.ha.switchover.addresses", crowded)
    line = Line("a", "b")
    giving = hand_over(line, wait_ms=50, peers="x")
    giving.ask(ACTIVE, None)
    giving.heard(says(EngineState.STANDBY, 3))
    wait_for(line, "active", "call None")
    wait_until(lambda: not giving._begun, 10, "it is over")


def test_who_finds_no_thread_to_wait_for_the_heir_tries_again() -> None:
    line = Line("a", "b")
    giving = hand_over(line, wait_ms=50)
    giving.ask(ACTIVE, None)
    with room_for(0):
        giving.heard(says(EngineState.STANDBY, 3))
    giving.heard(says(EngineState.STANDBY, 3))
    wait_for(line, "active", "call None")


def test_an_heir_of_whom_the_others_know_is_not_deposed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The old one has not read its first commit yet, but somebody has."""
    played = Supervisors(b=[engine_status("b", EngineState.ACTIVE, epoch=4, active="b")])
    monkeypatch.setattr("espha.ha.switchover.ask_status", played.ask_status)
    monkeypatch.setattr("espha.ha.switchover.addresses", lambda peers: peers.split(","))
    line = Line("a", "b")
    giving = hand_over(line, wait_ms=50, peers="x,b")
    giving.ask(ACTIVE, None)
    giving.heard(says(EngineState.STANDBY, 3))
    wait_for(line, "requeue")


FENCES = engine_status("b", EngineState.STANDBY, epoch=3).model_copy(update={"step": Step.FENCING})
FOLLOWS = engine_status("b", EngineState.STANDBY, epoch=3).model_copy(update={"step": Step.READING})
DOWN = engine_status("b", EngineState.DOWN, epoch=3)
LEADS = engine_status("b", EngineState.ACTIVE, epoch=4, active="b")


@pytest.mark.parametrize(
    ("heir", "end"),
    [
        ([FENCES, FENCES, LEADS], ["requeue"]),
        ([FENCES, FOLLOWS], ["active", "call None"]),
        ([FENCES, DOWN], ["active", "call None"]),
        ([FENCES], ["active", "call None"]),
    ],
    ids=["leads-later", "leaves-it", "dies", "never"],
)
def test_an_heir_that_is_at_it_gets_time(
    monkeypatch: pytest.MonkeyPatch, heir: list[ReplicaStatus], end: list[str]
) -> None:
    """Two that fence at once cost more than one that is slow, on a busy machine for example."""
    monkeypatch.setattr("espha.ha.switchover.ask_status", Supervisors(b=heir).ask_status)
    monkeypatch.setattr("espha.ha.switchover.addresses", lambda peers: peers.split(","))
    line = Line("a", "b")
    giving = hand_over(line, wait_ms=50, peers="b")
    giving.ask(ACTIVE, None)
    giving.heard(says(EngineState.STANDBY, 3))
    wait_for(line, *end)


class Leaving:
    """A replica that ends: its child says what the test says."""

    def __init__(
        self, line: Line, state: EngineState = EngineState.ACTIVE, peers: str = ""
    ) -> None:
        self.giving, self.ended = hand_over(line, wait_ms=50, peers=peers), threading.Event()
        self.state, self.gone = state, threading.Event()
        threading.Thread(target=self._leave, daemon=True).start()

    def _leave(self) -> None:
        self.giving.leave(self._status, self.ended, 60)
        self.gone.set()

    def _status(self) -> ReplicaStatus:
        return engine_status("a", self.state, epoch=3, active="a")

    def says(self, state: EngineState, epoch: int = 3) -> None:
        """Play a line of the child."""
        self.state = state
        self.giving.heard(says(state, epoch))

    def stays(self) -> bool:
        """Say whether it has still to wait."""
        return not self.gone.wait(0.2)


def told(line: Line, *expected: str) -> None:
    wait_until(lambda: line.told == list(expected), 10, f"{expected}")


def test_who_ends_hands_over_first() -> None:
    line = Line("a", "b", "c")
    leaving = Leaving(line)
    told(line, "call None", "heir b")
    assert leaving.stays()
    leaving.says(EngineState.STANDBY)
    leaving.says(EngineState.STANDBY, 4)
    assert leaving.gone.wait(10)
    told(line, "call None", "heir b", "requeue")


def test_who_ends_does_not_go_on_when_its_heir_does_not_come() -> None:
    line = Line("a", "b")
    leaving = Leaving(line)
    told(line, "call None", "heir b")
    leaving.says(EngineState.STANDBY)
    assert leaving.gone.wait(10)
    assert line.told == ["call None", "heir b"]


@pytest.mark.parametrize("names", [["a"], None], ids=["alone", "without ZooKeeper"])
def test_who_ends_without_an_heir_finishes_what_is_open(names: list[str] | None) -> None:
    line = Line(*(names or ["a", "b"]))
    line.broken = names is None
    leaving = Leaving(line)
    told(line, "heir ")
    assert leaving.stays()
    leaving.says(EngineState.STANDBY)
    assert leaving.gone.wait(10)


def test_who_ends_without_zookeeper_asks_the_others_who_is_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A drained node often takes its ZooKeeper server with it, and the connection is gone."""

    def stands(name: str, number: int, in_sync: bool = True) -> ReplicaStatus:
        znode = f"/engines/server-n_{number:010}"
        told = engine_status(name, EngineState.STANDBY, epoch=3, active="a")
        return told.model_copy(update={"znode": znode, "in_sync": in_sync})

    played = Supervisors(
        x=[engine_status("a", EngineState.ACTIVE, epoch=3, active="a")],
        b=[stands("b", 12)],
        slow=[stands("c", 9)],
        d=[stands("d", 7, in_sync=False)],
        e=[engine_status("e", EngineState.STANDBY, epoch=3, active="a")],
    )
    monkeypatch.setattr("espha.ha.switchover.ask_status", played.ask_status)
    monkeypatch.setattr("espha.ha.switchover.addresses", lambda peers: peers.split(","))
    line = Line("a", "b")
    line.broken = True
    leaving = Leaving(line, peers="x,b,slow,d,e,nobody")
    told(line, "heir c")
    leaving.says(EngineState.STANDBY)
    leaving.says(EngineState.STANDBY, 4)
    assert leaving.gone.wait(10)


def test_a_standby_ends_at_once() -> None:
    line = Line("b", "a")
    line.leads = False
    assert Leaving(line, EngineState.STANDBY).gone.wait(10)
    assert line.told == []


def test_who_ends_while_it_takes_over_does_so_first() -> None:
    """A transaction that its fence has begun would be left open."""
    line = Line("a", "b")
    leaving = Leaving(line, EngineState.STANDBY)
    assert leaving.stays()
    leaving.says(EngineState.ACTIVE)
    told(line, "call None", "heir b")
    leaving.says(EngineState.STANDBY)
    assert leaving.gone.wait(10)


def test_nobody_waits_for_a_child_that_has_died() -> None:
    leaving = Leaving(Line("a", "b"))
    leaving.ended.set()
    assert leaving.gone.wait(10)


def test_who_ends_in_a_switchover_does_not_begin_another_one() -> None:
    line = Line("a", "b", "c")
    leaving = Leaving(line, EngineState.STANDBY)
    leaving.giving.ask(ACTIVE, "c")
    leaving.says(EngineState.ACTIVE)
    assert leaving.stays()
    leaving.says(EngineState.STANDBY)
    leaving.says(EngineState.STANDBY, 4)
    line.leads = False
    assert leaving.gone.wait(10)
    assert line.told == ["call c", "heir c", "requeue"]


def test_who_ends_in_a_switchover_whose_heir_does_not_come_does_not_wait_for_it() -> None:
    """Nobody would lead meanwhile: the end of its session elects the next one."""
    line = Line("a", "b")
    leaving = Leaving(line, EngineState.STANDBY)
    leaving.giving.ask(ACTIVE, "b")
    leaving.says(EngineState.ACTIVE)
    leaving.says(EngineState.STANDBY)
    assert line.leads
    assert leaving.gone.wait(10)


def test_who_asks_again_meanwhile_changes_nothing() -> None:
    line = Line("a", "b")
    giving = hand_over(line)
    giving.ask(ACTIVE, None)
    assert giving.ask(ACTIVE, "b") == SwitchoverAnswer(
        reason=SwitchoverReason.UNDER_WAY, message="a is handing over already", active="a"
    )
    assert line.told == ["call None", "heir b"]


@pytest.mark.parametrize(
    ("names", "status", "to", "code", "message"),
    [
        (["a"], ACTIVE, None, 409, "no other engine stands for election"),
        (["a", "b"], ACTIVE, "x", 409, "x does not stand for election; there are: b"),
        (["a", "b"], engine_status("a", active="b"), None, 409, "a is not active"),
        (["b", "a"], engine_status("a", EngineState.REPLAYING), None, 409, "a is not active"),
        (["a", "b"], ACTIVE, "a", 200, "a is active already"),
    ],
)
def test_refusals_change_nothing(
    names: list[str], status: ReplicaStatus, to: str | None, code: int, message: str
) -> None:
    line = Line(*names)
    giving = hand_over(line)
    answer = giving.ask(status, to)
    assert (answer.code, answer.message) == (code, message)
    assert status.engine
    assert answer.active == (status.engine.active or None)
    giving.heard(says(EngineState.STANDBY, 3))
    assert line.told == []


def test_an_adapter_does_not_hand_over() -> None:
    status = ReplicaStatus(name="a", state=EngineState.ACTIVE, progress=InputProgress(rows=1))
    answer = hand_over(Line("a", "b")).ask(status, None)
    assert (answer.code, answer.reason) == (409, SwitchoverReason.NOT_AN_ENGINE)


def test_a_connection_that_is_just_lost_refuses_nothing() -> None:
    """A new one is made within the same session."""
    line = Line("a", "b")
    line.broken = True
    names, asked = line.queue, list[int]()

    def again() -> list[str]:
        asked.append(1)
        line.broken = len(asked) < 3
        return names()

    line.queue = again  # type: ignore[method-assign]
    assert hand_over(line).ask(ACTIVE, None).code == 202


def test_without_zookeeper_nothing_is_begun() -> None:
    line = Line("a", "b")
    line.broken = True
    giving = hand_over(line)
    assert giving.ask(ACTIVE, None).code == 503
    line.broken = False
    assert giving.ask(ACTIVE, None).code == 202


class Supervisors:
    """Supervisors of engines that answer from a script: address to its states, one a look."""

    def __init__(self, **states: list[ReplicaStatus]) -> None:
        self.states, self.asked = states, list[tuple[str, str | None, str]]()

    def ask_switchover(self, address: str, to: str | None, token: str) -> SwitchoverAnswer:
        """Stand in for `http.ask_switchover`."""
        self.asked.append((address, to, token))
        return SwitchoverAnswer(reason=SwitchoverReason.BEGUN, message="begun", active="a")

    def ask_status(self, address: str, timeout_s: float) -> ReplicaStatus:
        """Stand in for `http.ask_status`; one whose name begins with "slow" takes 0.9 s."""
        if address not in self.states or (address.startswith("slow") and timeout_s < 0.9):
            raise NoAnswerError(address, "refused")
        left = self.states[address]
        return left.pop(0) if len(left) > 1 else left[0]


def status(name: str, state: EngineState, epoch: int, active: str) -> ReplicaStatus:
    return engine_status(name, state, epoch=epoch, active=active)


def run(
    monkeypatch: pytest.MonkeyPatch, played: Supervisors, addresses: list[str], to: str | None
) -> tuple[int, list[str]]:
    monkeypatch.setattr("espha.ha.switchover.ask_switchover", played.ask_switchover)
    monkeypatch.setattr("espha.ha.switchover.ask_status", played.ask_status)
    said: list[str] = []
    return switch_over(addresses, to, "secret", 0.2, said.append), said


def test_the_active_one_is_found_among_the_peers_and_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    behind = status("b", EngineState.STANDBY, 3, "a")
    played = Supervisors(
        b=[behind, behind, status("b", EngineState.ACTIVE, 4, "b")],
        a=[status("a", EngineState.ACTIVE, 3, "a"), status("a", EngineState.STANDBY, 3, "a")],
    )
    assert run(monkeypatch, played, ["b", "a"], None) == (0, ["begun", "b is active, epoch 4"])
    assert played.asked == [("a", None, "secret")]


def test_another_one_than_asked_for_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Supervisors(
        a=[status("a", EngineState.ACTIVE, 3, "a"), status("a", EngineState.STANDBY, 4, "b")]
    )
    code, said = run(monkeypatch, played, ["a"], "c")
    assert (code, said[-1]) == (1, "b is active, epoch 4")


def test_waiting_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Supervisors(a=[status("a", EngineState.ACTIVE, 3, "a")])
    code, said = run(monkeypatch, played, ["a"], None)
    assert (code, said[-1]) == (1, "no other engine is active after 0.2 s")


def test_without_an_active_engine_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Supervisors(b=[status("b", EngineState.REPLAYING, 3, "a")])
    code, said = run(monkeypatch, played, ["b", "x"], None)
    assert (code, said) == (1, ["no active engine found: b is replaying"])
    code, said = run(monkeypatch, played, ["x"], None)
    assert (code, said) == (1, ["no active engine found: nobody answers at x"])
    assert played.asked == []
