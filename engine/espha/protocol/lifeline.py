"""A port that a child holds: connections to it end when its process does, whatever the reason.

Those that stand behind in the election hold such connections. Nothing is ever said on them.
"""

import contextlib
import socket
import threading
from collections import deque
from collections.abc import Iterator

import structlog

_HELD_AT_MOST = 32
_AGAIN_S = 0.1
_LOG = structlog.get_logger()


def accepted(server: socket.socket, ended: threading.Event) -> Iterator[socket.socket]:
    """Yield each connection to a server, until `ended` is set."""
    while not ended.is_set():
        try:
            connection, _ = server.accept()
        except OSError:  # it has ended, or this process has no room for a connection just now
            ended.wait(_AGAIN_S)
        else:
            yield connection


class Lifeline:
    """Accepts connections and keeps the newest ones, until this process ends."""

    def __init__(self, host: str, port: int) -> None:
        """Listen on a port, 0: a free one; one that is in use costs only the lifeline."""
        self.port = 0
        """Where it listens; 0: nowhere."""
        self._ended = threading.Event()
        # One that is pushed out by newer ones makes a new connection; an end is more than that.
        self._held: deque[socket.socket] = deque(maxlen=_HELD_AT_MOST)
        try:
            self._server = socket.create_server((host, port))
        except OSError as error:
            self._server = socket.socket()
            _LOG.warning("no lifeline", port=port, error=str(error))
            return
        self.port = int(self._server.getsockname()[1])
        threading.Thread(target=self._accept, name="lifeline", daemon=True).start()

    def end(self) -> None:
        """End it now: this process follows, but the kernel clears its memory first.

        Whoever finds a connection cut tries to make a new one, and must be refused.
        """
        self._ended.set()
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        while self._held:
            with contextlib.suppress(OSError):
                self._held.pop().shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        for connection in accepted(self._server, self._ended):
            self._held.append(connection)
