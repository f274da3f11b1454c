"""A supervisor's death, seen by its follower in milliseconds rather than in a session timeout.

ZooKeeper keeps the session of a killed process until it times out. So each supervisor accepts TCP
connections and says in its znode where, and under which session the znode lives. The follower
holds such a connection. When it ends, and no new one can be made, the follower closes the dead
session itself. A wrong guess costs a failover and nothing else: the log is protected by its epoch.
"""

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import NamedTuple

import structlog
from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError

_CONNECT_S = 0.25
_ATTEMPTS = 2
_CLOSE_S = 2.0
_LOG = structlog.get_logger()


class Whereabouts(NamedTuple):
    """What a znode says of its supervisor.

    Attributes:
        name: the engine's name.
        address: where its beacon listens, "host:port"; empty: nowhere.
        session: ZooKeeper's session id, as a number.
        password: the session's password, as hex digits.
    """

    name: str
    address: str = ""
    session: int = 0
    password: str = ""


class Beacon:
    """Accepts connections and holds them; they end when this process does."""

    def __init__(self, host: str) -> None:
        """Listen on a free port of `host`; 0.0.0.0 is announced as this machine's own address."""
        self._server = socket.create_server((host, 0))
        own = socket.gethostbyname(socket.gethostname()) if host == "0.0.0.0" else host  # noqa: S104
        self.address = f"{own}:{self._server.getsockname()[1]}"
        self._held: list[socket.socket] = []
        threading.Thread(target=self._accept, name="beacon", daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                connection, _ = self._server.accept()
                self._held = [other for other in self._held if not _ended(other)]
                self._held.append(connection)

    def close(self) -> None:
        """Stop listening, and end all connections."""
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # closing alone would not end the accept
        self._server.close()
        for connection in self._held:
            connection.close()


class Watch:
    """Holds a connection to a beacon; calls `on_end` once, from its own thread, when it is gone."""

    def __init__(self, address: str, on_end: Callable[[], None]) -> None:
        self._address, self._on_end = address, on_end
        self._stopped = threading.Event()
        self._connection: socket.socket | None = None
        threading.Thread(target=self._run, name="watch", daemon=True).start()

    def stop(self) -> None:
        """Look no longer; `on_end` is not called any more."""
        self._stopped.set()
        if self._connection:
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        while self._connect():
            if self._connection:
                with self._connection as connection, contextlib.suppress(OSError):
                    connection.recv(1)  # nothing is ever sent: this returns at the end
            if self._stopped.is_set():
                return
        if not self._stopped.is_set():
            self._on_end()

    def _connect(self) -> bool:
        """Connect, and say whether that was possible; a second attempt forgives a lost packet."""
        host, _, port = self._address.rpartition(":")
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(OSError):
                self._connection = socket.create_connection((host, int(port)), _CONNECT_S)
                self._connection.settimeout(None)
                return True
        return False


def close_session(servers: str, dead: Whereabouts) -> None:
    """Close a session of somebody else, by which its znode goes away.

    Args:
        servers: ZooKeeper's addresses.
        dead: whose session it is.
    """
    client = KazooClient(
        hosts=servers, client_id=(dead.session, bytes.fromhex(dead.password)), timeout=_CLOSE_S
    )
    try:
        client.start(_CLOSE_S)
        _LOG.info("closed the session of a dead predecessor", predecessor=dead.name)
    except KazooTimeoutError:
        _LOG.info("a dead predecessor's session has to time out", predecessor=dead.name)
    finally:
        client.stop()
        client.close()


def _ended(connection: socket.socket) -> bool:
    """Say whether the other side has gone, and close our side then."""
    try:
        ended = connection.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        ended = True
    if ended:
        connection.close()
    return ended
