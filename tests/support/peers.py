"""Peers of adapters on the net: who sends to them, and who takes what they send."""

import contextlib
import json
import random
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import urllib3

from espha.local.ports import HOST

Row = Callable[[int], str]
"""Makes the row of a number, without a newline."""
_AGAIN_S = 0.05


class _Taker:
    """Takes numbered lines of a stream, and breaks off now and then."""

    def __init__(self, breaks: float) -> None:
        self.rows: list[str] = []
        self.streams: set[str] = set()
        self._next = 0
        self._breaks = breaks
        self._chance = random.Random(7)

    def _talk(self, connection: socket.socket) -> None:
        file = connection.makefile("rb")
        name = file.readline()
        if not name:
            return
        self.streams.add(name.decode().strip())
        connection.sendall(b"%d\n" % self._next)
        while (line := file.readline()).endswith(b"\n"):
            number, _, row = line.decode().rstrip("\n").partition(" ")
            if int(number) >= self._next:
                self.rows.append(row)
                self._next = int(number) + 1
            if self._chance.random() < self._breaks:
                return
            connection.sendall(b"%d\n" % self._next)


class NumberedPeer(_Taker):
    """Listens for whoever sends numbered lines."""

    def __init__(self, breaks: float = 0.001) -> None:
        """Listen on a free port; `breaks`: the chance behind each line."""
        super().__init__(breaks)
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

    def close(self) -> None:
        """Stop to listen."""
        self._server.close()


class NumberedCaller(_Taker):
    """Connects to whoever sends numbered lines."""

    def __init__(self, port: int, breaks: float = 0.001) -> None:
        """Connect to a port again and again; `breaks`: the chance behind each line."""
        super().__init__(breaks)
        self._port = port
        self._over = threading.Event()
        self._connection: socket.socket | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(OSError, ValueError), self._connected() as connection:
                self._connection = connection
                self._talk(connection)
            self._over.wait(_AGAIN_S)

    def _connected(self) -> socket.socket:
        return socket.create_connection((HOST, self._port), 20)

    def close(self) -> None:
        """Call no more."""
        self._over.set()
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
        self._thread.join(30)


class Poster:
    """Posts numbered rows, each request until it is answered with 200."""

    def __init__(self, url: str, row: Row) -> None:
        self._url, self._row = url, row
        self._pool = urllib3.PoolManager()
        self.sent = 0
        self.repeated = 0

    def send(self, until: int) -> None:
        """Post all rows below a number that are not sent yet, in one request."""
        body = "".join(f"{self._row(number)}\n" for number in range(self.sent, until))
        while not self._post(body.encode(), f"request-{self.sent}"):
            time.sleep(_AGAIN_S)
        self.sent = until

    def _post(self, body: bytes, key: str) -> bool:
        with contextlib.suppress(urllib3.exceptions.HTTPError):
            headers = {"Idempotency-Key": key}
            answer = self._pool.request(
                "POST", self._url, body=body, headers=headers, retries=False, timeout=10
            )
            if answer.status == 200:
                self.repeated += json.loads(answer.data)["repeated"]
                return True
        return False


class Sender:
    """Sends numbered lines of a stream, and goes on where the other side says."""

    def __init__(self, port: int, row: Row) -> None:
        self._port, self._row = port, row
        self._connection: socket.socket | None = None
        self.sent = 0
        """All below this number is safe."""

    def send(self, until: int, at_once: int = 50) -> None:
        """Send all lines below a number; return when all of them are safe."""
        while self.sent < until:
            try:
                self._go_on(until, at_once)
            except (OSError, ValueError):
                self.close()
                time.sleep(_AGAIN_S)

    def _go_on(self, until: int, at_once: int) -> None:
        if self._connection is None:
            self._connection = socket.create_connection((HOST, self._port), 10)
            self._answers = self._connection.makefile("rb")
            self._connection.sendall(b"numbers\n")
            self.sent = int(self._answers.readline())
        end = min(self.sent + at_once, until)
        lines = (f"{number} {self._row(number)}\n" for number in range(self.sent, end))
        self._connection.sendall("".join(lines).encode())
        while self.sent < end:
            self.sent = int(self._answers.readline())

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Receiver(ThreadingHTTPServer):
    """Takes requests; fails now and then, also behind what it has taken."""

    daemon_threads = True

    def __init__(self, failing: float = 0.2) -> None:
        """Listen on a free port; `failing`: share of requests that get no 200."""
        self.failing = failing
        self.taken: dict[str, bytes] = {}
        self.differ = 0
        self.chance = random.Random(7)
        super().__init__((HOST, 0), _Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def rows(self) -> list[str]:
        """Return what has come, each request once."""
        return b"".join(self.taken.values()).decode().splitlines()


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        lot = self.server.chance.random()
        if lot < self.server.failing / 2:
            self.send_error(503)
            return
        key = self.headers["Idempotency-Key"]
        self.server.differ += self.server.taken.setdefault(key, body) != body
        self.send_response(200 if lot >= self.server.failing else 500)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""
