"""Adapters on the net as processes, killed while they work: nothing is lost, nothing is double."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from espha.kafka.writer import FencedWriter, Record
from espha.local.ports import HOST
from support.adapters import Adapters, stopped_at_the_end
from support.peers import NumberedCaller, NumberedPeer, Poster, Receiver, Sender
from support.replicas import LIMIT_S
from support.servers import Kafka, ZooKeeper, free_ports, wait_until

pytestmark = pytest.mark.component

KILLS = 5


@pytest.fixture
def net(kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Adapters]:
    """Empty topics; adapters of the test end with it."""
    with stopped_at_the_end(Adapters(kafka, zookeeper, tmp_path)) as made:
        yield made


@pytest.mark.long
def test_rows_from_the_net_are_published_once_whatever_is_killed(net: Adapters) -> None:
    """A pair for each source; senders send again what was not said to be safe."""
    web, lines = free_ports(2)
    plain = {"opcode": False, "flags": False, "autogenField": False}
    for number in range(2):
        net.start(f"posts-{number}", "input", http={"port": web, "format": plain})
        socket_of = {"port": lines, "ids": True, "format": plain}
        net.start(f"lines-{number}", "input", socket=socket_of)
    poster = Poster(f"http://{HOST}:{web}/", lambda number: f"{number},0,0,1")
    sender = Sender(lines, lambda number: f"{1_000_000 + number},0,0,2")

    def post() -> None:
        for until in range(3, 1801, 3):
            poster.send(until)

    senders = [
        threading.Thread(target=post, daemon=True),
        threading.Thread(target=sender.send, args=(20_000,), daemon=True),
    ]
    for one in senders:
        one.start()
    for kill in range(KILLS):
        goal = (kill + 1) * 1500 // KILLS
        wait_until(lambda goal=goal: poster.sent >= goal, 120, "requests")  # type: ignore[misc]
        net.kill_active()
    wait_until(lambda: not any(one.is_alive() for one in senders), 120, "the last row")
    sender.close()
    published = net.published()
    posted = [row for row in published if row.endswith(",1")]
    sent = [row for row in published if row.endswith(",2")]
    assert posted == [f"I,N,,{number},0,0,1" for number in range(1800)]
    assert sent == [f"I,N,,{1_000_000 + number},0,0,2" for number in range(20_000)]


def test_lines_of_standard_input_are_published_once_whoever_is_killed(net: Adapters) -> None:
    """The adapter and the command that sends are killed; the command is run again."""
    (port,) = free_ports(1)
    plain = {"opcode": False, "flags": False, "autogenField": False}
    for number in range(2):
        net.start(f"pipe-{number}", "input", socket={"port": port, "ids": True, "format": plain})
    rows = net.folder / "rows.csv"
    rows.write_text("".join(f"{number},0,0,1\n" for number in range(200_000)))
    words = [sys.executable, "-m", "espha.cli", "adapter", "send", f"{HOST}:{port}"]
    environment = {**os.environ, **net.environment}

    def sending() -> subprocess.Popen[bytes]:
        with rows.open("rb") as source:
            return subprocess.Popen(
                [*words, "--stream", "rows"], stdin=source, env=environment, stderr=subprocess.PIPE
            )

    for kill in range(KILLS):
        sender = sending()
        goal = (kill + 1) * 20_000
        wait_until(lambda goal=goal: len(net.published()) >= goal, 120, "rows")  # type: ignore[misc]
        net.kill_active()
        sender.kill()
        sender.communicate()
    sender = sending()
    wait_until(
        lambda: sender.poll() is not None,
        LIMIT_S,
        "the command has sent everything",
        each_s=0.2,
        moved=lambda: len(net.published()),
    )
    _, said = sender.communicate()
    assert sender.returncode == 0, said
    assert b"200000 lines of stream rows are published" in said
    assert net.published() == [f"I,N,,{number},0,0,1" for number in range(200_000)]


def test_rows_reach_the_net_once_by_their_ids_whatever_is_killed(net: Adapters) -> None:
    """A server that forgets to answer, a peer that breaks off, and adapters that are killed."""
    web, numbers = Receiver(), NumberedPeer()
    address = f"http://{HOST}:{web.server_address[1]}/rows"
    net.start("web-0", "output", http={"address": address, "maxRows": 20})
    net.start("peer-0", "output", socket={"connect": numbers.address, "ids": True})
    (port,) = free_ports(1)
    net.start("caller-0", "output", socket={"port": port, "ids": True})
    caller = NumberedCaller(port)
    writer = FencedWriter(net.kafka.bootstrap, f"test-{net.prefix}")
    writer.fence()
    expected: list[str] = []
    try:
        for kill in range(KILLS + 1):
            for _ in range(20):
                rows = [f"I,N, {len(expected) + one},1,2" for one in range(10)]
                writer.commit([Record(net.output_topic, row.encode()) for row in rows])
                expected += rows
            goal = len(expected) - 100
            wait_until(lambda goal=goal: len(web.rows()) >= goal, 120, "posts")  # type: ignore[misc]
            if kill < KILLS:
                net.kill_active()
        wait_until(lambda: len(web.rows()) >= len(expected), 120, "the last post")
        wait_until(lambda: len(numbers.rows) >= len(expected), 120, "the last line")
        assert web.rows() == expected
        assert web.differ == 0
        wait_until(lambda: len(caller.rows) >= len(expected), 120, "the last line that is fetched")
        assert numbers.rows == expected
        assert caller.rows == expected
    finally:
        web.shutdown()
        web.server_close()
        numbers.close()
        caller.close()
