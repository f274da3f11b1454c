"""Adapters on the net as processes, killed while they work: nothing is lost, nothing is double."""

import contextlib
import json
import os
import random
import socket
import threading
import uuid
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import urllib3

from espha.checker.watch import read_all
from espha.connectors.topics import topic_plan
from espha.kafka.writer import FencedWriter, Record
from espha.local.ports import HOST, free_ports
from espha.reader import read_project
from support.replicas import Replica, active_of
from support.servers import Kafka, ZooKeeper, wait_until

pytestmark = pytest.mark.component

MODEL = Path(__file__).parents[2] / "manifests" / "models" / "ha-project.xml"
KILLS = 5


class Net:
    """Topics, and adapters on them."""

    def __init__(self, kafka: Kafka, zookeeper: ZooKeeper, folder: Path) -> None:
        self.kafka, self.folder = kafka, folder
        self.prefix = f"n{uuid.uuid4().hex[:8]}"
        plan = topic_plan(read_project(MODEL.read_bytes()), self.prefix)
        kafka.make_topics(*plan.all())
        self.inputs, self.outputs = plan.inputs["cq/memory"], plan.outputs["cq/outbound"]
        self._environment = {
            "ESPHA_BOOTSTRAP": kafka.bootstrap,
            "ESPHA_ZOOKEEPER": zookeeper.connect,
            "ESPHA_MODEL": str(MODEL),
            "ESPHA_PREFIX": self.prefix,
            "PYTHONPATH": os.pathsep.join(["engine", os.environ.get("PYTHONPATH", "")]),
        }
        self.replicas: list[Replica] = []

    def start(self, name: str, direction: str, config: Mapping[str, object]) -> Replica:
        """Start an adapter under its supervisor."""
        window = "cq/memory" if direction == "input" else "cq/outbound"
        path = self.folder / f"{name}.json"
        adapter = name.rpartition("-")[0]
        path.write_text(json.dumps({"name": adapter, "window": window, **config}))
        election = [] if direction == "input" else ["--no-election"]
        arguments = [*election, "--", "adapter", direction, "--config", str(path)]
        root = f"/ESP/test/{self.prefix}/adapters/{adapter}"
        replica = Replica(name, self.folder, arguments, {**self._environment, "ESPHA_ROOT": root})
        self.replicas.append(replica)
        replica.start()
        return replica

    def kill_active(self) -> None:
        """Kill each adapter's process that works now."""
        for replica in active_of(self.replicas):
            with contextlib.suppress(LookupError, ProcessLookupError):
                replica.kill_child()

    def stop(self) -> None:
        """End all adapters."""
        for replica in self.replicas:
            replica.stop()


@pytest.fixture
def net(kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Net]:
    """Empty topics; adapters of the test end with it."""
    made = Net(kafka, zookeeper, tmp_path)
    try:
        yield made
    finally:
        made.stop()


class Poster(threading.Thread):
    """Posts requests one after the other, each until it is answered with 200."""

    def __init__(self, url: str, requests: int) -> None:
        super().__init__(daemon=True)
        self._url, self._requests = url, requests
        self._pool = urllib3.PoolManager()
        self.done = 0
        self.repeated = 0

    def run(self) -> None:
        """Post all of them."""
        for number in range(self._requests):
            rows = "".join(f"{number * 3 + row},0,0,1\n" for row in range(3))
            while not self._post(rows.encode(), f"request-{number}"):
                pass
            self.done += 1

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


class Sender(threading.Thread):
    """Sends numbered lines, and goes on where the other side says."""

    def __init__(self, port: int, lines: int) -> None:
        super().__init__(daemon=True)
        self._port, self._lines = port, lines
        self.safe = 0

    def run(self) -> None:
        """Send all of them."""
        while self.safe < self._lines:
            with contextlib.suppress(OSError, ValueError), self._connected() as connection:
                file = connection.makefile("rb")
                connection.sendall(b"numbers\n")
                number = int(file.readline())
                while self.safe < self._lines:
                    end = min(number + 50, self._lines)
                    lines = (f"{one} {1_000_000 + one},0,0,2\n" for one in range(number, end))
                    connection.sendall("".join(lines).encode())
                    number = end
                    while self.safe < number:
                        self.safe = int(file.readline())

    def _connected(self) -> socket.socket:
        return socket.create_connection((HOST, self._port), 10)


def test_rows_from_the_net_are_published_once_whatever_is_killed(net: Net) -> None:
    """A pair for each source; senders send again what was not said to be safe."""
    web, lines = free_ports(2)
    plain = {"opcode": False, "flags": False, "autogenField": False}
    for number in range(2):
        net.start(f"posts-{number}", "input", {"http": {"port": web, "format": plain}})
        socket_of = {"port": lines, "ids": True, "format": plain}
        net.start(f"lines-{number}", "input", {"socket": socket_of})
    poster, sender = Poster(f"http://{HOST}:{web}/", 600), Sender(lines, 20_000)
    poster.start()
    sender.start()
    for kill in range(KILLS):
        goal = (kill + 1) * 500 // KILLS
        wait_until(lambda goal=goal: poster.done >= goal, 120, "requests")  # type: ignore[misc]
        net.kill_active()
    wait_until(lambda: not poster.is_alive() and not sender.is_alive(), 120, "the last row")
    published = [each.value for each in read_all(net.kafka.bootstrap, net.inputs)]
    posted = [row for row in published if row.endswith(",1")]
    sent = [row for row in published if row.endswith(",2")]
    assert posted == [f"I,N,,{number},0,0,1" for number in range(1800)]
    assert sent == [f"I,N,,{1_000_000 + number},0,0,2" for number in range(20_000)]


class Receiver(ThreadingHTTPServer):
    """Takes requests; fails now and then, also behind what it has taken."""

    daemon_threads = True

    def __init__(self) -> None:
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
        if lot < 0.1:
            self.send_error(503)
            return
        key = self.headers["Idempotency-Key"]
        self.server.differ += self.server.taken.setdefault(key, body) != body
        self.send_response(200 if lot > 0.2 else 500)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""


class Numbers:
    """Takes numbered lines of a stream, and breaks off now and then."""

    def __init__(self) -> None:
        self.rows: list[str] = []
        self._next = 0
        self._chance = random.Random(7)
        self._server = socket.create_server((HOST, 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                with connection, contextlib.suppress(OSError):
                    self._talk(connection)

    def _talk(self, connection: socket.socket) -> None:
        file = connection.makefile("rb")
        file.readline()
        connection.sendall(b"%d\n" % self._next)
        while (line := file.readline()).endswith(b"\n"):
            number, _, row = line.decode().rstrip("\n").partition(" ")
            if int(number) >= self._next:
                self.rows.append(row)
                self._next = int(number) + 1
            if self._chance.random() < 0.001:
                return
            connection.sendall(b"%d\n" % self._next)

    def close(self) -> None:
        """Stop to listen."""
        self._server.close()


def test_rows_reach_the_net_once_by_their_ids_whatever_is_killed(net: Net) -> None:
    """A server that forgets to answer, a peer that breaks off, and adapters that are killed."""
    web, numbers = Receiver(), Numbers()
    address = f"http://{HOST}:{web.server_address[1]}/rows"
    net.start("web-0", "output", {"http": {"address": address, "maxRows": 20}})
    net.start("peer-0", "output", {"socket": {"connect": f"{HOST}:{numbers.port}", "ids": True}})
    writer = FencedWriter(net.kafka.bootstrap, f"test-{net.prefix}")
    writer.fence()
    expected: list[str] = []
    try:
        for kill in range(KILLS + 1):
            for _ in range(20):
                rows = [f"I,N, {len(expected) + one},1,2" for one in range(10)]
                writer.commit([Record(net.outputs, row.encode()) for row in rows])
                expected += rows
            goal = len(expected) - 100
            wait_until(lambda goal=goal: len(web.rows()) >= goal, 120, "posts")  # type: ignore[misc]
            if kill < KILLS:
                net.kill_active()
        wait_until(lambda: len(web.rows()) >= len(expected), 120, "the last post")
        wait_until(lambda: len(numbers.rows) >= len(expected), 120, "the last line")
        assert web.rows() == expected
        assert web.differ == 0
        assert numbers.rows == expected
    finally:
        web.shutdown()
        web.server_close()
        numbers.close()
