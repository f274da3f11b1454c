"""Election and supervision with a real ZooKeeper and a child that only counts its lives."""

import signal
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.replicas import Replica, active_of
from support.servers import ZooKeeper, wait_until

pytestmark = pytest.mark.component

CHILD = """
from espha.runtime.control import Control
control = Control()
control.report("standby", True)
while not control.wait_active(1.0):
    pass
control.report("active", True)
while True:
    control.wait_active(1.0)
"""

Start = Callable[[str], Replica]


@pytest.fixture
def start(zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Start]:
    """Start replicas in one election; all are ended after the test."""
    root = f"/ESP/test/{uuid.uuid4().hex[:8]}"
    replicas: list[Replica] = []

    def make(name: str) -> Replica:
        replica = Replica(
            name,
            tmp_path,
            ["--", sys.executable, "-u", "-c", CHILD],
            {
                "ESPHA_BOOTSTRAP": "127.0.0.1:1",
                "ESPHA_ZOOKEEPER": zookeeper.connect,
                "ESPHA_ROOT": root,
            },
        )
        replicas.append(replica)
        replica.start()
        wait_until(lambda: replica.status().get("znode") is not None, 20, f"{name} stands")
        return replica

    yield make
    for replica in replicas:
        replica.stop()


def test_the_first_is_active_and_the_next_follows_when_its_child_dies(start: Start) -> None:
    """The supervisor closes the session for its dead child, and goes to the queue's end."""
    first, second, third = start("a"), start("b"), start("c")
    wait_until(lambda: first.is_in("active"), 5, "a is active")
    assert second.is_in("standby")
    first.kill_child()
    wait_until(lambda: second.is_in("active"), 5, "b is active")
    wait_until(lambda: first.is_in("standby"), 10, "a is back as a standby")
    assert first.status()["restarts"] == 1
    assert active_of([first, second, third]) == [second]
    second.kill_child()
    wait_until(lambda: third.is_in("active"), 5, "c is active: a stands behind it")


def test_a_terminated_supervisor_leaves_at_once(start: Start) -> None:
    """SIGTERM, as from a deleted pod, ends child and session without a time-out."""
    first, second = start("a"), start("b")
    wait_until(lambda: first.is_in("active"), 5, "a is active")
    first.kill(signal.SIGTERM)
    wait_until(lambda: second.is_in("active"), 5, "b is active")
    assert first.process is not None
    assert first.process.wait(5) == 0


def test_a_killed_supervisor_takes_its_child_with_it(start: Start) -> None:
    """The child of a dead supervisor never lives on; the follower comes after the time-out."""
    first, second = start("a"), start("b")
    wait_until(lambda: first.is_in("active"), 5, "a is active")
    child = first.child()
    first.kill()
    wait_until(lambda: not Path(f"/proc/{child}/exe").exists(), 5, "the child is dead")
    wait_until(lambda: second.is_in("active"), 10, "b is active")


def test_a_frozen_supervisor_loses_its_place(start: Start) -> None:
    """A frozen session expires; what wakes up stands again, behind the others."""
    first, second = start("a"), start("b")
    wait_until(lambda: first.is_in("active"), 5, "a is active")
    old = first.status()["znode"]
    first.kill(signal.SIGSTOP)
    wait_until(lambda: second.is_in("active"), 10, "b is active")
    first.kill(signal.SIGCONT)
    wait_until(lambda: first.status().get("znode") not in (None, old), 10, "a stands again")
    assert first.status()["znode"] > second.status()["znode"]
