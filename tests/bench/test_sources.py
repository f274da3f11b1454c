"""What a row costs in each source: rows a second onto the topic, and processor time of the adapter.

And the way back: from a topic into a file, and to peers on the net.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import urllib3
from confluent_kafka import Producer
from rich.console import Console

from component.conftest import kafka, zookeeper
from espha.kafka.reader import Offsets, read_range
from espha.local.ports import HOST, free_ports
from support import mosquitto
from support.adapters import Adapters, file_input, stopped_at_the_end
from support.mqtt_peers import Device, Listener
from support.peers import NumberedPeer, Receiver
from support.servers import Kafka, ZooKeeper, listens, wait_until

__all__ = ["kafka", "zookeeper"]

ROWS = int(os.environ.get("ESPHA_ROWS", "200000"))
PLAIN = {"opcode": False, "flags": False, "autogenField": False}
BODY, AT_ONCE = 1_000, 4
IN_A_FILE = 20_000
TICKS = 5_000


class Bench(Adapters):
    """Empty topics, and what ends with them."""

    def __init__(self, kafka: Kafka, zookeeper: ZooKeeper, folder: Path) -> None:
        super().__init__(kafka, zookeeper, folder)
        self.ends = ExitStack()

    def stop(self) -> None:
        """End all of it."""
        super().stop()
        self.ends.close()


@pytest.fixture
def adapters(kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Bench]:
    """Empty topics."""
    with stopped_at_the_end(Bench(kafka, zookeeper, tmp_path)) as made:
        yield made


Feed = Callable[[], None]


def file(adapters: Bench) -> tuple[dict[str, Any], Feed]:
    path = adapters.folder / "in.csv"
    path.write_text("header\n" + "".join(map(row, range(ROWS))))
    return file_input(path), lambda: None


def far_topic(adapters: Bench) -> tuple[dict[str, Any], Feed]:
    topic = f"far-{adapters.prefix}"
    adapters.kafka.make_topics(topic)
    producer = Producer(
        {"bootstrap.servers": adapters.kafka.bootstrap, "queue.buffering.max.messages": 2 * ROWS}
    )
    for number in range(ROWS):
        producer.produce(topic, row(number).rstrip(), partition=0)
    producer.flush()
    servers = adapters.kafka.bootstrap
    return {"kafka": {"servers": servers, "topic": topic, "format": PLAIN}}, lambda: None


def http(_: Bench) -> tuple[dict[str, Any], Feed]:
    (port,) = free_ports(1)

    def post(part: int) -> None:
        pool = urllib3.PoolManager()
        for number in range(part * BODY, ROWS, BODY * AT_ONCE):
            body = "".join(map(row, range(number, number + BODY)))
            answer = pool.request("POST", f"http://{HOST}:{port}/", body=body, retries=False)
            assert answer.status == 200

    def feed() -> None:
        wait_until(lambda: listens(port), 60, "the adapter listens")
        posters = [threading.Thread(target=post, args=(part,)) for part in range(AT_ONCE)]
        for one in posters:
            one.start()
        for one in posters:
            one.join()

    return {"http": {"port": port, "format": PLAIN}}, feed


def lines(_: Bench) -> tuple[dict[str, Any], Feed]:
    (port,) = free_ports(1)

    def feed() -> None:
        wait_until(lambda: listens(port), 60, "the adapter listens")
        with socket.create_connection((HOST, port)) as connection:
            for number in range(0, ROWS, BODY):
                connection.sendall("".join(map(row, range(number, number + BODY))).encode())

    return {"socket": {"port": port, "format": PLAIN}}, feed


def folder(adapters: Bench) -> tuple[dict[str, Any], Feed]:
    path = adapters.folder / "drop"
    path.mkdir()
    for number in range(0, ROWS, IN_A_FILE):
        content = "".join(map(row, range(number, min(number + IN_A_FILE, ROWS))))
        (path / f"rows-{number:012}.csv").write_text(content)
    return {"file": {"path": str(path), "pattern": "*.csv", "settleS": 0.1, **PLAIN}}, lambda: None


def standard_input(adapters: Bench) -> tuple[dict[str, Any], Feed]:
    (port,) = free_ports(1)
    content = adapters.folder / "in.csv"
    content.write_text("".join(map(row, range(ROWS))))

    def feed() -> None:
        wait_until(lambda: listens(port), 60, "the adapter listens")
        words = [sys.executable, "-m", "espha.cli", "adapter", "send", f"{HOST}:{port}"]
        with content.open("rb") as source:
            subprocess.run(
                [*words, "--stream", "rows"],
                stdin=source, env={**os.environ, **adapters.environment}, check=True,
            )  # fmt: skip

    return {"socket": {"port": port, "ids": True, "format": PLAIN}}, feed


def mqtt(adapters: Bench) -> tuple[dict[str, Any], Feed]:
    """Rows of a device that waits for each lot to be acknowledged: fewer, as they are slow."""
    broker = adapters.ends.enter_context(mosquitto.running(mosquitto.OPEN))
    device = Device(broker, "rows/1", lambda number: row(number).rstrip())

    def feed() -> None:
        wait_until(lambda: subscribed(broker), 60, "the adapter has subscribed")
        for until in range(BODY, ROWS + 1, BODY):
            device.send(until)

    given = {"broker": broker.address, "topic": "rows/+", "format": PLAIN}
    return {"mqtt": given}, feed


def subscribed(broker: mosquitto.Mosquitto) -> bool:
    return " 1 rows/+" in broker.log.read_text()


def timer(_: Bench) -> tuple[dict[str, Any], Feed]:
    """As many ticks as there are: the figure is what a tick costs."""
    given = {"interval": 1, "unit": "millisecond", "maxEvents": TICKS}
    return {"timer": given}, lambda: None


SOURCES = {
    "file": file, "folder": folder, "kafka": far_topic, "http": http, "socket": lines,
    "standard input": standard_input, "mqtt": mqtt, "timer": timer,
}  # fmt: skip


@pytest.mark.parametrize("source", SOURCES)
def test_source(source: str, adapters: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    settings, feed = SOURCES[source](adapters)
    rows = TICKS if source == "timer" else ROWS
    with Running(adapters, "input", settings) as process:
        feed()
        count = 0

        def all_there() -> bool:
            nonlocal count
            bootstrap, topic = adapters.kafka.bootstrap, adapters.input_topic
            end = Offsets(bootstrap).end(topic)
            if end >= rows:  # markers count, too
                count = len(list(read_range(bootstrap, topic, 0, end)))
            return count >= rows

        wait_until(all_there, 300, "every row is there", 0.5)
    bootstrap, topic = adapters.kafka.bootstrap, adapters.input_topic
    moments = [
        one.timestamp()[1] for one in read_range(bootstrap, topic, 0, Offsets(bootstrap).end(topic))
    ]
    assert len(moments) == rows
    say(capsys, f"{source} → topic", (moments[-1] - moments[0]) / 1000, process.used_s, rows)


def test_topic_to_file(adapters: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    fill(adapters)
    path = adapters.folder / "out.csv"
    with Running(adapters, "output", {"file": {"path": str(path)}}) as process:
        wait_until(lambda: path.exists() and path.stat().st_size > 0, 60, "the first row")
        began = path.with_name("out.csv.lock").stat().st_mtime
        wait_until(lambda: path.read_bytes().count(b"\n") >= ROWS, 300, "the last row", 0.2)
    say(capsys, "topic → file", path.stat().st_mtime - began, process.used_s)


Count = Callable[[], int]
"""Tells how many rows have come."""


def to_http(adapters: Bench) -> tuple[dict[str, Any], Count]:
    server = Receiver(failing=0.0)
    adapters.ends.callback(server.server_close)
    adapters.ends.callback(server.shutdown)
    address = f"http://{HOST}:{server.server_address[1]}/"
    return {"http": {"address": address, "maxRows": BODY}}, lambda: len(server.rows())


def to_socket(adapters: Bench) -> tuple[dict[str, Any], Count]:
    peer = NumberedPeer(breaks=0.0)
    adapters.ends.callback(peer.close)
    return {"socket": {"connect": peer.address, "ids": True}}, lambda: len(peer.rows)


def to_topic(adapters: Bench) -> tuple[dict[str, Any], Count]:
    topic, servers = f"far-{adapters.prefix}", adapters.kafka.bootstrap
    adapters.kafka.make_topics(topic)

    def count() -> int:
        end = Offsets(servers).end(topic)
        return len(list(read_range(servers, topic, 0, end))) if end >= ROWS else 0

    return {"kafka": {"servers": servers, "topic": topic}}, count


def to_mqtt(adapters: Bench) -> tuple[dict[str, Any], Count]:
    broker = adapters.ends.enter_context(mosquitto.running())
    listener = adapters.ends.enter_context(closing(Listener(broker, "results")))
    return {"mqtt": {"broker": broker.address, "topic": "results"}}, lambda: len(listener.rows)


PEERS = {"http": to_http, "socket": to_socket, "kafka": to_topic, "mqtt": to_mqtt}


@pytest.mark.parametrize("peer", PEERS)
def test_topic_to_the_net(peer: str, adapters: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    fill(adapters)
    settings, count = PEERS[peer](adapters)
    with Running(adapters, "output", settings) as process:
        began = time.monotonic()
        wait_until(lambda: count() >= ROWS, 120, "the last row", 0.2, count)
        taken = time.monotonic() - began
    assert count() == ROWS
    say(capsys, f"topic → {peer}, with the start of the adapter", taken, process.used_s)


def fill(adapters: Bench) -> None:
    """Put all rows on the topic of results."""
    producer = Producer(
        {"bootstrap.servers": adapters.kafka.bootstrap, "queue.buffering.max.messages": 2 * ROWS}
    )
    for number in range(ROWS):
        value = f"I,N, {number},{number},1,2,3,0.500000"
        producer.produce(adapters.output_topic, value, partition=0)
    producer.flush()


class Running:
    """An adapter's process, without a supervisor: it is active at once."""

    def __init__(self, adapters: Adapters, direction: str, settings: dict[str, Any]) -> None:
        window = {"input": "cq/memory", "output": "cq/outbound"}[direction]
        config = adapters.folder / "adapter.json"
        config.write_text(json.dumps({"name": "bench", "window": window, **settings}))
        command = ["-m", "espha.cli", "adapter", direction, "--config", str(config)]
        environment = {**os.environ, **adapters.environment}
        self._process = subprocess.Popen([sys.executable, *command], env=environment)
        self.used_s = 0.0

    def __enter__(self) -> "Running":
        """Return this."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it, and note its processor time."""
        self._process.send_signal(signal.SIGKILL)
        usage = os.wait4(self._process.pid, 0)[2]
        self._process.returncode = -int(signal.SIGKILL)
        self.used_s = usage.ru_utime + usage.ru_stime


def say(
    capsys: pytest.CaptureFixture[str], what: str, seconds: float, used_s: float, rows: int = ROWS
) -> None:
    with capsys.disabled():
        Console(width=100).print(
            f"{what}: {rows / seconds:,.0f} rows/s, {used_s / rows * 1e6:.1f} us of processor a "
            "row, with its start"
        )


def row(number: int) -> str:
    return f"{number},1000,2000,{1_700_000_000 + number}\n"
