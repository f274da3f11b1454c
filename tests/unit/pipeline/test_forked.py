"""Checkpoints by a forked process: the state as it was, whatever happens meanwhile."""

import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from espha.kernel import Kernel, kernel_of
from espha.model.events import Event
from espha.pipeline import forked
from espha.pipeline.forked import Checkpoints, lack_of_memory
from espha.protocol.checkpoint import CheckpointOrder, CheckpointReport
from espha.reader import read_project
from espha.recovery.pending import Pending
from espha.recovery.plain import digest, loads
from support.models import SUB, source, xml
from support.servers import wait_until

SCRIPT = "count = 0\ndef create(data, context):\n    global count\n    count += 1\n"
MODEL = xml(
    source("id*:int64,x:int64")
    + '<window-python name="out" index="pi_EMPTY"><schema-string>id*:int64,n:int64</schema-string>'
    f"<copy>id</copy><code><![CDATA[\n{SCRIPT}    return {{'n': count}}\n]]></code>{SUB}"
    f'</window-python><window-copy name="same" index="pi_HASH">{SUB}</window-copy>',
    '<edge source="in" target="out"/><edge source="in" target="same"/>',
)


@pytest.fixture
def kernel() -> Kernel:
    made = kernel_of(read_project(MODEL))
    feed(made, range(20))
    return made


def feed(kernel: Kernel, numbers: range) -> None:
    for number in numbers:
        kernel.publish("q/in", Event("P", "N", (number % 50, number)), 0)


class Ordered:
    """A checkpoint that is under way, or was refused."""

    def __init__(self, checkpoints: Checkpoints, kernel: Kernel, path: Path | str = "") -> None:
        self.reports: SimpleQueue[CheckpointReport] = SimpleQueue()
        pending = Pending(str(path), 100 if path else 0)
        self.begun = checkpoints.begin(kernel, 7, pending.order)
        if self.begun.error:
            pending.drop()
        else:
            pending.wait(self.reports.put)

    def report(self) -> CheckpointReport:
        """Wait for the end."""
        return self.reports.get(timeout=60)


def test_the_state_is_that_of_the_moment(kernel: Kernel, tmp_path: Path) -> None:
    """Of windows, and of scripts in processes of their own."""
    twin = kernel_of(read_project(MODEL))
    feed(twin, range(20))
    expected = digest(twin.state())
    ordered = Ordered(Checkpoints(), kernel, tmp_path / "state")
    feed(kernel, range(20, 40))
    report = ordered.report()
    assert (report.error, report.sequence, report.state) == ("", 7, expected)
    content = (tmp_path / "state").read_bytes()
    assert len(content) == 100 + report.length
    again = kernel_of(read_project(MODEL))
    again.restore(loads(content[100:]))
    feed(again, range(20, 40))
    assert digest(again.state()) == digest(kernel.state()) != expected


def test_a_digest_alone_writes_nothing(kernel: Kernel) -> None:
    report = Ordered(Checkpoints(), kernel).report()
    assert (report.error, report.state, report.length) == ("", digest(kernel.state()), 0)


class Slow:
    """A kernel whose state takes for ever."""

    def settle(self) -> None:
        """Do nothing."""

    def state(self) -> Any:
        """Wait for the end."""
        signal.pause()


@pytest.fixture
def slow() -> Iterator[tuple[Checkpoints, Ordered]]:
    checkpoints = Checkpoints()
    ordered = Ordered(checkpoints, Slow())  # type: ignore[arg-type]
    yield checkpoints, ordered
    os.kill(checkpoints.pid, signal.SIGKILL)


def test_there_is_one_at_a_time(slow: tuple[Checkpoints, Ordered], kernel: Kernel) -> None:
    checkpoints, _ = slow
    refused = Ordered(checkpoints, kernel).begun
    assert (refused.error, refused.busy) == ("one is under way", True)


def test_a_process_that_is_killed_is_noticed(kernel: Kernel) -> None:
    """By its pipe, at once; and the next checkpoint is taken."""
    checkpoints = Checkpoints()
    ordered = Ordered(checkpoints, Slow())  # type: ignore[arg-type]
    os.kill(checkpoints.pid, signal.SIGKILL)
    assert "ended without a word" in ordered.report().error
    os.waitid(os.P_PID, checkpoints.pid, os.WEXITED | os.WNOWAIT)
    assert Ordered(checkpoints, kernel).report().error == ""


def test_it_holds_nothing_of_what_it_has_inherited(slow: tuple[Checkpoints, Ordered]) -> None:
    """Spark waits for the end of the worker's descriptors; it must not have them."""
    checkpoints, ordered = slow
    inherited, written = os.pipe()
    other = Checkpoints()
    os.kill(checkpoints.pid, signal.SIGKILL)
    ordered.report()
    held = Ordered(other, Slow())  # type: ignore[arg-type]
    os.close(written)
    ready = select.poll()  # not select(), which knows no descriptor above 1023
    ready.register(inherited, select.POLLIN | select.POLLHUP)
    assert ready.poll(60_000)  # its end comes: nobody else holds it open
    os.close(inherited)
    os.kill(other.pid, signal.SIGKILL)
    assert held.report().error


def test_it_takes_the_processor_from_nobody(slow: tuple[Checkpoints, Ordered]) -> None:
    """Linux may share it out by sessions first, and there it has one of its own."""
    checkpoints, _ = slow
    process = Path(f"/proc/{checkpoints.pid}")
    wait_until(lambda: os.sched_getscheduler(checkpoints.pid) == os.SCHED_IDLE, 30, "it is idle")
    wait_until(lambda: os.getsid(checkpoints.pid) == checkpoints.pid, 30, "its own session")
    shares = process / "autogroup"
    if shares.exists():
        wait_until(lambda: shares.read_text().endswith("nice 19\n"), 30, "the least share")


class Failing(Slow):
    """A kernel whose state is none."""

    def state(self) -> Any:
        """Return what no snapshot can hold."""
        return {"here": [object()]}


def test_a_state_that_cannot_be_written_is_reported() -> None:
    ordered = Ordered(Checkpoints(), Failing())  # type: ignore[arg-type]
    assert "builtins.object is no plain data" in ordered.report().error


def test_a_full_disk_is_reported(kernel: Kernel, tmp_path: Path) -> None:
    ordered = Ordered(Checkpoints(), kernel, tmp_path / "gone" / "state")
    assert "FileNotFoundError" in ordered.report().error


def test_a_script_that_cannot_be_kept_costs_no_fork() -> None:
    """Its process is asked before: the forked one would talk to it at the same time."""
    unkept = SCRIPT.replace("count = 0", "count = 0\nkept = (n for n in [1])")
    kernel = kernel_of(read_project(MODEL.replace(SCRIPT, unkept)))
    feed(kernel, range(2))
    begun = Ordered(Checkpoints(), kernel).begun
    assert begun.sequence is None
    assert "q/out" in begun.error


@pytest.mark.parametrize(("limit", "lacks"), [("1100", False), ("1099", True), ("max", False)])
def test_without_room_for_copies_nothing_is_forked(tmp_path: Path, limit: str, lacks: bool) -> None:
    """The kernel would end the pod, and those of all other engines at the same order record."""
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "status").write_text("RssAnon:\t 1 kB\n")
    (tmp_path / "memory.stat").write_text("anon 588\n")
    (tmp_path / "memory.max").write_text(f"{limit}\n")
    said = lack_of_memory(tmp_path, tmp_path)
    assert bool(said) == lacks
    if lacks:
        assert said == (
            "no memory for a checkpoint: 588 of 1099 bytes are taken, and copies may need 512 more"
        )


def test_what_lacks_is_told(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked, "lack_of_memory", lambda: "no memory")
    checkpoints = Checkpoints()
    assert checkpoints.begin(kernel, 1, CheckpointOrder(report="nowhere")).error == "no memory"
    assert checkpoints.pid == 0
