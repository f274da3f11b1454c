"""Election and supervision with a real ZooKeeper and a child that only counts its lives."""

import http.client
import json
import os
import signal
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.replicas import CALM, LIMIT_S, Replica, active_of, in_line
from support.servers import Kafka, ZooKeeper, wait_until

pytestmark = pytest.mark.component

CHILD = """
import json, os, pathlib, threading
from espha.protocol.child_side import Control
from espha.protocol.states import EngineState
from espha.protocol.status import EngineProgress
pause, log = threading.Event(), pathlib.Path(os.environ["LOG"])
name, control = os.environ["ESPHA_NAME"], Control(("127.0.0.1", 0))
def last():
    lines = log.read_text().splitlines() if log.exists() else []
    return json.loads(lines[-1]) if lines else {"epoch": 0, "engine": "", "heir": ""}
def commit(epoch, heir=""):
    with log.open("a") as lines:
        lines.write(json.dumps({"epoch": epoch, "engine": name, "heir": heir}) + chr(10))
def report(state):
    record = last()
    control.report(state, True, EngineProgress(
        sequence=0, epoch=record["epoch"], active=record["engine"], model="", model_digest="",
        replayed=0,
    ))
passed = last()
while True:
    report(EngineState.STANDBY)
    while not control.wait_active(0.01):
        record = last()
        if record != passed:
            passed = record
            report(EngineState.STANDBY)
            if record["heir"] == name:
                control.lead()
    epoch = last()["epoch"] + 1
    commit(epoch)
    report(EngineState.ACTIVE)
    while control.role == "active":
        if last()["epoch"] > epoch:
            os._exit(1)
        pause.wait(0.01)
    if control.heir and not os.environ.get("MUTE"):
        commit(epoch, control.heir)
    passed = last()
"""
"""A child whose order log is a file: it names an heir there, follows it, and is fenced by it."""

Start = Callable[..., Replica]
NOWHERE = "127.0.0.1:1"


@pytest.fixture
def start(zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Start]:
    """Start replicas in one election; all are ended after the test."""
    root = f"/ESP/test/{uuid.uuid4().hex[:8]}"
    replicas: list[Replica] = []

    def make(
        name: str,
        session_ms: int = 4_000,
        bootstrap: str = NOWHERE,
        peers: str = "",
        **more: str,
    ) -> Replica:
        replica = Replica(
            name,
            tmp_path,
            ["--", sys.executable, "-u", "-c", CHILD],
            {
                **CALM,
                "ESPHA_BOOTSTRAP": bootstrap,
                "ESPHA_PEERS": peers,
                "ESPHA_ZOOKEEPER": zookeeper.connect,
                "ESPHA_ROOT": root,
                "ESPHA_SESSION_MS": str(session_ms),
                "LOG": str(tmp_path / "log"),
                **more,
            },
        )
        replicas.append(replica)
        replica.start()
        wait_until(lambda: replica.status().get("znode") is not None, 60, f"{name} stands")
        return replica

    yield make
    for replica in replicas:
        replica.stop()


def test_the_first_is_active_and_the_next_follows_when_its_child_dies(start: Start) -> None:
    """The supervisor closes the session for its dead child, and goes to the queue's end."""
    first, second, third = start("a"), start("b"), start("c")
    wait_until(lambda: first.is_in("active"), 60, "a is active")
    assert second.is_in("standby")
    first.kill_child()
    wait_until(lambda: second.is_in("active"), 60, "b is active")
    wait_until(lambda: first.is_in("standby"), 60, "a is back as a standby")
    assert first.told()["restarts"] == 1
    assert active_of([first, second, third]) == [second]
    second.kill_child()
    wait_until(lambda: third.is_in("active"), 60, "c is active: a stands behind it")


def test_a_terminated_supervisor_leaves_at_once(start: Start) -> None:
    """SIGTERM, as from a deleted pod, ends child and session without a time-out."""
    first, second = start("a", session_ms=60_000), start("b", session_ms=60_000)
    wait_until(lambda: first.is_in("active"), 60, "a is active")
    first.kill(signal.SIGTERM)
    wait_until(lambda: second.is_in("active"), 30, "b is active")
    assert first.process is not None
    assert first.process.wait(30) == 0


def order_log(tmp_path: Path) -> list[tuple[str, str]]:
    """Return who has committed, and whom each record names as the heir."""
    lines = (tmp_path / "log").read_text().splitlines()
    return [(record["engine"], record["heir"]) for record in map(json.loads, lines)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_terminated_active_replica_hands_over(
    start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    """Its last record names the next in line, which leads before the old one has ended."""
    replicas = [first, second, third] = [start(name, session_ms=60_000) for name in "abc"]
    wait_until(lambda: first.is_in("active"), 60, "a is active")
    first.kill(number)
    assert first.process is not None
    assert first.process.wait(60) == 0
    wait_until(lambda: active_of(replicas) == [second], 60, "b is active")
    assert order_log(tmp_path) == [("a", ""), ("a", "b"), ("b", "")]
    second.kill(number)
    wait_until(lambda: active_of(replicas) == [third], 60, "c is active")
    assert order_log(tmp_path)[2:] == [("b", ""), ("b", "c"), ("c", "")]


def test_a_terminated_replica_ends_although_its_heir_does_not_come(
    start: Start, tmp_path: Path
) -> None:
    """It does not go on, and whoever is elected then leads."""
    first, second = start("a", session_ms=60_000, MUTE="1"), start("b", session_ms=60_000)
    wait_until(lambda: first.is_in("active"), 60, "a is active")
    first.kill(signal.SIGTERM)
    assert first.process is not None
    assert first.process.wait(60) == 0
    wait_until(lambda: second.is_in("active"), 60, "b is active")
    assert order_log(tmp_path) == [("a", ""), ("b", "")]


def test_a_terminated_replica_without_another_one_ends(start: Start, tmp_path: Path) -> None:
    alone = start("a")
    wait_until(lambda: alone.is_in("active"), 60, "a is active")
    alone.kill(signal.SIGTERM)
    assert alone.process is not None
    assert alone.process.wait(60) == 0
    assert order_log(tmp_path) == [("a", "")]


def test_a_terminated_standby_ends_and_disturbs_nobody(start: Start, tmp_path: Path) -> None:
    first, second = start("a"), start("b")
    wait_until(lambda: first.is_in("active"), 60, "a is active")
    second.kill(signal.SIGTERM)
    assert second.process is not None
    assert second.process.wait(60) == 0
    assert active_of([first]) == [first]
    assert order_log(tmp_path) == [("a", "")]


def test_a_second_signal_ends_a_replica_that_does_not_let_go(start: Start) -> None:
    """A frozen child hears nothing; the second signal waits for nobody."""
    alone = start("a", ESPHA_FAILURE_TIMEOUT_MS="60000")
    wait_until(lambda: alone.is_in("active"), 60, "a is active")
    os.kill(alone.child(), signal.SIGSTOP)
    alone.kill(signal.SIGTERM)
    # Two that come together are one.
    wait_until(lambda: '"leaves"' in alone.log.read_text(), 60, "the first one is heard")
    alone.kill(signal.SIGTERM)
    assert alone.process is not None
    assert alone.process.wait(60) == 0


def test_a_killed_supervisor_takes_its_child_with_it(start: Start) -> None:
    """The child of a dead supervisor never lives on."""
    first, second = start("a"), start("b")
    wait_until(lambda: first.is_in("active"), 60, "a is active")
    child = first.child()
    first.kill()
    wait_until(lambda: not Path(f"/proc/{child}/exe").exists(), 60, "the child is dead")
    wait_until(lambda: second.is_in("active"), 60, "b is active")


def test_a_killed_supervisors_session_is_closed_by_its_follower(start: Start) -> None:
    """The follower sees the connection end; nobody waits for a session of a minute."""
    first, second = start("a", session_ms=60_000), start("b", session_ms=60_000)
    wait_until(lambda: first.is_in("active"), 60, "a is active")
    first.kill()
    wait_until(lambda: second.is_in("active"), 30, "b is active")


@pytest.fixture
def without_zookeeper(zookeeper: ZooKeeper) -> Iterator[Callable[[], None]]:
    """Return what takes ZooKeeper away until the end of the test."""
    (server,) = zookeeper.servers
    yield lambda: server.signal(signal.SIGSTOP)
    server.signal(signal.SIGCONT)


@pytest.mark.parametrize("victim", ["child", "supervisor"])
def test_the_next_one_leads_without_zookeeper(
    start: Start, without_zookeeper: Callable[[], None], victim: str
) -> None:
    """It sees the connections end; the others know that it is not their turn."""
    first, second, third = (start(name, session_ms=60_000) for name in "abc")
    wait_until(lambda: first.is_in("active"), 60, "a is active")
    wait_until(lambda: (second.told()["watched"] or 0) > 0, 60, "c watches b")
    wait_until(lambda: first.told()["watched"] == 2, 60, "b and c watch a")
    without_zookeeper()
    if victim == "child":
        first.kill_child()
    else:
        first.kill()
    wait_until(lambda: second.is_in("active"), 60, "b is active")
    assert third.is_in("standby")
    second.kill_child()
    wait_until(lambda: third.is_in("active"), 60, "c is active: all before it are dead")


def test_a_silent_active_child_is_replaced(start: Start) -> None:
    """A frozen child of a living supervisor is killed, and the follower is elected."""
    first, second = start("a"), start("b")
    wait_until(lambda: first.is_in("active"), 60, "a is active")
    os.kill(first.child(), signal.SIGSTOP)
    wait_until(lambda: second.is_in("active"), 60, "b is active")
    wait_until(lambda: first.is_in("standby"), 60, "a is back as a standby")


def test_a_frozen_supervisors_session_is_closed_by_its_follower(start: Start) -> None:
    """Its connection stays, but it says nothing any more."""
    first, second = start("a", session_ms=60_000), start("b", session_ms=60_000)
    wait_until(lambda: first.is_in("active"), 60, "a is active")
    os.kill(first.child(), signal.SIGSTOP)
    first.kill(signal.SIGSTOP)
    wait_until(lambda: second.is_in("active"), 30, "b is active")


def test_whom_kafka_does_not_answer_gives_way_to_whom_it_does(start: Start, kafka: Kafka) -> None:
    """Nobody gives way while Kafka answers nobody; then a follower comes that it answers."""
    first = start("a")
    second = start("b", peers=f"127.0.0.1:{first.port}")
    wait_until(lambda: first.is_in("active"), 60, "a is active")
    wait_until(lambda: not first.told()["kafka_reachable"], 60, "Kafka does not answer a")
    first.kill_child()
    wait_until(lambda: second.is_in("active"), 60, "b is active, and knows where a is")
    wait_until(lambda: first.is_in("standby"), 60, "a is back as a standby")
    assert second.told()["restarts"] == 0
    first.stop()
    first = start("a", bootstrap=kafka.bootstrap)
    wait_until(lambda: first.told()["kafka_reachable"], 60, "Kafka answers a")
    second.stop()
    second = start("b", peers=f"127.0.0.1:{first.port}")
    first.kill_child()
    wait_until(lambda: second.status().get("restarts", 0) > 0, 60, "b was active and gave way")
    wait_until(lambda: first.is_in("active"), 60, "a is active")


def hand_over(replica: Replica, to: str | None = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", replica.port, timeout=LIMIT_S)
    connection.request("POST", "/switchover", json.dumps({"to": to}))
    answer = connection.getresponse()
    return answer.status, str(json.load(answer)["message"])


def test_a_switchover_goes_to_the_next_and_restarts_nobody(start: Start) -> None:
    """Each hands over to the one behind it, and stands again at the end of the queue."""
    replicas = queue = [start("a"), start("b"), start("c")]
    wait_until(lambda: replicas[0].is_in("active"), 60, "a is active")
    for _ in replicas:
        giving, taking = queue[:2]
        assert hand_over(giving)[0] == 202
        wait_until(
            lambda: active_of(replicas) == [taking],  # noqa: B023
            60,
            f"{taking.name} is active, {giving.name} is not",
        )
        queue = [*queue[1:], giving]
        # Who has handed over goes to the end a moment later; until then it would be next.
        wait_until(lambda: in_line(queue), 60, f"{giving.name} stands at the end")  # noqa: B023
    assert [replica.told()["restarts"] for replica in replicas] == [0, 0, 0]


def test_an_heir_that_does_not_come_leaves_the_old_one_active(start: Start) -> None:
    """It never learns that it is the heir; output does not wait for it, and the place stays."""
    first, second = start("a", MUTE="1"), start("b")
    wait_until(lambda: first.is_in("active"), 60, "a is active")
    epoch = first.told()["epoch"]
    assert hand_over(first)[0] == 202
    wait_until(lambda: first.told()["epoch"] > epoch, 60, "a has taken over from itself")
    assert active_of([first, second]) == [first]
    assert first.told()["znode"] < second.told()["znode"]


def test_a_switchover_that_loses_zookeeper_on_the_way_ends(
    start: Start, without_zookeeper: Callable[[], None]
) -> None:
    """The heir leads, as the log says; the queue is put in order when that is possible again."""
    first, second = start("a", session_ms=60_000), start("b", session_ms=60_000)
    wait_until(lambda: first.is_in("active"), 60, "a is active")
    assert hand_over(first)[0] == 202
    without_zookeeper()
    wait_until(lambda: active_of([first, second]) == [second], 60, "b is active, a is not")


def test_a_switchover_to_somebody_passes_the_others(start: Start) -> None:
    """The one in between gives way, once; the call is forgotten when it has been answered."""
    replicas = [first, second, third] = [start("a"), start("b"), start("c")]
    wait_until(lambda: first.is_in("active"), 60, "a is active")
    assert hand_over(first, "c")[0] == 202
    wait_until(lambda: active_of(replicas) == [third], 60, "c is active")
    queue = [third, first, second]  # the log says that c leads; the queue follows it
    wait_until(lambda: in_line(queue), 60, "a goes to the end, and b behind it")
    third.kill_child()
    wait_until(lambda: active_of(replicas) == [first], 60, "a is next: b went behind it")
    first.kill_child()
    wait_until(lambda: active_of(replicas) == [second], 60, "b follows: nobody calls any more")
    assert second.told()["restarts"] == 0


def test_a_switchover_to_a_frozen_one_ends_with_another(start: Start) -> None:
    """It comes first, does not answer, and loses its session; then nobody waits for it."""
    replicas = [first, second, third] = [start("a"), start("b"), start("c")]
    wait_until(lambda: first.is_in("active"), 60, "a is active")
    third.kill(signal.SIGSTOP)
    assert hand_over(first, "c")[0] == 202
    wait_until(lambda: first.is_in("standby") or second.is_in("active"), 60, "a hands over")
    wait_until(lambda: active_of([first, second]) == [first], 60, "a is next again: b gave way")
    third.kill(signal.SIGCONT)
    wait_until(lambda: active_of(replicas) == [first], 60, "c, too, follows a")
    first.kill_child()
    wait_until(lambda: active_of(replicas) == [second], 60, "b is next")


def test_a_switchover_that_cannot_be_is_refused(start: Start) -> None:
    """Nothing changes, and a sentence says why."""
    first = start("a")
    wait_until(lambda: first.is_in("active"), 60, "a is active")
    assert hand_over(first) == (409, "no other engine stands for election")
    second = start("b")
    assert hand_over(first, "x") == (409, "x does not stand for election; there are: b")
    assert hand_over(first, "a") == (200, "a is active already")
    assert hand_over(second) == (409, "b is not active")
    assert active_of([first, second]) == [first]


@pytest.mark.parametrize("whole", [True, False], ids=["pod", "supervisor"])
def test_a_frozen_standby_that_wakes_up_does_not_lead_on_what_it_knew(
    start: Start, zookeeper: ZooKeeper, without_zookeeper: Callable[[], None], whole: bool
) -> None:
    """The leader that it knew is dead, and has been replaced; ZooKeeper tells it somewhat later."""
    first, second, third = (start(name) for name in "abc")
    wait_until(lambda: first.is_in("active"), 60, "a is active")
    wait_until(lambda: first.told()["watched"] == 2, 60, "b and c watch a")
    child, old = second.child(), second.told()["znode"]
    if whole:
        os.kill(child, signal.SIGSTOP)
    second.kill(signal.SIGSTOP)
    first.kill()
    wait_until(lambda: third.is_in("active"), 60, "c is active")
    without_zookeeper()
    if whole:
        os.kill(child, signal.SIGCONT)
    second.kill(signal.SIGCONT)
    told = second.log
    wait_until(lambda: "before it are dead" in told.read_text(), 60, "b finds out that a is dead")
    zookeeper.servers[0].signal(signal.SIGCONT)
    wait_until(lambda: second.status().get("znode") not in (None, old), 60, "b stands again")
    wait_until(lambda: second.is_in("standby"), 60, "b is a standby")
    assert third.is_in("active")
    assert third.told()["restarts"] == 0


def test_a_frozen_supervisor_loses_its_place(start: Start) -> None:
    """A frozen session expires; what wakes up stands again, behind the others."""
    first, second = start("a"), start("b")
    wait_until(lambda: first.is_in("active"), 60, "a is active")
    old = first.told()["znode"]
    first.kill(signal.SIGSTOP)
    wait_until(lambda: second.is_in("active"), 60, "b is active")
    first.kill(signal.SIGCONT)
    wait_until(lambda: first.status().get("znode") not in (None, old), 60, "a stands again")
    assert first.told()["znode"] > second.told()["znode"]
