"""Nobody is signalled who is not meant."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from espha.local.processes import MARK, Identity, family, identify, sweep

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """A process that sleeps."""
    started = subprocess.Popen(SLEEP, env={**os.environ, MARK: "mine"})
    yield started
    started.kill()
    started.wait()


def test_a_process_is_known_again_and_signalled(process: subprocess.Popen[bytes]) -> None:
    known = identify(process.pid)
    assert known is not None
    assert Identity.model_validate_json(known.model_dump_json()).alive
    assert known.signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not known.alive
    assert not known.signal(signal.SIGKILL)


@pytest.mark.parametrize("change", [{"started": 1}, {"boot": "another"}], ids=str)
def test_the_id_of_another_process_is_not_signalled(
    process: subprocess.Popen[bytes], change: dict[str, object]
) -> None:
    """After a reboot, or when the kernel gives an id again."""
    known = identify(process.pid)
    assert known is not None
    stale = known.model_copy(update=change)
    assert not stale.alive
    assert not stale.signal(signal.SIGKILL)
    assert process.poll() is None


def test_an_ended_process_that_nobody_has_waited_for_is_not_alive() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    assert identify(ended.pid) is None
    ended.wait()


def test_sweep_ends_what_carries_the_mark_and_nothing_else(
    process: subprocess.Popen[bytes],
) -> None:
    other = subprocess.Popen(SLEEP, env={**os.environ, MARK: "mine, too"})
    try:
        assert sweep("mine", 5.0) == 1
        assert process.wait(5) == -signal.SIGTERM
        assert other.poll() is None
        assert sweep("mine", 5.0) == 0
    finally:
        other.kill()
        other.wait()


def test_family_lists_parents_first() -> None:
    found = family(os.getppid())
    assert found[0] == os.getppid()
    assert os.getpid() in found
