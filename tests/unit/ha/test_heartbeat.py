"""A look at the processes of others: they end, fall silent, or never were there."""

import errno
import math
import socket
import subprocess
import sys
import threading
import time
from itertools import pairwise
from queue import Empty, SimpleQueue

import pytest

from espha.ha import heartbeat
from espha.ha.heartbeat import End, HeartbeatServer, Monitor, own_address
from espha.local.waiting import wait_until
from espha.protocol.lifeline import Lifeline
from support.processes import descriptors

BEACON = """
import sys
from espha.ha.heartbeat import HeartbeatServer
print(HeartbeatServer("127.0.0.1").address, flush=True)
sys.stdin.read()
"""
LIFELINE = """
import sys
from espha.protocol.lifeline import Lifeline
print(f"127.0.0.1:{Lifeline('127.0.0.1', 0).port}", flush=True)
sys.stdin.read()
"""

Ends = SimpleQueue[End]


@pytest.fixture
def ends() -> Ends:
    """What monitors have said."""
    return SimpleQueue()


def nothing(ends: Ends, seconds: float) -> bool:
    """Tell whether nothing is said for a while."""
    try:
        ends.get(timeout=seconds)
    except Empty:
        return True
    return False


@pytest.mark.parametrize(("program", "timeout_ms"), [(BEACON, 500), (LIFELINE, None)])
def test_a_killed_process_is_noticed(ends: Ends, program: str, timeout_ms: int | None) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        Monitor(process.stdout.readline().strip(), ends.put, timeout_ms)
        assert nothing(ends, 0.3)
        process.kill()
        assert ends.get(timeout=10) is End.ENDED


def test_a_cut_connection_alone_is_no_death(ends: Ends) -> None:
    """The monitor connects again, and sees the end when it comes."""
    server = HeartbeatServer("127.0.0.1")
    Monitor(server.address, ends.put, 500)
    first = held(server)
    first.shutdown(socket.SHUT_RDWR)
    assert held(server, other_than=first)
    assert ends.empty()
    server.close()
    assert ends.get(timeout=10) is End.ENDED


def test_nobody_there_from_the_first_is_no_death(ends: Ends) -> None:
    """Two that refuse each other's connections would else end each other's sessions for ever."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    monitor = Monitor(address, ends.put, 500)
    assert nothing(ends, 1.5)
    monitor.stop()


def test_a_server_that_says_nothing_more_is_silent(ends: Ends) -> None:
    """A frozen process: its connection stays, but nothing comes."""
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        Monitor(f"127.0.0.1:{frozen.getsockname()[1]}", ends.put, failure_timeout_ms=300)
        connection, _ = frozen.accept()
        with connection:
            connection.send(b".")
            assert ends.get(timeout=10) is End.SILENT


def test_a_server_that_is_heard_lives(ends: Ends) -> None:
    server = HeartbeatServer("127.0.0.1")
    Monitor(server.address, ends.put, failure_timeout_ms=300)
    held(server)
    assert nothing(ends, 1.0)
    server.close()
    assert ends.get(timeout=10) is End.ENDED


def test_whom_nobody_could_ever_reach_is_not_dead(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that cannot reach each other would else end each other's sessions for ever."""
    tried = threading.Event()

    def unreachable(*_: object) -> socket.socket:
        tried.set()
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", unreachable)
    monitor = Monitor("192.0.2.1:1", ends.put, 500)
    assert tried.wait(10)
    assert nothing(ends, 1.0)
    monitor.stop()


def test_a_stopped_watch_says_nothing(ends: Ends) -> None:
    server = HeartbeatServer("127.0.0.1")
    monitor = Monitor(server.address, ends.put, 500)
    held(server)
    monitor.stop()
    server.close()
    assert nothing(ends, 0.5)


def test_who_opens_many_connections_pushes_nobody_out_for_good(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server holds a bounded number; a follower that was pushed out comes back."""
    monkeypatch.setattr(heartbeat, "_HELD_AT_MOST", 4)
    server = HeartbeatServer("127.0.0.1")
    Monitor(server.address, ends.put, 500)
    first = held(server)
    host, port = server.address.split(":")
    flood = [socket.create_connection((host, int(port))) for _ in range(10)]
    assert held(server, other_than=first)
    assert server.watched <= 4
    assert nothing(ends, 0.3)
    for connection in flood:
        connection.close()
    server.close()
    assert ends.get(timeout=10) is End.ENDED


def test_a_server_without_room_for_a_moment_accepts_again(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is no longer accepted gets no byte, and takes a healthy engine for frozen."""
    crowded = Crowded(socket.create_server(("127.0.0.1", 0)))
    monkeypatch.setattr(socket, "create_server", lambda at: crowded)
    server = HeartbeatServer("127.0.0.1")
    watch = Monitor(server.address, ends.put, 500)
    assert held(server)
    assert nothing(ends, 0.6)
    watch.stop()
    server.close()


def test_a_lifeline_without_room_for_a_moment_accepts_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crowded = Crowded(socket.create_server(("127.0.0.1", 0)))
    monkeypatch.setattr(socket, "create_server", lambda at: crowded)
    line = Lifeline("127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", line.port)):
        wait_until(lambda: bool(line._held), 60, "it is held")
    line.end()


def test_whoever_speaks_in_time_was_not_frozen(ends: Ends) -> None:
    """Also where others have the least patience that can be set."""
    server = HeartbeatServer("127.0.0.1", failure_timeout_ms=200)
    Monitor(server.address, ends.put, 10_000)
    held(server)
    beaten = {server._beaten}

    def spoken() -> bool:
        beaten.add(server._beaten)
        return len(beaten) > 5

    wait_until(spoken, 60, "it speaks")
    pauses = [later - sooner for sooner, later in pairwise(sorted(beaten))]
    assert (server.woke_at > -math.inf) == (max(pauses) > 0.2), "it was late, or it was not"
    server.close()


def test_who_was_frozen_knows_it(ends: Ends) -> None:
    """As soon as anybody asks, and until others can tell whether it has been replaced."""
    server = HeartbeatServer("127.0.0.1", failure_timeout_ms=300)
    Monitor(server.address, ends.put, 10_000)
    held(server)
    frozen = time.monotonic()
    assert server.woke_at < frozen
    with server._lock:  # nothing is said
        wait_until(lambda: server.woke_at > frozen, 60, "it is silent")
    wait_until(lambda: time.monotonic() - server.woke_at > 0.5, 60, "it speaks again")
    assert server.woke_at > frozen
    server.close()


class Crowded:
    """A listening socket; its process has no file descriptor left, twice."""

    def __init__(self, server: socket.socket) -> None:
        self._server, self._refuses = server, 2

    def accept(self) -> tuple[socket.socket, object]:
        """Fail as the system call does, and then accept."""
        if self._refuses:
            self._refuses -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return self._server.accept()

    def __getattr__(self, name: str) -> object:
        return getattr(self._server, name)


def test_a_name_that_means_the_loopback_is_not_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    """On many machines their own name stands for 127.0.1.1: a follower would ask itself."""
    monkeypatch.setattr(socket, "gethostbyname", lambda _: "127.0.1.1")
    server = HeartbeatServer("0.0.0.0", towards="127.0.0.1:2181")  # noqa: S104
    assert server.host == own_address("nobody.invalid:1,127.0.0.1:2181") == "127.0.0.1"
    server.close()


def test_a_port_can_be_fixed_and_used_again() -> None:
    """Each life of a child has a server of its own, on the same port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for _ in range(2):
        server = HeartbeatServer("127.0.0.1", port)
        assert server.address == f"127.0.0.1:{port}"
        with socket.create_connection(("127.0.0.1", port)) as follower:
            assert follower.recv(1) == b"."
            server.close()


def test_a_lifeline_whose_port_is_taken_is_none() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert Lifeline("127.0.0.1", taken.getsockname()[1]).port == 0


def test_a_process_that_is_about_to_end_says_so(ends: Ends) -> None:
    """It lets go of its lifeline, and still is there."""
    lifeline = Lifeline("127.0.0.1", 0)
    Monitor(f"127.0.0.1:{lifeline.port}", ends.put)
    assert nothing(ends, 0.3)
    lifeline.end()
    assert ends.get(timeout=10) is End.ENDED


def test_a_lifeline_holds_no_more_connections_than_it_needs() -> None:
    port = Lifeline("127.0.0.1", 0).port
    before = descriptors()
    flood = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
    for connection in flood[:60]:
        connection.settimeout(10)
        assert connection.recv(1) == b""
    assert descriptors() <= before + 100 + 40
    for connection in flood:
        connection.close()


def held(server: HeartbeatServer, other_than: socket.socket | None = None) -> socket.socket:
    """Wait until the server holds a connection, another than the one named."""
    for _ in range(1000):
        for connection in server._held:
            if connection is not other_than:
                return connection
        threading.Event().wait(0.01)
    raise AssertionError("no connection came")
