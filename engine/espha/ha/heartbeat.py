"""A supervisor's death, seen by its follower in milliseconds rather than in a session timeout.

ZooKeeper keeps the session of a killed process until it times out. So each supervisor accepts TCP
connections, on which it sends a byte now and then, and says in its znode where, and under which
session the znode lives. The follower holds such a connection. When it ends and no new one can be
made, or when it falls silent, the follower closes the dead session itself. A wrong guess costs a
failover and nothing else: the log is protected by its epoch. Where no connection was ever possible
nobody guesses: two that cannot reach each other would else depose each other for ever.
"""

import contextlib
import socket
import threading
from collections.abc import Callable

import structlog
from kazoo.handlers.threading import KazooTimeoutError

from espha.ha import zookeeper
from espha.ha.failure_detector import FailureDetector
from espha.protocol.member import MemberInfo

_CONNECT_S = 0.25
_ATTEMPTS = 2
_AGAIN_S = 1.0
_BEAT_S = 0.1
_CLOSE_S = 2.0
_LOG = structlog.get_logger()


class HeartbeatServer:
    """Accepts connections and sends a byte on each now and then; they end with this process."""

    def __init__(self, host: str) -> None:
        """Listen on a free port of `host`; 0.0.0.0 is announced as this machine's own address."""
        self._server = socket.create_server((host, 0))
        own = socket.gethostbyname(socket.gethostname()) if host == "0.0.0.0" else host  # noqa: S104
        self.address = f"{own}:{self._server.getsockname()[1]}"
        self._lock = threading.Lock()
        self._held: list[socket.socket] = []
        self._closed = threading.Event()
        threading.Thread(target=self._accept, name="heartbeat-server", daemon=True).start()
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                connection, _ = self._server.accept()
                connection.setblocking(False)
                with self._lock:
                    self._held.append(connection)

    def _beat(self) -> None:
        while not self._closed.wait(_BEAT_S):
            with self._lock:
                self._held = [connection for connection in self._held if _sent(connection)]

    def close(self) -> None:
        """Stop listening, and end all connections: followers take this process for dead."""
        self._closed.set()
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # closing alone would not end the accept
        self._server.close()
        with self._lock:
            for connection in self._held:
                connection.close()


class HeartbeatMonitor:
    """Holds a connection to a heartbeat server; calls `on_end` once when that one is gone.

    `on_end` is called from a thread of its own. A server that cannot be reached from the first is
    looked for again and again; it is only gone when its machine says that nobody listens there.
    """

    def __init__(
        self, address: str, on_end: Callable[[], None], failure_timeout_ms: int = 500
    ) -> None:
        """Watch the server at `address`; one that says nothing for `failure_timeout_ms` is gone."""
        self._address, self._on_end = address, on_end
        self._detector = FailureDetector(failure_timeout_ms / 1000, _BEAT_S)
        self._stopped = threading.Event()
        self._connection: socket.socket | None = None
        self._refused = False
        threading.Thread(target=self._run, name="heartbeat-monitor", daemon=True).start()

    def stop(self) -> None:
        """Look no longer; `on_end` is not called any more."""
        self._stopped.set()
        if self._connection:
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        while not self._connect() and not self._refused:
            if self._stopped.wait(_AGAIN_S):
                return
        while not self._hears_nothing() and not self._stopped.is_set() and self._connect():
            pass
        if not self._stopped.is_set():
            self._on_end()

    def _connect(self) -> bool:
        """Connect, and say whether that was possible; a second attempt forgives a lost packet."""
        host, _, port = self._address.rpartition(":")
        for _ in range(_ATTEMPTS):
            try:
                self._connection = socket.create_connection((host, int(port)), _CONNECT_S)
                return True
            except OSError as error:
                self._refused = isinstance(error, ConnectionRefusedError)
        return False

    def _hears_nothing(self) -> bool:
        """Listen until the connection ends (False), or until it has been silent (True)."""
        if not self._connection:
            return False
        self._detector.heartbeat()
        with self._connection as connection, contextlib.suppress(OSError):
            connection.settimeout(_BEAT_S)
            while not self._detector.suspected:
                try:
                    if not connection.recv(64):
                        return False
                    self._detector.heartbeat()
                except TimeoutError:
                    self._detector.tick()
            return True
        return False


def close_session(servers: str, dead: MemberInfo, session_s: float) -> None:
    """Close a session of somebody else, by which its znode goes away.

    Args:
        servers: ZooKeeper's addresses.
        dead: whose session it is.
        session_s: its time-out.
    """
    identity = (dead.session, bytes.fromhex(dead.password))
    client = zookeeper.client(servers, session_s, client_id=identity)
    try:
        client.start(_CLOSE_S)
        _LOG.info("closed the session of a dead predecessor", predecessor=dead.name)
    except KazooTimeoutError:
        _LOG.info("a dead predecessor's session has to time out", predecessor=dead.name)
    finally:
        client.stop()
        client.close()


def _sent(connection: socket.socket) -> bool:
    """Send a byte; say whether somebody may hear it, and close our side when nobody does."""
    try:
        connection.send(b".")
    except BlockingIOError:  # a reader that is stopped; what it will hear is old then
        return True
    except OSError:
        connection.close()
        return False
    return True
