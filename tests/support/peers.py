"""Peers of adapters of sockets."""

import contextlib
import random
import socket
import threading

from espha.local.ports import HOST


class NumberedPeer:
    """Takes numbered lines of a stream, and breaks off now and then."""

    def __init__(self, breaks: float = 0.001) -> None:
        """Listen on a free port; `breaks`: the chance behind each line."""
        self.rows: list[str] = []
        self.streams: set[str] = set()
        self._next = 0
        self._breaks = breaks
        self._chance = random.Random(7)
        self._server = socket.create_server((HOST, 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def address(self) -> str:
        """`HOST:PORT`."""
        return f"{HOST}:{self.port}"

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                with connection, contextlib.suppress(OSError):
                    self._talk(connection)

    def _talk(self, connection: socket.socket) -> None:
        file = connection.makefile("rb")
        self.streams.add(file.readline().decode().strip())
        connection.sendall(b"%d\n" % self._next)
        while (line := file.readline()).endswith(b"\n"):
            number, _, row = line.decode().rstrip("\n").partition(" ")
            if int(number) >= self._next:
                self.rows.append(row)
                self._next = int(number) + 1
            if self._chance.random() < self._breaks:
                return
            connection.sendall(b"%d\n" % self._next)

    def close(self) -> None:
        """Stop to listen."""
        self._server.close()
