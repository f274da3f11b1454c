"""A cut cable carries nothing and tells nobody; what was on its way comes when it is back."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from chaos.proxy import Proxy, Route, Weather
from support.servers import free_ports

QUIET_S = 0.3


class Echo:
    """A server that answers what it hears."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(65536):
                connection.sendall(data)

    def close(self) -> None:
        """Serve nobody any more."""
        with contextlib.suppress(OSError):  # closed before
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()


@pytest.fixture
def echo() -> Iterator[Echo]:
    server = Echo()
    yield server
    server.close()


@pytest.fixture
def wires(echo: Echo) -> Iterator[tuple[Proxy, int, int]]:
    """A proxy with the cables `a` and `b` to the same server; their ports."""
    ports = free_ports(2)
    proxy = Proxy([Route(name, port, echo.port) for name, port in zip("ab", ports, strict=True)])
    yield proxy, ports[0], ports[1]
    proxy.stop()


def talk(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.settimeout(5)
    return connection


def exactly(connection: socket.socket, size: int) -> bytes:
    heard = bytearray()
    while len(heard) < size:
        part = connection.recv(size - len(heard))
        assert part, f"the connection ended after {len(heard)} of {size} bytes"
        heard += part
    return bytes(heard)


def hears_nothing(connection: socket.socket) -> bool:
    connection.settimeout(QUIET_S)
    try:
        return connection.recv(1) == b"never"
    except TimeoutError:
        return True
    finally:
        connection.settimeout(5)


def test_a_cut_stops_one_cable_and_healing_delivers_what_waited(
    wires: tuple[Proxy, int, int],
) -> None:
    proxy, a, b = wires
    with talk(a) as first, talk(b) as second:
        for connection in (first, second):
            connection.sendall(b"one")
            assert connection.recv(3) == b"one"
        proxy.cut("a")
        first.sendall(b"two")
        second.sendall(b"two")
        assert second.recv(3) == b"two"
        assert hears_nothing(first)
        proxy.heal("a")
        assert first.recv(3) == b"two"


def test_a_connection_made_through_a_cut_waits(wires: tuple[Proxy, int, int]) -> None:
    proxy, a, _ = wires
    proxy.cut("a")
    with talk(a) as connection:
        connection.sendall(b"early")
        assert hears_nothing(connection)
        proxy.heal("a")
        assert connection.recv(5) == b"early"


def test_a_dead_server_is_told(wires: tuple[Proxy, int, int], echo: Echo) -> None:
    _, a, _ = wires
    echo.close()
    with talk(a) as connection, pytest.raises(ConnectionResetError):
        if connection.recv(1) == b"":
            raise ConnectionResetError


def test_a_slow_wire_keeps_the_order_and_loses_nothing(wires: tuple[Proxy, int, int]) -> None:
    proxy, a, b = wires
    proxy.slow(Weather(delay_ms=5, jitter_ms=20, loss=0.05), "a")
    sent = b"".join(number.to_bytes(2, "big") for number in range(2000))
    with talk(a) as slow, talk(b) as quick:
        began = time.monotonic()
        quick.sendall(b"one")
        slow.sendall(b"one")
        assert quick.recv(3) == b"one"
        assert slow.recv(3) == b"one"
        assert time.monotonic() - began > 0.01  # five there, five back
        for place in range(0, len(sent), 100):
            slow.sendall(sent[place : place + 100])
        assert exactly(slow, len(sent)) == sent


def test_a_wire_that_was_slow_is_quick_again(wires: tuple[Proxy, int, int]) -> None:
    proxy, a, _ = wires
    with talk(a) as connection:
        proxy.slow(Weather(delay_ms=50), "a")
        connection.sendall(b"one")
        proxy.slow(Weather(), "a")
        connection.sendall(b"two")
        assert exactly(connection, 6) == b"onetwo"
