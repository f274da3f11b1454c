"""An output adapter of each kind, on one topic."""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

from edges import judge
from espha.kafka.writer import FencedWriter, Record
from espha.local.ports import HOST
from support.adapters import Adapters
from support.mosquitto import Mosquitto
from support.mqtt_peers import Listener
from support.peers import NumberedPeer, Receiver
from support.postgres import DATABASE, PASSWORD, USER, PostgreSQL
from support.servers import Kafka

KINDS = (
    "csv", "json", "parquet", "sqlite", "sqlite-upsert", "postgres", "postgres-upsert", "kafka",
    "mqtt", "http", "socket",
)  # fmt: skip
_TICK_S = 0.05
_UPDATED = 10
"""Every so many rows one is an upsert of an older key."""


def record(number: int) -> str:
    """Return an output record: an insert, or the upsert of the key before the last four."""
    if number % _UPDATED == _UPDATED - 1:
        return f"P,N, {number - 4},{number},1,2,3,0.500000"
    return f"I,N, {number},{number},1,2,3,0.500000"


def rows(count: int) -> list[judge.Row]:
    """Return the rows that every sink that appends holds."""
    return [(_key(number), number) for number in range(count)]


def newest(count: int) -> list[judge.Row]:
    """Return the rows of a table that holds the newest one of each key, in order of the keys."""
    return sorted({_key(number): number for number in range(count)}.items())


def _key(number: int) -> int:
    return number - 4 if number % _UPDATED == _UPDATED - 1 else number


@dataclass(frozen=True)
class Sink:
    """An output adapter, and how to see what it has brought.

    Attributes:
        settings: of the adapter.
        read: returns key and number of each row, in order.
        upserts: whether only the newest row of each key stays.
    """

    settings: Mapping[str, Any]
    read: Callable[[], list[judge.Row]]
    upserts: bool = False


class Sinks:
    """The places where output goes; those on the net listen until the end."""

    def __init__(
        self, adapters: Adapters, far: Kafka, mosquitto: Mosquitto, postgres: PostgreSQL
    ) -> None:
        """Make the places.

        Args:
            adapters: whose folder gets the files.
            far: another cluster, for its topic.
            mosquitto: a broker of MQTT.
            postgres: a server with two tables.
        """
        self._ends = ExitStack()
        folder, topic = adapters.folder, f"results-{adapters.prefix}"
        far.make_topics(topic)
        web, peer = Receiver(failing=0.0), NumberedPeer(breaks=0.0001)
        self._ends.callback(web.server_close)
        self._ends.callback(web.shutdown)
        self._ends.callback(peer.close)
        listener = self._ends.enter_context(closing(Listener(mosquitto, "results")))
        server = judge.Server(HOST, postgres.port, USER, PASSWORD, DATABASE)
        parts = folder / "parts"
        database = folder / "out.db"
        append = {"mode": "append"}
        self.all: Mapping[str, Sink] = {
            "csv": Sink(
                {"file": {"path": f"{folder}/out.csv", "header": "full", "rotateBytes": 500_000}},
                lambda: judge.csv_files(folder, "out", header=True),
            ),
            "json": Sink(
                {"file": {"path": f"{folder}/out.json", "format": "json", "rotateSeconds": 20}},
                lambda: judge.json_files(folder, "out"),
            ),
            "parquet": Sink(
                {"parquet": {"path": str(parts), "fileSeconds": 2}}, lambda: judge.parquet(parts)
            ),
            "sqlite": Sink(
                {"table": {"path": str(database), "table": "added", **append}},
                lambda: judge.sqlite(database, "added", "espha_offset"),
            ),
            "sqlite-upsert": Sink(
                {"table": {"path": f"{folder}/newest.db", "table": "newest"}},
                lambda: judge.sqlite(folder / "newest.db", "newest", "index_esp"),
                upserts=True,
            ),
            "postgres": Sink(
                {"table": {"url": postgres.url, "table": "added", **append}},
                lambda: judge.postgres(server, "added", "espha_offset"),
            ),
            "postgres-upsert": Sink(
                {"table": {"url": postgres.url, "table": "newest"}},
                lambda: judge.postgres(server, "newest", "index_esp"),
                upserts=True,
            ),
            "kafka": Sink(
                {"kafka": {"servers": far.bootstrap, "topic": topic}},
                lambda: judge.topic(far.bootstrap, topic),
            ),
            "mqtt": Sink(
                {"mqtt": {"broker": mosquitto.address, "topic": "results", "qos": 1}},
                lambda: judge.records(listener.rows.values()),
            ),
            "http": Sink(
                {"http": {"address": f"http://{HOST}:{web.server_address[1]}/", "maxRows": 200}},
                lambda: judge.records(web.rows()),
            ),
            "socket": Sink(
                {"socket": {"connect": peer.address, "ids": True}},
                lambda: judge.records(peer.rows),
            ),
        }

    def close(self) -> None:
        """Listen no more."""
        self._ends.close()


class Output(threading.Thread):
    """Commits records to the topic of results at a steady rate, as an engine does."""

    def __init__(self, adapters: Adapters, rate: float) -> None:
        super().__init__(name="output", daemon=True)
        self._writer = FencedWriter(adapters.kafka.bootstrap, f"edges-{adapters.prefix}")
        self._writer.fence()
        self._topic, self._rate = adapters.output_topic, rate
        self._ended = threading.Event()
        self.count = 0

    def run(self) -> None:
        """Commit until it is ended."""
        began = time.monotonic()
        while not self._ended.wait(_TICK_S):
            due = int((time.monotonic() - began) * self._rate)
            numbers = range(self.count, due)
            self._writer.commit([Record(self._topic, record(each).encode()) for each in numbers])
            self.count = due

    def close(self) -> None:
        """Commit no more."""
        self._ended.set()
        if self.is_alive():
            self.join()
