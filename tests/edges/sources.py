"""A feed for each kind of input adapter; all publish to one topic, each row with a tag."""

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from confluent_kafka import Producer

from edges.rotating import Folder, RotatedFile
from espha.local.ports import HOST, free_ports
from support.adapters import Adapters, file_input
from support.mosquitto import Mosquitto
from support.mqtt_peers import Device
from support.peers import Poster, Row, Sender
from support.servers import Kafka

PLAIN = {"opcode": False, "flags": False, "autogenField": False}
ROTATE_EACH_S = 2.0
_TICK_S = 0.02
_ABORTED = 0.1


class Feed(Protocol):
    """Whoever brings rows to an adapter."""

    @property
    def sent(self) -> int:
        """All rows below this number were brought."""

    def send(self, until: int) -> None:
        """Bring all rows below a number that were not brought yet."""


@dataclass(frozen=True)
class Source:
    """An input adapter that is to be made, and who feeds it.

    Attributes:
        settings: of the adapter.
        feed: brings it rows.
        tag: what stands in the last column of its rows.
        rate: rows a second.
    """

    settings: Mapping[str, Any]
    feed: Feed
    tag: int
    rate: float


@dataclass(frozen=True)
class World:
    """What feeds need besides the adapters."""

    adapters: Adapters
    far: Kafka
    mosquitto: Mosquitto
    seed: int


class FarTransactions:
    """Rows in transactions on a topic of another cluster; some transactions are aborted."""

    def __init__(self, world: World, row: Row) -> None:
        self.topic = f"far-{world.adapters.prefix}"
        self._row, self._chance = row, random.Random(world.seed)
        world.far.make_topics(self.topic)
        self._producer = Producer(
            {"bootstrap.servers": world.far.bootstrap, "transactional.id": self.topic}
        )
        self._producer.init_transactions(60)
        self.sent = 0

    def send(self, until: int) -> None:
        """Commit rows, and now and then abort others."""
        aborted = self._chance.random() < _ABORTED
        self._producer.begin_transaction()
        for number in range(self.sent, until):
            row = "-1,1,2,-1" if aborted else self._row(number)
            self._producer.produce(self.topic, row, partition=0)
        if aborted:
            self._producer.abort_transaction(60)
        else:
            self._producer.commit_transaction(60)
            self.sent = until


def file(world: World, row: Row) -> tuple[Mapping[str, Any], RotatedFile]:
    path = world.adapters.folder / "grows" / "in.csv"
    path.parent.mkdir()
    settings = file_input(path, headerLines=0, settleS=0.5)
    return settings, RotatedFile(path, row, world.seed)


def folder(world: World, row: Row) -> tuple[Mapping[str, Any], Folder]:
    path = world.adapters.folder / "drop"
    settings = {"path": str(path), "pattern": "*.csv", "settleS": 0.2, **PLAIN}
    return {"file": settings}, Folder(path, row)


def http(_: World, row: Row) -> tuple[Mapping[str, Any], Poster]:
    (port,) = free_ports(1)
    return {"http": {"port": port, "format": PLAIN}}, Poster(f"http://{HOST}:{port}/", row)


def lines(_: World, row: Row) -> tuple[Mapping[str, Any], Sender]:
    (port,) = free_ports(1)
    return {"socket": {"port": port, "ids": True, "format": PLAIN}}, Sender(port, row)


def mqtt(world: World, row: Row) -> tuple[Mapping[str, Any], Device]:
    given = {"broker": world.mosquitto.address, "topic": "rows/+", "format": PLAIN}
    return {"mqtt": given}, Device(world.mosquitto, "rows/1", row)


def kafka(world: World, row: Row) -> tuple[Mapping[str, Any], FarTransactions]:
    feed = FarTransactions(world, row)
    servers = world.far.bootstrap
    return {"kafka": {"servers": servers, "topic": feed.topic, "format": PLAIN}}, feed


SOURCES: Mapping[str, Callable[[World, Row], tuple[Mapping[str, Any], Feed]]] = {
    "file": file, "folder": folder, "http": http, "socket": lines, "mqtt": mqtt, "kafka": kafka,
}  # fmt: skip


def source(name: str, world: World, rate: float) -> Source:
    """Make the feed of a kind of adapter."""
    tag = 1 + list(SOURCES).index(name)
    settings, feed = SOURCES[name](world, lambda number: f"{number},1,2,{tag}")
    return Source(settings, feed, tag, rate)


class Feeding(threading.Thread):
    """Feeds one adapter at a steady rate; what it could not bring in time comes later."""

    def __init__(self, name: str, feed: Feed, rate: float, rotations: int = 0) -> None:
        """Feed when started.

        Args:
            name: of the adapter.
            feed: brings the rows.
            rate: rows a second.
            rotations: how often a file is rotated; in each way in turn.
        """
        super().__init__(name=f"feed of {name}", daemon=True)
        self._feed, self._rate, self._rotations = feed, rate, rotations
        self._ended = threading.Event()
        self.count = 0
        """All rows below this number were brought; read it when the thread has ended."""
        self.error: BaseException | None = None

    def run(self) -> None:
        """Feed until it is ended."""
        try:
            self._run()
        except BaseException as error:
            self.error = error
            raise

    def _run(self) -> None:
        began = time.monotonic()
        rotated = 0
        while not self._ended.wait(_TICK_S) or rotated < self._rotations:
            taken = time.monotonic() - began
            self._feed.send(int(taken * self._rate))
            due = min(self._rotations, int(taken / ROTATE_EACH_S))
            if isinstance(self._feed, RotatedFile) and rotated < due:
                self._feed.rotate()
                rotated += 1
        self.count = max(self._feed.sent, int((time.monotonic() - began) * self._rate))
        self.count += Folder.ROWS
        while self._feed.sent < self.count:  # again, where a transaction is aborted
            self._feed.send(self.count)

    def end(self) -> None:
        """Bring what is due, and end."""
        self._ended.set()


def seen_by_tag(records: list[str]) -> dict[int, list[int]]:
    """Return the numbers of published rows by what stands in their last column, in order."""
    found: dict[int, list[int]] = {}
    for record in records:
        cells = record.split(",")
        intact = cells[:3] == ["I", "N", ""] and cells[4:6] == ["1", "2"] and len(cells) == 7
        number, tag = (int(cells[3]), int(cells[6])) if intact else (-1, -1)
        found.setdefault(tag, []).append(number)
    return found
