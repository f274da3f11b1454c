"""Output adapters as processes, killed while they work: all of them hold the same rows."""

import json
import os
import random
import sqlite3
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow.dataset as ds
import pytest

from espha.kafka.writer import FencedWriter, Record
from support.adapters import Adapters, counters, kill, stopped_at_the_end
from support.postgres import DATABASE, PASSWORD, USER, PostgreSQL, running
from support.replicas import LIMIT_S
from support.servers import Kafka, ZooKeeper, wait_until

pytestmark = pytest.mark.component


@pytest.fixture
def postgres() -> Iterator[PostgreSQL]:
    """A server of its own."""
    with running() as server:
        yield server


class Sinks(Adapters):
    """One output adapter of each kind, on one topic."""

    def __init__(
        self, kafka: Kafka, zookeeper: ZooKeeper, postgres: PostgreSQL, folder: Path
    ) -> None:
        super().__init__(kafka, zookeeper, folder, {"PGPASSWORD": PASSWORD})
        self.postgres = postgres
        append = {"table": "result", "mode": "append"}
        kinds: dict[str, dict[str, object]] = {
            "csv": {"file": {"path": f"{folder}/out.csv", "rotateBytes": 5000}},
            "json": {"file": {"path": f"{folder}/out.jsonl", "format": "json"}},
            "sqlite": {"table": {"path": f"{folder}/out.db", **append}},
            "postgres": {"table": {"url": postgres.url, **append}},
            "parquet": {"parquet": {"path": f"{folder}/parts", "fileSeconds": 1}},
        }
        for name, settings in kinds.items():
            self.start(name, "output", **settings)

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
            counters(texts),
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
    with stopped_at_the_end(Sinks(kafka, zookeeper, postgres, tmp_path)) as made:
        yield made


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
    for round_ in range(KILLS):
        for _ in range(10):
            some = range(count, count + chance.randint(1, 20))
            texts = [f"I,N, {number},{number},1,2,3,0.500000" for number in some]
            writer.commit(Record(sinks.output_topic, text.encode()) for text in texts)
            count = some.stop
        if round_ % 8 == 4:
            postgres.kill()
            postgres.start()
        else:
            kill(chance.choice(sinks.replicas))
    expected = list(range(count))

    def all_there() -> bool:
        try:
            return all(len(each) >= count for each in sinks.lines())
        except (ValueError, IndexError, OSError):  # a row that is half written; a file put away
            return False

    wait_until(all_there, LIMIT_S, "every row is everywhere")
    for replica, found in zip(sinks.replicas, sinks.lines(), strict=True):
        assert found == expected, replica.name
