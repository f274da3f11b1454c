"""Hearing of another process's end."""

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from espha.local.waiting import wait_until
from espha.protocol.ends import _is_ending, wait_for_end, when_closed, when_ended

pytestmark = pytest.mark.timeout(60)

SERVER = """
import socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.bind(sys.argv[1])
    server.listen()
    print("listens", flush=True)
    talk = server.accept()[0]
    talk.send(b"unread")
    sys.stdin.readline()
    talk.close()
    sys.stdin.readline()
"""


def test_a_process_that_is_killed_is_heard_of() -> None:
    process = subprocess.Popen(["/bin/sleep", "1000"])
    heard = threading.Event()
    when_ended(process.pid, heard.set)
    process.send_signal(signal.SIGKILL)
    assert heard.wait()
    process.wait()


def test_a_process_that_is_gone_already_is_heard_of() -> None:
    process = subprocess.Popen(["/bin/true"])
    process.wait()
    heard = threading.Event()
    when_ended(process.pid, heard.set)
    assert heard.wait()
    with pytest.raises(ProcessLookupError):
        wait_for_end(process.pid)


@pytest.mark.parametrize("attempts", [2, 1_000_000], ids=["for a moment", "for ever"])
def test_without_a_free_descriptor_an_end_is_heard_of_all_the_same(
    monkeypatch: pytest.MonkeyPatch, attempts: int
) -> None:
    """Else nobody would ever learn of it: whoever waits has a thread of its own, which ends."""
    left, opened = [attempts], os.pidfd_open

    def crowded(pid: int, flags: int = 0) -> int:
        left[0] -= 1
        if left[0] > 0:
            raise OSError(errno.EMFILE, "Too many open files")
        return opened(pid, flags)

    monkeypatch.setattr(os, "pidfd_open", crowded)
    process, heard = subprocess.Popen(["/bin/sleep", "1000"]), threading.Event()
    when_ended(process.pid, heard.set)
    wait_until(lambda: left[0] < attempts - 1, 60, "it is looked for twice")
    assert not heard.is_set()
    process.kill()
    process.wait()
    assert heard.wait(60)


def test_a_process_that_cannot_be_looked_at_is_not_said_to_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread of it has ended, and no descriptor is left to read more."""

    def crowded(*_: object) -> str:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_text", crowded)
        ending = _is_ending(os.getpid())
    assert not ending, "it is said to end"


def test_a_kernel_that_knows_no_threads_ends_tells_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened = os.pidfd_open

    def of_processes_only(pid: int, flags: int = 0) -> int:
        if flags:
            raise OSError(errno.EINVAL, "no such flag")
        return opened(pid)

    monkeypatch.setattr(os, "pidfd_open", of_processes_only)
    process = subprocess.Popen(["/bin/sleep", "1000"])
    process.kill()
    wait_for_end(process.pid)
    process.wait()


LARGE = """
import sys
from espha.protocol.ends import be_heard
state = bytearray(1 << 29)
state[::4096] = b"x" * len(state[::4096])
be_heard()
print("ready", flush=True)
sys.stdin.readline()
"""
ENDING_THREADS = """
import os, threading
def end():
    os.read(0, 1)
threads = [threading.Thread(target=end) for _ in range(6)]
for thread in threads:
    thread.start()
print("ready", flush=True)
for thread in threads:
    thread.join()
print("all have ended", flush=True)
threading.Event().wait()
"""


def _running(program: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def _knows_threads() -> bool:
    try:
        os.close(os.pidfd_open(threading.get_native_id(), os.O_EXCL))
    except OSError:
        return False
    return True


def _watched() -> int:
    """Return how many processes and threads this one watches."""
    links = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            links.append(str(descriptor.readlink()))
    return sum("pidfd" in link for link in links)


@pytest.mark.skipif(not _knows_threads(), reason="the kernel does not tell of threads' ends")
def test_a_killed_process_is_heard_of_before_its_memory_is_cleared() -> None:
    """Whoever hears it may get the processor late: once in ten times must do."""

    def heard_before() -> bool:
        with _running(LARGE) as process:
            heard, before = threading.Event(), _watched()
            when_ended(process.pid, heard.set)
            wait_until(lambda: _watched() == before + 3, 30, "it and its two threads are watched")
            process.kill()
            assert heard.wait()
            return process.poll() is None

    assert any(heard_before() for _ in range(10))


def test_threads_that_end_by_themselves_are_not_the_end() -> None:
    with _running(ENDING_THREADS) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        heard = threading.Event()
        when_ended(process.pid, heard.set)
        for _ in range(6):
            process.stdin.write(b"1")
            process.stdin.flush()
        assert process.stdout.readline() == b"all have ended\n"
        assert not heard.wait(2)
        process.kill()
        assert heard.wait()


@pytest.mark.parametrize("killed", [True, False])
def test_the_other_end_of_a_connection_is_heard_of(tmp_path: Path, killed: bool) -> None:
    path = str(tmp_path / "talk")
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        with socket.socket(socket.AF_UNIX) as talk:
            talk.connect(path)
            heard = threading.Event()
            when_closed(talk, heard.set)
            assert not heard.wait(0.1), "bytes are no end"
            if killed:
                process.kill()
            else:
                process.stdin.write(b"\n")
                process.stdin.flush()
            assert heard.wait()
        process.kill()
