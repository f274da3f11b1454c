"""Peers that connect to an output adapter of sockets."""

import contextlib
import random
import socket
import threading
import time

from espha.local.ports import HOST


class NumberedCaller:
    """Connects, takes numbered lines of a stream, and breaks off now and then."""

    def __init__(self, port: int, breaks: float = 0.001) -> None:
        """Connect to a port again and again; `breaks`: the chance behind each line."""
        self.rows: list[str] = []
        self.streams: set[str] = set()
        self._port, self._breaks = port, breaks
        self._next = 0
        self._chance = random.Random(7)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(OSError, ValueError), self._connected() as connection:
                self._talk(connection)
            time.sleep(0.05)

    def _connected(self) -> socket.socket:
        return socket.create_connection((HOST, self._port), 20)

    def _talk(self, connection: socket.socket) -> None:
        file = connection.makefile("rb")
        name = file.readline()
        if not name:
            return
        self.streams.add(name.decode().strip())
        connection.sendall(b"%d\n" % self._next)
        while (line := file.readline()).endswith(b"\n") and not self._over.is_set():
            number, _, row = line.decode().rstrip("\n").partition(" ")
            if int(number) >= self._next:
                self.rows.append(row)
                self._next = int(number) + 1
            if self._chance.random() < self._breaks:
                return
            connection.sendall(b"%d\n" % self._next)

    def close(self) -> None:
        """Call no more."""
        self._over.set()
        self._thread.join(30)
