"""A follower's look at the supervisor before it."""

import socket
import subprocess
import sys
import threading

import pytest

from espha.ha.heartbeat import HeartbeatMonitor, HeartbeatServer

BEACON = """
import sys
from espha.ha.heartbeat import HeartbeatServer
print(HeartbeatServer("127.0.0.1").address, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def gone() -> threading.Event:
    """Set when a monitor says that the other side is gone."""
    return threading.Event()


def test_a_killed_process_is_noticed(gone: threading.Event) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BEACON], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        HeartbeatMonitor(process.stdout.readline().strip(), gone.set)
        assert not gone.wait(0.3)
        process.kill()
        assert gone.wait(10)


def test_a_cut_connection_alone_is_no_death(gone: threading.Event) -> None:
    """The monitor connects again, and sees the end when it comes."""
    server = HeartbeatServer("127.0.0.1")
    HeartbeatMonitor(server.address, gone.set)
    first = held(server)
    first.shutdown(socket.SHUT_RDWR)
    assert held(server, other_than=first)
    assert not gone.is_set()
    server.close()
    assert gone.wait(10)


def test_nobody_there_is_a_death(gone: threading.Event) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    HeartbeatMonitor(address, gone.set)
    assert gone.wait(10)


def test_a_server_that_says_nothing_more_is_a_death(gone: threading.Event) -> None:
    """A frozen process: its connection stays, but nothing comes."""
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        HeartbeatMonitor(f"127.0.0.1:{frozen.getsockname()[1]}", gone.set, failure_timeout_ms=300)
        connection, _ = frozen.accept()
        with connection:
            connection.send(b".")
            assert gone.wait(10)


def test_a_server_that_is_heard_lives(gone: threading.Event) -> None:
    server = HeartbeatServer("127.0.0.1")
    HeartbeatMonitor(server.address, gone.set, failure_timeout_ms=300)
    held(server)
    assert not gone.wait(1.0)
    server.close()
    assert gone.wait(10)


def test_whom_nobody_could_ever_reach_is_not_dead(
    gone: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that cannot reach each other would else end each other's sessions for ever."""
    tried = threading.Event()

    def unreachable(*_: object) -> socket.socket:
        tried.set()
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", unreachable)
    monitor = HeartbeatMonitor("192.0.2.1:1", gone.set)
    assert tried.wait(10)
    assert not gone.wait(1.0)
    monitor.stop()


def test_a_stopped_watch_says_nothing(gone: threading.Event) -> None:
    server = HeartbeatServer("127.0.0.1")
    monitor = HeartbeatMonitor(server.address, gone.set)
    held(server)
    monitor.stop()
    server.close()
    assert not gone.wait(0.5)


def held(server: HeartbeatServer, other_than: socket.socket | None = None) -> socket.socket:
    """Wait until the server holds a connection, another than the one named."""
    for _ in range(1000):
        for connection in server._held:
            if connection is not other_than:
                return connection
        threading.Event().wait(0.01)
    raise AssertionError("no connection came")
