"""How long nothing is published when the active one of a pair of input adapters is killed.

`ESPHA_TAKEOVERS` says how many kills there are.
"""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles
from typing import NamedTuple

import pytest
from rich.console import Console

from component.conftest import kafka, zookeeper
from espha.kafka.reader import check, reader
from support.adapters import Adapters, counters, file_input, stopped_at_the_end
from support.replicas import active_of
from support.servers import Kafka, ZooKeeper, wait_until

__all__ = ["kafka", "zookeeper"]

RATE = 1_000
KILLS = int(os.environ.get("ESPHA_TAKEOVERS", "15"))


class Writer(threading.Thread):
    """Appends rows to a file, at a steady rate."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self._path, self.ended = path, threading.Event()
        self.count = 0

    def run(self) -> None:
        """Append until it is ended."""
        began = time.monotonic()
        with self._path.open("a", buffering=1) as file:
            while not self.ended.wait(0.002):
                due = int((time.monotonic() - began) * RATE)
                file.writelines(f"{number},1,2,3\n" for number in range(self.count, due))
                self.count = due


class Seen(NamedTuple):
    """A committed row; its number, and in ms since 1970 when it was visible and when written."""

    visible: float
    made: float
    number: int


class Watcher(threading.Thread):
    """Notes when committed rows become visible."""

    def __init__(self, kafka: Kafka, topic: str) -> None:
        super().__init__(daemon=True)
        self._consumer = reader(kafka.bootstrap, {topic: 0}, 5)
        self.ended = threading.Event()
        self.seen: list[Seen] = []

    def run(self) -> None:
        """Look until it is ended."""
        while not self.ended.is_set():
            message = self._consumer.poll(0.1)
            if message is not None and check(message):
                now, (_, made) = time.time() * 1000, message.timestamp()
                self.seen.append(Seen(now, made, *counters([(message.value() or b"").decode()])))
        self._consumer.close()

    def back_ms(self, killed: float) -> float:
        """Return when the first row was visible that was written after a moment, ms from it."""
        while True:
            for one in list(self.seen):
                if one.made > killed + 1:
                    return one.visible - killed
            time.sleep(0.01)


@pytest.fixture
def adapters(kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Adapters]:
    """Empty topics; adapters end with the test."""
    with stopped_at_the_end(Adapters(kafka, zookeeper, tmp_path)) as made:
        yield made


def test_take_over(
    adapters: Adapters, kafka: Kafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "in.csv"
    source.write_text("Record_Counter,MemoryUsed,MemoryFree,epoch\n")
    pair = adapters.start_pair("memory", **file_input(source))
    writer, watcher = Writer(source), Watcher(kafka, adapters.input_topic)
    writer.start()
    watcher.start()
    gaps = []
    for kill in range(KILLS):
        wait_until(lambda: len(watcher.seen) > 100, 60, "rows come")
        wait_until(lambda: len(active_of(pair)) == 1, 60, "only one is active")
        (active,) = active_of(pair)
        time.sleep(0.3 + 0.017 * (kill % 7))  # at any moment of a transaction
        watcher.seen.clear()
        killed = time.time() * 1000
        active.kill_child()
        gaps.append(watcher.back_ms(killed))
        wait_until(
            lambda active=active: any(one is not active for one in active_of(pair)),  # type: ignore[misc]
            60,
            "the other one is active",
        )
        wait_until(lambda: all(one.status().get("in_sync") for one in pair), 60, "both are there")
    writer.ended.set()
    writer.join()
    wait_until(lambda: watcher.seen[-1].number == writer.count - 1, 60, "the last row")
    watcher.ended.set()
    assert counters(adapters.published()) == list(range(writer.count))
    cuts = quantiles(gaps, n=20, method="inclusive")
    with capsys.disabled():
        Console(width=100).print(
            f"take-over of an input adapter, {KILLS} kills: p50 {cuts[9]:.0f} ms, "
            f"p95 {cuts[18]:.0f} ms, at most {max(gaps):.0f} ms"
        )
