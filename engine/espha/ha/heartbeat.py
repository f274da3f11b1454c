"""A replica's death, seen by those behind it in milliseconds rather than in a session timeout.

ZooKeeper keeps the session of a killed process until it times out. So each supervisor accepts TCP
connections, on which it sends a byte now and then, and each child accepts some on which it says
nothing (its lifeline); both addresses stand in the znode, with the session under which the znode
lives. Those behind hold such connections. One that ends, and cannot be made anew, means that its
process is gone; a supervisor that falls silent is frozen, or its machine is gone. A wrong guess
costs a failover and nothing else: the log is protected by its epoch. Where no connection was ever
possible nobody guesses: two that cannot reach each other would else depose each other for ever.
"""

import contextlib
import math
import socket
import threading
import time
from collections.abc import Callable
from enum import Enum, auto
from urllib.parse import urlsplit

from espha.ha.failure_detector import FailureDetector
from espha.protocol.lifeline import accepted

_CONNECT_S = 0.25
_ATTEMPTS = 2
_AGAIN_S = 1.0
_BEAT_S = 0.1
_HELD_AT_MOST = 64
_ZOOKEEPER_PORT = 2181
_ANY = "0.0.0.0"  # noqa: S104 - compared with, not listened on


class HeartbeatServer:
    """Accepts connections and sends a byte on each now and then; they end with this process."""

    def __init__(
        self, host: str, port: int = 0, towards: str = "", failure_timeout_ms: int = 500
    ) -> None:
        """Listen.

        Args:
            host: on which address; 0.0.0.0 is announced as the one that leads `towards` somebody.
            port: on which port; 0: a free one.
            towards: servers, "host:port,…", that this machine reaches as others reach this one.
            failure_timeout_ms: others take this one for dead when it says nothing for so long.

        Raises:
            OSError: the port is in use.
            RuntimeError: there is no room for a thread.
        """
        self._server = socket.create_server((host, port))
        self.host = own_address(towards) if host == _ANY else host
        self.address = f"{self.host}:{self._server.getsockname()[1]}"
        self._lock = threading.Lock()
        self._held: list[socket.socket] = []
        self._closed = threading.Event()
        # Others count ticks from the last byte that they heard, which may be one old.
        self._patience_s = max(failure_timeout_ms / 1000 - _BEAT_S, 2 * _BEAT_S)
        self._beaten, self._woke_at = time.monotonic(), -math.inf
        try:
            threading.Thread(target=self._accept, name="heartbeat-server", daemon=True).start()
            threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()
        except RuntimeError:
            self.close()
            raise

    @property
    def watched(self) -> int:
        """How many connections others hold to this one."""
        return len(self._held)

    @property
    def woke_at(self) -> float:
        """When this process last went on after it was frozen for so long that others noticed.

        In seconds of the monotonic clock; it may be now, before any thread has seen it.
        """
        return self._woken(time.monotonic())

    def _woken(self, now: float) -> float:
        return now if now - self._beaten > self._patience_s else self._woke_at

    def _accept(self) -> None:
        for connection in accepted(self._server, self._closed):
            connection.setblocking(False)
            with self._lock:
                self._held.append(connection)
                # Whoever floods this costs the oldest its connection; it makes a new one.
                if len(self._held) > _HELD_AT_MOST:
                    self._held.pop(0).close()

    def _beat(self) -> None:
        while not self._closed.wait(_BEAT_S):
            now = time.monotonic()
            self._woke_at = self._woken(now)
            self._beaten = now
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
            self._held = []


class End(Enum):
    """What is known of somebody who is not heard any more."""

    ENDED = auto()
    """Its process is gone: the connection has ended, and no new one can be made."""
    SILENT = auto()
    """Its connection stands, and nothing comes."""


class Monitor:
    """Holds a connection to a heartbeat server or a lifeline; calls `on_end` once at its end.

    `on_end` is called from a thread of its own. A server that cannot be reached from the first is
    looked for again and again, and never said to be gone.
    """

    def __init__(
        self, address: str, on_end: Callable[[End], None], failure_timeout_ms: int | None = None
    ) -> None:
        """Watch the server at `address`.

        Args:
            address: host and port.
            on_end: called with what has come of it.
            failure_timeout_ms: how long it may say nothing, ms; None: for ever.
        """
        self._address, self._on_end = address, on_end
        self._detector = (
            FailureDetector(failure_timeout_ms / 1000, _BEAT_S) if failure_timeout_ms else None
        )
        self._stopped = threading.Event()
        self._connection: socket.socket | None = None
        threading.Thread(target=self._run, name="monitor", daemon=True).start()

    def stop(self) -> None:
        """Look no longer; `on_end` is not called any more."""
        self._stopped.set()
        if self._connection:
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        while not self._connect():
            if self._stopped.wait(_AGAIN_S):
                return
        how = End.ENDED
        while not self._stopped.is_set():
            if self._hears_nothing():
                how = End.SILENT
                break
            if not self._stopped.is_set() and not self._connect():
                break
        if not self._stopped.is_set():
            self._on_end(how)

    def _connect(self) -> bool:
        """Connect, and say whether that was possible; a second attempt forgives a lost packet."""
        host, _, port = self._address.rpartition(":")
        for _ in range(_ATTEMPTS):
            try:
                self._connection = socket.create_connection((host, int(port)), _CONNECT_S)
            except ConnectionRefusedError:  # nothing was lost: nobody listens there
                return False
            except OSError:
                continue
            return True
        return False

    def _hears_nothing(self) -> bool:
        """Listen until the connection ends (False), or until it has been silent (True)."""
        connection, detector = self._connection, self._detector
        if connection is None or self._stopped.is_set():
            return False
        with connection, contextlib.suppress(OSError):
            if detector is None:
                connection.settimeout(None)
                while connection.recv(64):
                    pass
                return False
            detector.heartbeat()
            connection.settimeout(_BEAT_S)
            while not detector.suspected:
                try:
                    if not connection.recv(64):
                        return False
                    detector.heartbeat()
                except TimeoutError:
                    detector.tick()
            return True
        return False


def own_address(towards: str) -> str:
    """Return the address of this machine with which it speaks to the first of `towards` it knows.

    The name of the machine is no help: on many it stands for an address of the loopback.
    """
    for server in filter(None, map(str.strip, towards.split(","))):
        place = urlsplit(f"//{server}")
        with contextlib.suppress(OSError):
            kind, _, _, _, address = socket.getaddrinfo(
                place.hostname, place.port or _ZOOKEEPER_PORT, type=socket.SOCK_DGRAM
            )[0]
            with socket.socket(kind, socket.SOCK_DGRAM) as unsent:  # connecting sends nothing
                unsent.connect(address)
                return str(unsent.getsockname()[0])
    return socket.gethostbyname(socket.gethostname())


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
