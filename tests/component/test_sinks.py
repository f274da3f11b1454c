"""Output adapters as processes, killed while they work: all of them hold the same rows."""

import contextlib
import json
import os
import random
import signal
import sqlite3
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg
import pyarrow.dataset as ds
import pytest

from espha.connectors.topics import topic_plan
from espha.kafka.writer import FencedWriter, Record
from espha.reader import read_project
from support.postgres import DATABASE, PASSWORD, USER, PostgreSQL, running
from support.replicas import Replica
from support.servers import Kafka, ZooKeeper, wait_until

pytestmark = pytest.mark.component

MODEL = Path(__file__).parents[2] / "manifests" / "models" / "ha-project.xml"


@pytest.fixture
def postgres() -> Iterator[PostgreSQL]:
    """A server of its own."""
    with running() as server:
        yield server


class Sinks:
    """One output adapter of each kind, on one topic."""

    def __init__(
        self, kafka: Kafka, zookeeper: ZooKeeper, postgres: PostgreSQL, folder: Path
    ) -> None:
        self.folder, self.postgres = folder, postgres
        prefix = f"s{uuid.uuid4().hex[:8]}"
        plan = topic_plan(read_project(MODEL.read_bytes()), prefix)
        kafka.make_topics(*plan.all())
        self.topic = plan.outputs["cq/outbound"]
        self._environment = {
            "ESPHA_BOOTSTRAP": kafka.bootstrap,
            "ESPHA_ZOOKEEPER": zookeeper.connect,
            "ESPHA_ROOT": f"/ESP/test/{prefix}/adapters/sinks",
            "ESPHA_MODEL": str(MODEL),
            "ESPHA_PREFIX": prefix,
            "PGPASSWORD": PASSWORD,
            "PYTHONPATH": os.pathsep.join(["engine", os.environ.get("PYTHONPATH", "")]),
        }
        append = {"table": "result", "mode": "append"}
        self.replicas = [
            self._start("csv", {"file": {"path": f"{folder}/out.csv", "rotateBytes": 5000}}),
            self._start("json", {"file": {"path": f"{folder}/out.jsonl", "format": "json"}}),
            self._start("sqlite", {"table": {"path": f"{folder}/out.db", **append}}),
            self._start("postgres", {"table": {"url": postgres.url, **append}}),
            self._start("parquet", {"parquet": {"path": f"{folder}/parts", "fileSeconds": 1}}),
        ]

    def _start(self, name: str, settings: Mapping[str, object]) -> Replica:
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({"name": name, "window": "cq/outbound", **settings}))
        arguments = ["--no-election", "--", "adapter", "output", "--config", str(path)]
        replica = Replica(name, self.folder, arguments, self._environment)
        replica.start()
        return replica

    def stop(self) -> None:
        """End all adapters."""
        for replica in self.replicas:
            replica.stop()

    def lines(self) -> list[list[object]]:
        """Return the numbers of the rows that each adapter has written, in order."""
        csv = [*sorted(self.folder.glob("out-*.csv")), self.folder / "out.csv"]
        texts = [line for path in csv if path.exists() for line in path.read_text().splitlines()]
        objects = (self.folder / "out.jsonl").read_text().splitlines()
        query = "SELECT record_counter FROM result ORDER BY espha_offset"
        with sqlite3.connect(self.folder / "out.db") as connection:
            embedded = [row[0] for row in connection.execute(query)]
        parts = ds.dataset(self.folder / "parts", format="parquet")
        table = parts.to_table().sort_by("espha_offset") if parts.files else None
        with psycopg.connect(
            host="127.0.0.1", port=self.postgres.port, user=USER, password=PASSWORD, dbname=DATABASE
        ) as server:
            served = server.execute(
                'SELECT "Record_Counter" FROM result ORDER BY espha_offset'
            ).fetchall()
        return [
            [int(text.split(",")[3]) for text in texts],
            [json.loads(text)["Record_Counter"] for text in objects],
            embedded,
            [row[0] for row in served],
            table["Record_Counter"].to_pylist() if table else [],
        ]


@pytest.fixture
def sinks(
    kafka: Kafka, zookeeper: ZooKeeper, postgres: PostgreSQL, tmp_path: Path
) -> Iterator[Sinks]:
    """The adapters; they end with the test."""
    made = Sinks(kafka, zookeeper, postgres, tmp_path)
    try:
        yield made
    finally:
        made.stop()


KILLS = int(os.environ.get("ESPHA_SINK_KILLS", "16"))
"""How many there are in all; a campaign wants more."""


def test_every_sink_holds_each_row_once_although_all_are_killed(
    sinks: Sinks, kafka: Kafka, postgres: PostgreSQL
) -> None:
    """SIGKILL at random moments while they write; the database dies, too."""
    wait_until(
        lambda: all(one.is_in("active") for one in sinks.replicas), 120, "all adapters are active"
    )
    writer = FencedWriter(kafka.bootstrap, f"test-{uuid.uuid4().hex}")
    writer.fence()
    chance, count = random.Random(11), 0
    for kill in range(KILLS):
        for _ in range(10):
            some = range(count, count + chance.randint(1, 20))
            texts = [f"I,N, {number},{number},1,2,3,0.500000" for number in some]
            writer.commit(Record(sinks.topic, text.encode()) for text in texts)
            count = some.stop
        if kill % 8 == 4:
            postgres.kill()
            postgres.start()
        else:
            kill_one(chance.choice(sinks.replicas))
    expected = list(range(count))

    def all_there() -> bool:
        return all(len(each) >= count for each in sinks.lines())

    wait_until(all_there, 90, "every row is everywhere")
    for replica, found in zip(sinks.replicas, sinks.lines(), strict=True):
        assert found == expected, replica.name


def kill_one(replica: Replica) -> None:
    """Kill the process of an adapter, which may be between two lives."""
    with contextlib.suppress(LookupError):
        os.kill(replica.child(), signal.SIGKILL)
