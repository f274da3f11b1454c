"""Hearing of another process's end."""

import signal
import socket
import subprocess
import threading

import pytest

from espha.pipeline.ends import when_closed, when_ended

pytestmark = pytest.mark.timeout(60)


def test_a_connection_that_is_closed_is_heard_of_with_bytes_unread() -> None:
    here, there = socket.socketpair()
    heard = threading.Event()
    when_closed(here.fileno(), heard.set)
    there.send(b"unread")
    assert not heard.wait(0.1), "bytes are no end"
    there.close()
    assert heard.wait()


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
    assert heard.is_set()
