"""What a row costs in each source: rows a second onto the topic, and processor time of the adapter.

And the way back: from a topic into a file.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
from confluent_kafka import Producer
from rich.console import Console

from component.conftest import kafka, zookeeper
from espha.kafka.reader import Offsets, read_range
from espha.local.ports import HOST, free_ports
from support.adapters import Adapters, file_input, stopped_at_the_end
from support.servers import Kafka, ZooKeeper, listens, wait_until

__all__ = ["kafka", "zookeeper"]

ROWS = int(os.environ.get("ESPHA_ROWS", "200000"))
PLAIN = {"opcode": False, "flags": False, "autogenField": False}
BODY, AT_ONCE = 1_000, 4


@pytest.fixture
def adapters(kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Adapters]:
    """Empty topics."""
    with stopped_at_the_end(Adapters(kafka, zookeeper, tmp_path)) as made:
        yield made


Feed = Callable[[], None]


def file(adapters: Adapters) -> tuple[dict[str, Any], Feed]:
    path = adapters.folder / "in.csv"
    path.write_text("header\n" + "".join(map(row, range(ROWS))))
    return file_input(path), lambda: None


def far_topic(adapters: Adapters) -> tuple[dict[str, Any], Feed]:
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


def http(_: Adapters) -> tuple[dict[str, Any], Feed]:
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


def lines(_: Adapters) -> tuple[dict[str, Any], Feed]:
    (port,) = free_ports(1)

    def feed() -> None:
        wait_until(lambda: listens(port), 60, "the adapter listens")
        with socket.create_connection((HOST, port)) as connection:
            for number in range(0, ROWS, BODY):
                connection.sendall("".join(map(row, range(number, number + BODY))).encode())

    return {"socket": {"port": port, "format": PLAIN}}, feed


SOURCES = {"file": file, "kafka": far_topic, "http": http, "socket": lines}


@pytest.mark.parametrize("source", SOURCES)
def test_source(source: str, adapters: Adapters, capsys: pytest.CaptureFixture[str]) -> None:
    settings, feed = SOURCES[source](adapters)
    with Running(adapters, "input", settings) as process:
        feed()
        count = 0

        def all_there() -> bool:
            nonlocal count
            bootstrap, topic = adapters.kafka.bootstrap, adapters.input_topic
            end = Offsets(bootstrap).end(topic)
            if end >= ROWS:  # markers count, too
                count = len(list(read_range(bootstrap, topic, 0, end)))
            return count >= ROWS

        wait_until(all_there, 300, "every row is there", 0.5)
    bootstrap, topic = adapters.kafka.bootstrap, adapters.input_topic
    moments = [
        one.timestamp()[1] for one in read_range(bootstrap, topic, 0, Offsets(bootstrap).end(topic))
    ]
    assert len(moments) == ROWS
    say(capsys, f"{source} → topic", (moments[-1] - moments[0]) / 1000, process.used_s)


def test_topic_to_file(adapters: Adapters, capsys: pytest.CaptureFixture[str]) -> None:
    producer = Producer(
        {"bootstrap.servers": adapters.kafka.bootstrap, "queue.buffering.max.messages": 2 * ROWS}
    )
    for number in range(ROWS):
        value = f"I,N, {number},{number},1,2,3,0.500000"
        producer.produce(adapters.output_topic, value, partition=0)
    producer.flush()
    path = adapters.folder / "out.csv"
    with Running(adapters, "output", {"file": {"path": str(path)}}) as process:
        wait_until(lambda: path.exists() and path.stat().st_size > 0, 60, "the first row")
        began = path.with_name("out.csv.lock").stat().st_mtime
        wait_until(lambda: path.read_bytes().count(b"\n") >= ROWS, 300, "the last row", 0.2)
    say(capsys, "topic → file", path.stat().st_mtime - began, process.used_s)


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


def say(capsys: pytest.CaptureFixture[str], what: str, seconds: float, used_s: float) -> None:
    with capsys.disabled():
        Console(width=100).print(
            f"{what}: {ROWS / seconds:,.0f} rows/s, {used_s / ROWS * 1e6:.1f} us of processor a "
            "row, with its start"
        )


def row(number: int) -> str:
    return f"{number},1000,2000,{1_700_000_000 + number}\n"
