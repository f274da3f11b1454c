"""Read what came out, with nothing of espha: files, tables, a dataset, a topic.

A row is its key and its number. What is torn, or was never a row, is `TORN`.
"""

import csv
import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import psycopg
import pyarrow.dataset as ds
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

Row = tuple[int, int]
TORN: Row = (-1, -1)
_REST = ["1", "2", "3", "0.500000"]
_HEADER = "opcode,flags,index_esp,Record_Counter,MemoryUsed,MemoryFree,epoch,sum20"


class Server(NamedTuple):
    """A PostgreSQL server."""

    host: str
    port: int
    user: str
    password: str
    database: str


def records(texts: Iterable[str]) -> list[Row]:
    """Return the rows of records as they stand on the topic."""
    return [_row(cells) for cells in csv.reader(list(texts))]


def _row(cells: list[str]) -> Row:
    if len(cells) != 8 or cells[0] not in ("I", "P") or cells[4:] != _REST:
        return TORN
    try:
        return int(cells[2]), int(cells[3])
    except ValueError:
        return TORN


def csv_files(folder: Path, name: str, header: bool) -> list[Row]:
    """Return the rows of a CSV file and of those that were full before it."""
    found: list[Row] = []
    for path in _rotated(folder, name, ".csv"):
        text = path.read_text()
        lines = text.splitlines()
        if header and lines:
            found += [] if lines[0] == _HEADER else [TORN]
            lines = lines[1:]
        found += records(lines) + ([TORN] if text and not text.endswith("\n") else [])
    return found


def json_files(folder: Path, name: str) -> list[Row]:
    """Return the rows of a file of JSON lines and of those that were full before it."""
    found: list[Row] = []
    for path in _rotated(folder, name, ".json"):
        found += [_object(line) for line in path.read_text().split("\n") if line]
    return found


def _object(line: str) -> Row:
    try:
        row = json.loads(line)
        rest = [row["MemoryUsed"], row["MemoryFree"], row["epoch"], row["sum20"]]
        return (row["index_esp"], row["Record_Counter"]) if rest == [1, 2, 3, 0.5] else TORN
    except (ValueError, KeyError):
        return TORN


def _rotated(folder: Path, name: str, ending: str) -> list[Path]:
    """Names of full files end with the offset of their first record, with leading zeros."""
    now = folder / f"{name}{ending}"
    return [*sorted(folder.glob(f"{name}-*{ending}")), *([now] if now.exists() else [])]


def sqlite(path: Path, table: str, order: str) -> list[Row]:
    """Return the rows of a table."""
    names = "index_esp, record_counter, memoryused, memoryfree, epoch, sum20"
    query = f"SELECT {names} FROM {table} ORDER BY {order}"  # noqa: S608
    with sqlite3.connect(path) as connection:
        return [_values(row) for row in connection.execute(query)]


def postgres(server: Server, table: str, order: str) -> list[Row]:
    """Return the rows of a table."""
    names = '"index_esp", "Record_Counter", "MemoryUsed", "MemoryFree", "epoch", "sum20"'
    query = f"SELECT {names} FROM {table} ORDER BY {order}"  # noqa: S608
    with psycopg.connect(
        host=server.host, port=server.port, user=server.user, password=server.password,
        dbname=server.database,
    ) as connection:  # fmt: skip
        return [_values(row) for row in connection.execute(query.encode()).fetchall()]


def parquet(folder: Path) -> list[Row]:
    """Return the rows of a dataset."""
    names = ["index_esp", "Record_Counter", "MemoryUsed", "MemoryFree", "epoch", "sum20"]
    dataset = ds.dataset(folder, format="parquet")
    if not dataset.files:
        return []
    table = dataset.to_table().sort_by("espha_offset")
    return [_values(row) for row in zip(*(table[name].to_pylist() for name in names), strict=True)]


def _values(row: tuple[object, ...]) -> Row:
    key, number, *rest = row
    return (key, number) if rest == [1, 2, 3, 0.5] else TORN  # type: ignore[return-value]


def topic(bootstrap: str, name: str) -> list[Row]:
    """Return the rows of what is committed on a topic of one partition."""
    return records(messages(bootstrap, name))


def messages(bootstrap: str, name: str) -> list[str]:
    """Return what is committed on a topic of one partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "judge",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(name, 0, OFFSET_BEGINNING)])
    found: list[str] = []
    try:
        while True:
            for message in consumer.consume(10_000, 1.0):
                if message.error() is not None:  # the end of what is stable
                    return found
                found.append((message.value() or b"").decode())
    finally:
        consumer.close()
