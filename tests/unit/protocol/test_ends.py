"""Hearing of another process's end."""

import errno
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from espha.protocol.ends import wait_for_end, when_closed, when_ended

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
