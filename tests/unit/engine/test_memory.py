"""What an engine says of its memory."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from espha.engine.memory import Memory
from espha.protocol.status import MemoryFacts


class Clock:
    """Stands still until it is set."""

    now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def pod(tmp_path: Path) -> Path:
    """Files as the kernel has them."""
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "status").write_text("Name:\tpython\nVmRSS:\t 900 kB\nRssAnon:\t 700 kB\n")
    (tmp_path / "memory.stat").write_text("anon 790\nfile 5000\n")
    (tmp_path / "memory.max").write_text("1000\n")
    return tmp_path


def test_worker_pod_and_limit_are_told(pod: Path) -> None:
    memory = Memory(lambda: 7, cgroup=pod, proc=pod)
    assert memory.facts() == MemoryFacts(worker_memory=700 * 1024, memory=790, memory_limit=1000)


def test_the_limit_is_warned_of_once_each_time_it_comes_near(pod: Path) -> None:
    clock = Clock()
    memory = Memory(lambda: None, clock, pod, pod)
    with capture_logs() as logs:
        for used in (790, 801, 900, 700, 850):
            clock.now += 1
            (pod / "memory.stat").write_text(f"anon {used}\n")
            memory.facts()
    assert [line["memory"] for line in logs] == [801, 850]
    assert "near the pod's limit" in logs[0]["event"]


def test_files_are_read_once_a_second(pod: Path) -> None:
    clock = Clock()
    memory = Memory(lambda: 7, clock, pod, pod)
    first = memory.facts()
    (pod / "memory.stat").write_text("anon 1\n")
    clock.now = 0.9
    assert memory.facts() is first
    clock.now = 1.0
    assert memory.facts().memory == 1


def test_a_pod_without_a_limit_has_none(pod: Path) -> None:
    (pod / "memory.max").write_text("max\n")
    assert Memory(lambda: 8, cgroup=pod, proc=pod).facts() == MemoryFacts(memory=790)


def test_outside_of_a_pod_there_is_only_the_worker(pod: Path) -> None:
    (pod / "memory.max").unlink()
    told = Memory(lambda: 7, cgroup=pod, proc=pod).facts()
    assert told == MemoryFacts(worker_memory=700 * 1024)
