"""Checkpoints of a kernel: a forked process reads the state as it is then, and this one goes on.

Writing a million rows takes a second of processor time; forking a process that has them takes some
milliseconds. The forked process shares the memory of the worker as long as neither writes to it.
What it touches is copied: it counts no references where that can be avoided, collects no garbage,
and has each part of the state made when it is written, and forgotten then.

It has nothing to do with Spark any more: it closes all that it has inherited, and ends when the
worker does. It runs only when nobody else wants the processor.
"""

import contextlib
import ctypes
import gc
import os
import signal
import time
from pathlib import Path
from typing import NoReturn

from espha.autogroup import LEAST, stand_back
from espha.cgroup import CGROUP, PROC, memory_limit, memory_of, memory_taken
from espha.durable import write_all
from espha.kernel import Kernel
from espha.protocol.checkpoint import CheckpointBegun, CheckpointOrder, CheckpointReport
from espha.recovery import plain
from espha.recovery.body import Written

_PR_SET_PDEATHSIG = 1
_SECONDS = 600
"""A checkpoint that takes longer is given up: all that changes meanwhile is in memory twice."""
_COPIED = 2
"""One part in so many of the worker's memory is copied at most, as measured."""
_LIBC = ctypes.CDLL(None)


class Checkpoints:
    """The checkpoints of one worker; at most one is under way."""

    def __init__(self) -> None:
        self.pid = 0
        """The process that was forked last; 0: it has ended."""

    def begin(self, kernel: Kernel, sequence: int, order: CheckpointOrder) -> CheckpointBegun:
        """Fork a process that does what is ordered; return what the engine is told."""
        if self._under_way():
            return CheckpointBegun(error="one is under way", busy=True)
        lack = lack_of_memory()
        if lack:
            return CheckpointBegun(error=lack)
        started = time.perf_counter()
        try:
            kernel.settle()
            # Opened here, so that the engine sees the end of the pipe when the process ends.
            report = os.open(order.report, os.O_WRONLY | os.O_CLOEXEC)
        except (ValueError, OSError) as error:
            return CheckpointBegun(error=f"{type(error).__name__}: {error}")
        worker = os.getpid()
        try:
            self.pid = os.fork()
        except OSError as error:  # no memory, or too many processes
            os.close(report)
            return CheckpointBegun(error=f"cannot fork: {error.strerror}")
        if self.pid == 0:
            _be_the_process(kernel, sequence, order, report, worker)
        os.close(report)
        return CheckpointBegun(
            sequence=sequence, pause_ms=round((time.perf_counter() - started) * 1000, 1)
        )

    def _under_way(self) -> bool:
        if not self.pid:
            return False
        try:
            ended, _ = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:  # somebody else has collected it
            ended = self.pid
        if ended:
            self.pid = 0
        return not ended


def lack_of_memory(cgroup: Path = CGROUP, proc: Path = PROC) -> str:
    """Say why there is no memory for a checkpoint; empty: there is.

    A fork succeeds all the same, and where copies go beyond the limit, the kernel may end all that
    is in the pod: behind the same order record in every engine, which all digest their state there.
    """
    limit, taken = memory_limit(cgroup), memory_taken(cgroup)
    needed = (memory_of("self", proc) or 0) // _COPIED
    if not limit or not taken or taken + needed <= limit:
        return ""
    return (
        f"no memory for a checkpoint: {taken} of {limit} bytes are taken, and copies may need "
        f"{needed} more"
    )


def _be_the_process(
    kernel: Kernel, sequence: int, order: CheckpointOrder, report: int, worker: int
) -> NoReturn:
    """Do what is ordered, and end, whatever happens."""
    try:
        gc.disable()
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != worker:
            os._exit(1)
        for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        signal.alarm(_SECONDS)
        _close_all_but(report)
        _stand_back()
        _say(report, _taken(kernel, sequence, order))
        os._exit(0)
    except BaseException as error:
        _say(report, CheckpointReport(sequence=sequence, error=f"{type(error).__name__}: {error}"))
    finally:
        os._exit(1)


def _stand_back() -> None:
    """Run only when nobody else wants the processor.

    Linux may give each session an equal share of it, whatever its processes want. So this one gets
    a session of its own, with the least share. In a pod the shares are those of the pods.
    """
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    os.setsid()
    stand_back(LEAST)


def _taken(kernel: Kernel, sequence: int, order: CheckpointOrder) -> CheckpointReport:
    started = time.monotonic()
    written = _written(kernel, order) if order.path else plain.write(kernel.state(), None)
    return CheckpointReport(
        sequence=sequence,
        state=written.digest,
        length=written.length,
        checksum=written.checksum,
        took_ms=round((time.monotonic() - started) * 1000),
        memory=_own_memory(),
    )


def _written(kernel: Kernel, order: CheckpointOrder) -> Written:
    file = os.open(order.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    end = order.offset

    def put(part: bytes) -> None:
        nonlocal end
        end = write_all(file, part, end)

    written = plain.write(kernel.state(), put)
    os.fsync(file)
    os.close(file)
    return written


def _close_all_but(report: int) -> None:
    """Leave Spark, which waits for the end of what this process has inherited, alone."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    inherited = [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]
    for descriptor in inherited:
        if descriptor > 2 and descriptor != report:
            with contextlib.suppress(OSError):  # that of the listing itself is closed already
                os.close(descriptor)


def _own_memory() -> int:
    """Return the bytes that only this process has."""
    with Path("/proc/self/smaps_rollup").open("rb") as lines:
        return sum(
            int(line.split()[1]) * 1024 for line in lines if line.startswith(b"Private_Dirty:")
        )


def _say(report: int, what: CheckpointReport) -> None:
    os.write(report, what.model_copy(update={"error": what.error[:1000]}).encode())
