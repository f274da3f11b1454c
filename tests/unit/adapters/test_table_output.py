"""Tables of SQLite: rows and position in one transaction."""

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg.errors
import pytest
from sqlalchemy.exc import OperationalError, ProgrammingError, SQLAlchemyError

from espha.adapters.config import ConfigError
from espha.adapters.copying import Taken
from espha.adapters.table_output.databases import engine_for, is_of_a_row
from espha.adapters.table_output.spec import OutputTable
from espha.adapters.table_output.table import TableTarget
from support.outputs import outbound


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out.db"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 KiB, where this process may mount one."""
    place = tmp_path / "small"
    place.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=512k", "espha-test", str(place)],
            check=False,
            capture_output=True,
        ).returncode
    ):
        pytest.skip("this process may not mount file systems")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=False, capture_output=True)


def opened(
    path: Path, mode: str = "upsert", topic_id: str = "id", schema: str | None = None
) -> TableTarget:
    place = OutputTable.model_validate({"path": str(path), "table": "result", "mode": mode})
    window = outbound(schema) if schema else outbound()
    return TableTarget(place, window, "topic", topic_id, engine_for(place))


def rows(path: Path, query: str = "SELECT id, name, value FROM result ORDER BY id") -> list[object]:
    with sqlite3.connect(path) as connection:
        return connection.execute(query).fetchall()


def records(*texts: str, start: int = 0) -> list[Taken]:
    return [Taken(start + at, text.encode()) for at, text in enumerate(texts)]


def test_a_table_has_the_rows_of_the_window(path: Path) -> None:
    target = opened(path)
    target.append(records("I,N, 1,a,0.5", "I,N, 2,b,", "P,N, 2,c,1", "D,N, 1,a,0.5"), 4)
    target.append(records("U,N, 2,d,2", "D,N, 2,c,1", "I,N, 1,again,3", start=4), 7)
    assert rows(path) == [(1, "again", 3.0), (2, "d", 2.0)]
    assert opened(path).offset == 7


def test_the_old_row_of_an_update_is_no_delete_whenever_it_comes(path: Path) -> None:
    """The update is the last one before a restart, its old row the first one behind it."""
    opened(path).append(records("I,N, 1,a,0", "U,N, 1,b,0"), 2)
    opened(path).append(records("D,N, 1,a,0", start=2), 3)
    assert rows(path) == [(1, "b", 0.0)]
    opened(path).append(records("D,N, 1,b,0", start=3), 4)
    assert rows(path) == []


def test_appended_rows_have_offset_opcode_and_flags(path: Path) -> None:
    target = opened(path, "append")
    target.append(records("I,N, 1,a,0", "U,N, 1,b,0", "D,N, 1,a,0", start=5), 9)
    query = "SELECT espha_offset, opcode, flags, id, name FROM result ORDER BY espha_offset"
    assert rows(path, query) == [
        (5, "I", "N", 1, "a"),
        (6, "U", "N", 1, "b"),
        (7, "D", "N", 1, "a"),
    ]


def test_records_that_are_no_rows_are_set_aside_in_the_same_transaction(path: Path) -> None:
    schema = "id*:int64,at:stamp"
    target = opened(path, schema=schema)
    bad = [Taken(1, b"\xff"), Taken(2, b"I,N, x,0"), Taken(3, b"I,N, 3,9000000000000000000")]
    target.append([Taken(0, b"I,N, 1,1500000"), *bad, Taken(4, b"I,N, ,0")], 5)
    assert rows(path, "SELECT id, at FROM result") == [(1, "1970-01-01 00:00:01.500000")]
    found = rows(path, "SELECT record_offset, reason, record FROM espha_rejected")
    assert [one[0] for one in found] == [1, 2, 3, 4]  # type: ignore[index]
    assert found[2] == (
        3,
        "field at: 9000000000000000000 is not in the years 1 to 9999",
        "I,N, 3,9000000000000000000",
    )
    assert "NOT NULL" in str(found[3])
    assert target.progress(5).rejected == 4


def test_a_commit_whose_answer_was_lost_is_not_done_twice(path: Path) -> None:
    target, again = opened(path, "append"), opened(path, "append")
    batch = records("I,N, 1,a,0")
    again.append(batch, 1)  # as if this had been the target's own commit
    target.append(batch, 1)
    target.append(records("I,N, 2,b,0", start=1), 2)
    assert rows(path, "SELECT id FROM result ORDER BY id") == [(1,), (2,)]


def test_two_adapters_never_mix_in_one_table(path: Path) -> None:
    first, second = opened(path), opened(path)
    first.append(records("I,N, 1,a,0"), 1)
    with pytest.raises(ConfigError, match="is another adapter at work"):
        second.append(records("I,N, 1,a,0", "I,N, 2,b,0"), 2)
    assert rows(path) == [(1, "a", 0.0)]


@pytest.mark.parametrize(
    ("error", "of_a_row"),
    [
        (OperationalError("", {}, psycopg.errors.ProgramLimitExceeded()), True),
        (ProgrammingError("", {}, psycopg.errors.CardinalityViolation()), True),
        (OperationalError("", {}, psycopg.errors.AdminShutdown()), False),
        (ProgrammingError("", {}, psycopg.errors.UndefinedTable()), False),
    ],
)
def test_errors_of_postgresql_are_of_a_row_or_of_the_server(
    error: SQLAlchemyError, of_a_row: bool
) -> None:
    assert is_of_a_row(error) is of_a_row


def test_a_position_that_cannot_be_written_is_the_fault_of_no_row(path: Path) -> None:
    target = opened(path)
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TRIGGER no BEFORE UPDATE ON espha_positions BEGIN "
            "SELECT RAISE(ABORT, 'no transaction any more'); END"
        )
    with pytest.raises(OSError, match="no transaction any more"):
        target.append(records("I,N, 1,a,0"), 1)
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER no")
    target.append(records("I,N, 1,a,0"), 1)
    assert rows(path) == [(1, "a", 0.0)]
    assert target.progress(1).rejected == 0


def test_a_file_that_goes_away_is_waited_for_and_no_other_one_is_begun(path: Path) -> None:
    target = opened(path)
    target.append(records("I,N, 1,a,0"), 1)
    moved = path.with_name("moved.db")
    path.rename(moved)
    with pytest.raises(OSError, match="unable to open database file"):
        target.append(records("I,N, 2,b,0", start=1), 2)
    assert not path.exists()
    moved.rename(path)
    target.append(records("I,N, 2,b,0", start=1), 2)
    assert rows(path) == [(1, "a", 0.0), (2, "b", 0.0)]


def test_a_locked_database_is_an_error_that_passes(path: Path) -> None:
    target = opened(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(OSError, match="database is locked"):
        target.append(records("I,N, 1,a,0"), 1)
    other.execute("ROLLBACK")
    other.close()
    target.append(records("I,N, 1,a,0"), 1)
    assert rows(path) == [(1, "a", 0.0)]


def test_a_full_disk_loses_and_doubles_nothing(small_disk: Path) -> None:
    """On a file system of 512 KiB: what did not fit is written once there is room again."""
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(400_000))
    target = opened(small_disk / "out.db")
    texts = [f"I,N, {number},{'x' * 1000},0" for number in range(200)]
    target.append(records(*texts[:10]), 10)
    for _ in range(2):
        with pytest.raises(OSError, match="full"):
            target.append(records(*texts[10:], start=10), 200)
    assert target.offset == 10
    ballast.unlink()
    target.append(records(*texts[10:], start=10), 200)
    found = rows(small_disk / "out.db", "SELECT id FROM result ORDER BY id")
    assert found == [(number,) for number in range(200)]


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("UPDATE espha_positions SET topic_id = 'other'", "was written from another topic"),
        ("DROP TABLE result", "is gone, but espha_positions says"),
        ("ALTER TABLE result DROP COLUMN name", "has no column 'name'"),
        ("DROP TABLE result; CREATE TABLE result (id, name, value)", r"has no primary key \(id\)"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(path: Path, statement: str, sentence: str) -> None:
    opened(path).append(records("I,N, 1,a,0"), 1)
    with sqlite3.connect(path) as connection:
        connection.executescript(statement)
    with pytest.raises(ConfigError, match=sentence):
        opened(path)


def test_names_that_the_table_needs_for_itself_are_refused(path: Path) -> None:
    with pytest.raises(ConfigError, match="has a field 'flags'"):
        opened(path, "append", schema="id*:int64,Flags:string")


@pytest.mark.parametrize(
    "url",
    ["postgresql://u:secret@h/d", "postgresql://h/d?password=secret", "mysql://h/d", "h/d"],
)
def test_a_password_has_no_place_in_the_address(url: str) -> None:
    with pytest.raises(ValueError, match=r"url") as refusal:
        OutputTable.model_validate({"url": url, "table": "t"})
    assert "secret" not in str([one["msg"] for one in refusal.value.errors()])  # type: ignore[attr-defined]


@pytest.mark.parametrize("places", [{}, {"path": "/data/a.db", "url": "postgresql://h/d"}])
def test_exactly_one_place_is_given(places: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="exactly one of: path, url"):
        OutputTable.model_validate({"table": "t", **places})
