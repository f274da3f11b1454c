"""The peer that lines are sent to: it is connected to, or connects itself."""

import contextlib
import select
import socket
from collections.abc import Callable
from typing import Final, Protocol

from espha.adapters.copying import Waiting
from espha.adapters.receiving import listening
from espha.adapters.socket_output.spec import OutputSocket

_CONNECT_S: Final = 10.0
_PEER_S: Final = 10.0
_GREETING_S: Final = 5.0
_PIECE: Final = 65_536

Moved = Callable[[], None]
"""Learns that the peer has taken a piece, or has said something."""


class Peer(Protocol):
    """Where connections to the peer come from.

    Attributes:
        name: as a user knows it.
        timeout_s: seconds after which it is late.
        greeting_s: seconds after which a new connection is given up on which it says nothing.
    """

    name: str
    timeout_s: float
    greeting_s: float

    def reach(self) -> socket.socket:
        """Return a new connection; what the peer does not take in time raises TimeoutError.

        Raises:
            OSError: there is none.
        """
        ...

    def is_back(self) -> bool:
        """Tell whether the peer has connected once more, so that the older connection is over."""
        ...


def peer_of(given: OutputSocket, host: str = "") -> Peer:
    """Return the peer that is configured; `host`: the address on which one is waited for."""
    if given.connect is not None:
        return _Called(given.connect, given.timeout_s)
    return _Calling(host, given.port or 0, given.timeout_s)


class _Called:
    """A peer that is connected to."""

    def __init__(self, address: str, timeout_s: float) -> None:
        self.name, self.timeout_s, self.greeting_s = address, timeout_s, timeout_s

    def reach(self) -> socket.socket:
        host, _, port = self.name.rpartition(":")
        connection = socket.create_connection((host, int(port)), _CONNECT_S)
        return _set_up(connection, self.timeout_s)

    def is_back(self) -> bool:
        return False


class _Calling:
    """A peer that connects. The newest connection counts: the peer may have died in older ones."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self.name, self.timeout_s = f"port {port}", timeout_s
        self.greeting_s = min(_GREETING_S, timeout_s)  # whoever connects keeps rows waiting
        self._host, self._port = host, port
        self._server: socket.socket | None = None

    def reach(self) -> socket.socket:
        if self._server is None:
            self._server = listening(self._host, self._port)
        if not can_read(self._server, _PEER_S):
            raise Waiting("no peer is connected")
        found: socket.socket | None = None
        while self.is_back():
            connection, _ = self._server.accept()
            if found is not None:
                found.close()
            found = connection
        if found is None or has_ended(found):
            raise Waiting("the peer has closed the connection")
        return _set_up(found, self.timeout_s)

    def is_back(self) -> bool:
        return self._server is not None and can_read(self._server, 0)


def can_read(one: socket.socket, timeout_s: float) -> bool:
    """Tell whether there is something to read by then: bytes, a connection, or the end."""
    return bool(select.select([one], [], [], timeout_s)[0])


def _set_up(connection: socket.socket, timeout_s: float) -> socket.socket:
    connection.settimeout(timeout_s)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return connection


def has_ended(connection: socket.socket) -> bool:
    """Tell whether the peer has closed it: what were sent then would be lost."""
    try:
        # A socket with a timeout would wait for it, whatever flags `recv` gets.
        return can_read(connection, 0) and connection.recv(1, socket.MSG_PEEK) == b""
    except OSError:
        return True


def send_all(connection: socket.socket, data: bytes, moved: Moved) -> None:
    """Send it in pieces: a peer is late when it takes none, however long it needs for all."""
    rest = memoryview(data)
    while rest:
        rest = rest[connection.send(rest[:_PIECE]) :]
        moved()


def let_go(connection: socket.socket | None) -> None:
    """Close a connection, whatever state it is in."""
    if connection is not None:
        with contextlib.suppress(OSError):
            connection.close()
