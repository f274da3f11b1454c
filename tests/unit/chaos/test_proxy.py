"""A cut cable carries nothing and tells nobody; what was on its way comes when it is back."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from chaos.proxy import Proxy, Route
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
