"""Children that live, and say so, and do not get on: others take over."""

import json
import os
import signal
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from chaos.proxy import Proxy, Route
from support.deployment import Deployment
from support.replicas import CALM, LIMIT_S, Replica
from support.servers import Kafka, ZooKeeper, free_ports, wait_until

pytestmark = pytest.mark.component

CHILD = """
import subprocess, sys, threading, time
from pathlib import Path
from espha.protocol.child_side import Control
from espha.protocol.order import Range
from espha.protocol.states import EngineState, Step
from espha.protocol.status import EngineProgress
folder, pause, control = Path(sys.argv[1]), threading.Event(), Control()
worker = subprocess.Popen(["sleep", "1000"])
(folder / "worker").write_text(str(worker.pid))
def report(state):
    control.report(state, True, EngineProgress(
        sequence=7, epoch=1, active="", model="", model_digest="", replayed=0
    ))
while True:
    report(EngineState.STANDBY)
    while control.role == "standby":
        control.doing.begin(Step.WAITING)
        control.doing.unordered_since = 1.0 if (folder / "sees").exists() else None
        pause.wait(0.05)
    control.doing.unordered_since = None
    report(EngineState.ACTIVE)
    while control.role == "active":
        control.doing.begin(Step.WAITING)
        pause.wait(0.05)
        if (folder / "hangs").exists():
            (folder / "hangs").unlink()
            control.doing.begin(Step.RUNNING, 8, 1, (Range("t.I", 4, 5),))
            time.sleep(1000)
"""

PATIENT = {**CALM, "ESPHA_FAILURE_TIMEOUT_MS": "2000"}
"""Tests count the reasons of kills, and wait for a child that hangs to be killed."""

Start = Callable[..., Replica]


@pytest.fixture
def start(zookeeper: ZooKeeper, kafka: Kafka, tmp_path: Path) -> Iterator[Start]:
    """Start replicas in one election, each behind the other; all are ended after the test."""
    root = f"/ESP/test/{uuid.uuid4().hex[:8]}"
    replicas: list[Replica] = []
    ports = free_ports(4)

    def make(name: str, bootstrap: str = "") -> Replica:
        folder = tmp_path / name
        folder.mkdir()
        replica = Replica(
            name,
            folder,
            ["--", sys.executable, "-u", "-c", CHILD, str(folder)],
            {
                "ESPHA_BOOTSTRAP": bootstrap or kafka.bootstrap,
                "ESPHA_PEERS": ",".join(f"127.0.0.1:{port}" for port in ports),
                "ESPHA_ZOOKEEPER": zookeeper.connect,
                "ESPHA_ROOT": root,
                **PATIENT,
            },
            port=ports[len(replicas)],
        )
        replicas.append(replica)
        replica.start()
        wait_until(lambda: replica.status().get("znode") is not None, 60, f"{name} stands")
        return replica

    yield make
    for replica in replicas:
        replica.stop()


def kills(replica: Replica) -> dict[str, int]:
    """Return how often a supervisor has killed its child, by reason."""
    return dict(replica.status().get("kills") or {})


def test_a_child_that_hangs_in_a_batch_is_replaced(start: Start) -> None:
    """Its heartbeat goes on; the supervisor names the batch over which it has died."""
    first, second = start("a"), start("b")
    wait_until(lambda: first.is_in("active"), 60, "a is active")
    assert first.told()["step"] == "waiting"
    (first.folder / "hangs").touch()
    wait_until(lambda: second.is_in("active"), 60, "b is active")
    wait_until(lambda: first.is_in("standby"), 60, "a is back as a standby")
    assert kills(first) == {"stuck": 1}
    lines = [json.loads(line) for line in first.log.read_text().splitlines() if "killed" in line]
    assert [line["step"] for line in lines] == ["running"]
    assert (lines[0]["sequence"], lines[0]["inputs"]) == (8, [["t.I", 4, 5]])
    assert kills(second) == {}


def test_a_child_with_a_frozen_process_is_replaced(start: Start) -> None:
    """The child itself is well; what it needs is not, and is not left behind."""
    first, second = start("a"), start("b")
    wait_until(lambda: first.is_in("active"), 60, "a is active")
    worker = int((first.folder / "worker").read_text())
    os.kill(worker, signal.SIGSTOP)
    wait_until(lambda: second.is_in("active"), 60, "b is active")
    wait_until(lambda: first.is_in("standby"), 60, "a is back as a standby")
    assert kills(first) == {"stopped": 1}
    wait_until(lambda: not Path(f"/proc/{worker}/exe").exists(), 60, "the frozen one is gone")


def test_a_standby_deposes_whoever_does_not_take_its_input(start: Start) -> None:
    """Only the next in line does so, and its own turn is not ended by the one behind it."""
    first, second, third = start("a"), start("b"), start("c")
    wait_until(lambda: first.is_in("active"), 60, "a is active")
    (third.folder / "sees").touch()
    wait_until(lambda: bool(third.status().get("unordered_s")), 60, "c sees it")
    assert first.is_in("active")
    (second.folder / "sees").touch()
    wait_until(lambda: second.is_in("active"), 60, "b is active")
    assert second.told()["depositions"] == 1
    assert third.told()["depositions"] == 0


def test_whom_one_broker_does_not_answer_gives_way(
    start: Start, kafka: Kafka, zookeeper: ZooKeeper
) -> None:
    """It may be the broker that leads what it reads; the others hear it."""
    with ExitStack() as ends:
        brokers = [server.port for server in kafka.servers]
        listens = free_ports(len(brokers))
        routes = [
            Route(f"broker-{at}", here, there)
            for at, (here, there) in enumerate(zip(listens, brokers, strict=True))
        ]
        proxy = Proxy(routes)
        ends.callback(proxy.stop)
        first = start("a", ",".join(f"127.0.0.1:{port}" for port in listens))
        second = start("b")
        wait_until(lambda: first.is_in("active"), 60, "a is active")
        wait_until(lambda: all(ms < 500 for ms in first.told()["kafka_silent_ms"]), 60, "heard")
        proxy.cut("broker-1")
        wait_until(lambda: second.is_in("active"), 60, "b is active")
        wait_until(lambda: first.is_in("standby"), 60, "a is back as a standby")
        assert kills(first) == {"cut-off": 1}
        (second.folder / "hangs").touch()
        wait_until(lambda: first.is_in("active"), 60, "a is active: b was stuck")
        wait_until(lambda: second.is_in("active"), 60, "b is back, and hears more")


SOURCE, OUTPUT = "cq/memory", "cq/outbound"


@pytest.mark.parametrize(
    "whom", [Replica.jvm, pytest.param(Replica.worker, marks=pytest.mark.long)]
)
def test_an_engine_whose_half_is_frozen_is_replaced(
    whom: Callable[[Replica], int], kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    """Nobody wakes it up; another engine leads, and it comes back with a half that works."""
    deployment = Deployment(kafka, zookeeper, tmp_path, settings=CALM)
    try:
        deployment.start(2)
        old = deployment.active()
        deployment.publish(SOURCE, [f"I,N,,{number},1,2,3" for number in range(10)])
        frozen = whom(old)
        os.kill(frozen, signal.SIGSTOP)
        deployment.publish(SOURCE, [f"I,N,,{number},1,2,3" for number in range(10, 20)])
        deployment.active_but(old)
        wait_until(lambda: len(deployment.lines(OUTPUT)) >= 20, LIMIT_S, "20 rows of output")
        deployment.wait_in_sync()
        assert sum(kills(old).values()) == 1
        wait_until(lambda: not Path(f"/proc/{frozen}/exe").exists(), 60, "the frozen one is gone")
    finally:
        deployment.stop()
