"""Tables on a real PostgreSQL: the same rows as elsewhere, whatever happens to the server."""

import random
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine, text

from edges.sinks import Output
from espha.adapters.config import ConfigError
from espha.adapters.copying import Taken
from espha.adapters.table_output.databases import engine_for
from espha.adapters.table_output.spec import OutputTable
from espha.adapters.table_output.table import TableTarget
from espha.model import Window
from support.adapters import Adapters, stopped_at_the_end
from support.outputs import outbound
from support.postgres import DATABASE, PASSWORD, USER, PostgreSQL, running
from support.replicas import LIMIT_S
from support.servers import Kafka, ZooKeeper, wait_until

pytestmark = pytest.mark.component

SCHEMA = "id*:int64,name:string,value:double,at:stamp,day:date,raw:blob,list:array(dbl),n:int32"


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgreSQL]:
    """One server for all tests here."""
    with running() as server:
        yield server


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A name of the test's own; the password is in the environment, as in a deployment."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    return f"t{abs(hash(request.node.name))}"


def target(place: OutputTable, window: Window) -> TableTarget:
    return TableTarget(place, window, "topic", "id", engine_for(place))


def in_postgres(server: PostgreSQL, table: str, mode: str = "upsert") -> OutputTable:
    return OutputTable.model_validate({"url": server.url, "table": table, "mode": mode})


def in_sqlite(folder: Path, table: str, mode: str = "upsert") -> OutputTable:
    path = folder / f"{table}.db"
    return OutputTable.model_validate({"path": str(path), "table": table, "mode": mode})


def rows_of(engine: Engine, table: str, order: str) -> list[tuple[object, ...]]:
    """Return all rows; moments as they are in UTC, without a zone."""
    with engine.connect() as connection:
        found = connection.execute(text(f"SELECT * FROM {table} ORDER BY {order}"))  # noqa: S608
        return [tuple(map(plain, row)) for row in found]


def plain(value: object) -> object:
    if hasattr(value, "isoformat"):
        return value.replace(tzinfo=None).isoformat(" ", "microseconds")  # type: ignore[attr-defined]
    return value


def texts(chance: random.Random, count: int, keys: int = 50) -> list[str]:
    """Return records with every opcode, update blocks, nulls, quotes and what is no row."""
    made: list[str] = []
    while len(made) < count:
        key, name = chance.randrange(keys), chance.choice(["", "a", '"x, ""y"""', "\u00e9", "1"])
        rest = (
            f"{name},{chance.choice(['', '0.5', '-1e300', '3.123457'])},"
            f"{chance.choice(['', '0', '1700000000000001'])},{chance.choice(['', '86400'])},"
            f"{chance.choice(['', 'AAEC'])},{chance.choice(['', '[1.5;;2]'])},{chance.choice('12')}"
        )
        opcode = chance.choice(["I", "P", "U", "D", "SD", "bad"])
        made.append(f"{opcode},N, {key},{rest}" if opcode != "bad" else f"I,N, {key},{rest},9")
        if opcode == "U":
            made.append(f"D,N, {key},{rest}")
    return made


def taken(records: Sequence[str], start: int = 0) -> list[Taken]:
    return [Taken(start + 2 * at, each.encode()) for at, each in enumerate(records)]


@pytest.mark.parametrize("mode", ["upsert", "append"])
def test_postgresql_and_sqlite_hold_the_same_rows(
    postgres: PostgreSQL, table: str, tmp_path: Path, mode: str
) -> None:
    chance, window = random.Random(5), outbound(SCHEMA)
    places = [in_postgres(postgres, table, mode), in_sqlite(tmp_path, table, mode)]
    targets = [target(place, window) for place in places]
    offset = 0
    for _ in range(20):
        batch = taken(texts(chance, chance.randint(1, 60)), offset)
        offset = batch[-1].offset + 1
        for number, one in enumerate(targets):
            one.append(batch, offset)
            if not chance.randrange(3):
                targets[number] = target(places[number], window)
    order = "id" if mode == "upsert" else "espha_offset"
    ours, others = (rows_of(engine_for(place), table, order) for place in places)
    assert ours == others
    assert len(ours) > 10
    query = f"espha_rejected WHERE table_name = '{table}'"
    bad = [rows_of(engine_for(place), query, "record_offset") for place in places]
    assert bad[0] == bad[1]
    assert bad[0]


def test_what_a_column_cannot_take_is_set_aside_alone(postgres: PostgreSQL, table: str) -> None:
    """A table that people have made themselves, and text with a NUL."""
    with connected(postgres) as connection:
        connection.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, name VARCHAR(3))")
    window = outbound("id*:int64,name:string")
    made = target(in_postgres(postgres, table), window)
    made.append(taken(["I,N, 1,abc", "I,N, 2,abcd", 'I,N, 3,"a\0"', "I,N, 4,d"]), 7)
    with connected(postgres) as connection:
        good = connection.execute(f"SELECT id FROM {table} ORDER BY id")  # noqa: S608
        assert good.fetchall() == [(1,), (4,)]
        bad = connection.execute(
            "SELECT record_offset, reason, record FROM espha_rejected WHERE table_name = %s "
            "ORDER BY record_offset",
            [table],
        ).fetchall()
    assert [one[0] for one in bad] == [2, 4]
    assert "too long" in str(bad[0][1])
    assert "NUL" in str(bad[1][1])
    assert bad[1][2] == 'I,N, 3,"a\ufffd"'


def test_a_key_that_no_index_takes_is_set_aside_alone(postgres: PostgreSQL, table: str) -> None:
    key = b64encode(random.Random(7).randbytes(6000)).decode()  # compression does not help
    made = target(in_postgres(postgres, table), outbound("id*:string,name:string"))
    made.append(taken(["I,N, a,1", f"I,N, {key},2", "I,N, b,3"]), 5)
    assert made.progress(3).rejected == 1
    engine = engine_for(in_postgres(postgres, table))
    assert rows_of(engine, table, "id") == [("a", "1"), ("b", "3")]
    ((_, offset, reason, _),) = rows_of(
        engine, f"espha_rejected WHERE table_name = '{table}'", "record_offset"
    )
    assert offset == 2
    assert "index row" in str(reason)


def test_keys_that_only_the_database_takes_for_one_are_no_trouble(
    postgres: PostgreSQL, table: str
) -> None:
    """A statement may not change a row twice: they are written one by one."""
    with connected(postgres) as connection:
        connection.execute(f"CREATE TABLE {table} (id NUMERIC(4, 1) PRIMARY KEY, name TEXT)")
    made = target(in_postgres(postgres, table), outbound("id*:double,name:string"))
    made.append(taken(["P,N, 1.01,a", "P,N, 1.02,b", "P,N, 2,c"]), 5)
    assert made.progress(3).rejected == 0
    engine = engine_for(in_postgres(postgres, table))
    assert [name for _, name in rows_of(engine, table, "id")] == ["b", "c"]


def connected(server: PostgreSQL) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(
        host="127.0.0.1", port=server.port, user=USER, password=PASSWORD, dbname=DATABASE,
        autocommit=True,
    )  # fmt: skip


def test_an_error_never_tells_the_password(
    postgres: PostgreSQL, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "wrong-and-secret")
    with pytest.raises(OSError, match="password authentication failed") as failure:
        target(in_postgres(postgres, table), outbound())
    assert "wrong-and-secret" not in str(failure.value)


@pytest.mark.parametrize("mode", ["upsert", "append"])
def test_a_server_killed_and_started_again_under_load_neither_loses_nor_doubles(
    postgres: PostgreSQL, table: str, mode: str
) -> None:
    """Killed at random moments, in the middle of commits too."""
    chance, window = random.Random(9), outbound("id*:int64,count:int64")
    made = target(in_postgres(postgres, table, mode), window)
    stop = threading.Event()
    kills: list[int] = []

    def break_it() -> None:
        while not stop.wait(chance.uniform(0.05, 0.4)) and len(kills) < 8:
            postgres.kill()
            kills.append(1)
            postgres.start()

    breaker = threading.Thread(target=break_it)
    breaker.start()
    offset, failures = 0, 0
    try:
        while len(kills) < 8 or offset < 3000:
            rows = [f"P,N, {(offset + at) % 97},{offset + 2 * at}" for at in range(40)]
            batch = taken(rows, offset)
            failures += again(lambda: made.append(batch, batch[-1].offset + 1))  # noqa: B023
            offset = batch[-1].offset + 1
    finally:  # a test that fails here leaves the next ones their server
        stop.set()
        breaker.join()
    assert failures
    with connected(postgres) as connection:
        if mode == "append":
            found = connection.execute(
                f"SELECT espha_offset, count FROM {table} ORDER BY 1"  # noqa: S608
            )
            offsets = [start + 2 * at for start in range(0, offset, 79) for at in range(40)]
            assert found.fetchall() == [(each, each) for each in offsets]
        else:
            found = connection.execute(f"SELECT max(count), count(*) FROM {table}")  # noqa: S608
            assert found.fetchall() == [(offset - 1, 97)]


def again(work: Callable[[], None]) -> int:
    """Do it as the adapter does, as often as it takes; return how often it failed."""
    for failures in range(10_000):
        try:
            work()
        except OSError:
            threading.Event().wait(0.02)
        else:
            return failures
    raise AssertionError("it never works")


@pytest.mark.long
def test_a_server_that_is_away_for_a_minute_is_waited_for(
    postgres: PostgreSQL, kafka: Kafka, zookeeper: ZooKeeper, table: str, tmp_path: Path
) -> None:
    """Under 1,000 rows a second: it is said, memory stays, and the adapter goes on by itself."""
    adapters = Adapters(kafka, zookeeper, tmp_path, {"PGPASSWORD": PASSWORD})
    place = {"url": postgres.url, "table": table, "mode": "append"}
    with stopped_at_the_end(adapters) as site, closing(Output(site, 1000)) as load:
        adapter = site.start("result", "output", table=place)
        wait_until(lambda: adapter.is_in("active"), 60, "the adapter is active")
        load.start()
        wait_until(lambda: adapter.told()["rows"] > 5000, 60, "rows come")
        child, memory = adapter.child(), adapter.megabytes()
        postgres.kill()
        try:
            threading.Event().wait(60)
            said = adapter.told()
        finally:
            postgres.start()
        assert "refused" in said["message"]
        assert PASSWORD not in str(said)
        behind = load.count

        def rows() -> int:
            return int(adapter.told()["rows"])

        wait_until(lambda: rows() > behind, LIMIT_S, "it goes on", moved=rows)
        load.close()
        wait_until(lambda: rows() == load.count, LIMIT_S, "every row has come", moved=rows)
        assert adapter.child() == child
        assert adapter.megabytes() < memory + 64
        assert adapter.told()["message"] == ""
        assert "refused" in adapter.told()["last_error"]
    with connected(postgres) as connection:
        query = f'SELECT "Record_Counter" FROM {table} ORDER BY espha_offset'  # noqa: S608
        found = [number for (number,) in connection.execute(query.encode())]
    assert found == list(range(load.count))


def test_a_commit_under_way_of_a_lost_connection_is_waited_for(
    postgres: PostgreSQL, table: str
) -> None:
    """The adapter thinks that its transaction failed; the server commits it a moment later."""
    window = outbound("id*:int64,name:string")
    made = target(in_postgres(postgres, table, "append"), window)
    slow = connected(postgres)
    slow.execute("BEGIN")
    slow.execute("UPDATE espha_positions SET next_offset = 1 WHERE table_name = %s", [table])
    slow.execute(f"INSERT INTO {table} VALUES (0, 'I', 'N', 1, 'a')")  # noqa: S608
    committer = threading.Timer(0.5, lambda: slow.execute("COMMIT"))
    committer.start()
    made.append(taken(["I,N, 1,a"]), 1)
    committer.join()
    slow.close()
    assert rows_of(engine_for(in_postgres(postgres, table)), table, "1") == [(0, "I", "N", 1, "a")]


def test_two_adapters_at_once_are_told_apart(postgres: PostgreSQL, table: str) -> None:
    window = outbound("id*:int64,name:string")
    first, second = (target(in_postgres(postgres, table), window) for _ in range(2))
    first.append(taken(["I,N, 1,a"]), 1)
    with pytest.raises(ConfigError, match="is another adapter at work"):
        second.append(taken(["I,N, 1,a", "I,N, 2,b"]), 3)
