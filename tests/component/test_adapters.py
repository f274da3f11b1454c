"""Adapters as processes on real Kafka and ZooKeeper, killed while they work."""

import contextlib
import json
import os
import random
import shutil
import signal
import threading
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from espha.adapters.file_input.position import Place, Position, source_position
from espha.adapters.publishing import Positions, last_position
from espha.checker.damage import compare
from espha.kafka.reader import Offsets, last_record
from espha.kafka.writer import FencedWriter, Record
from espha.protocol.records import position_key
from support.adapters import Adapters, file_input, stopped_at_the_end
from support.replicas import LIMIT_S, Replica, active_of, in_sync, only_active
from support.servers import Kafka, ZooKeeper, wait_until

pytestmark = pytest.mark.component

HEADER = "Record_Counter,MemoryUsed,MemoryFree,epoch"


@pytest.fixture
def site(kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Adapters]:
    """Empty topics; adapters of the test end with it."""
    with stopped_at_the_end(Adapters(kafka, zookeeper, tmp_path)) as made:
        yield made


def lines_of(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def test_no_row_is_lost_or_double_when_the_active_input_adapter_is_killed(
    site: Adapters, tmp_path: Path
) -> None:
    """The file grows all the while; the active process is killed three times."""
    source = tmp_path / "in.csv"
    source.write_text(f"{HEADER}\n")
    site.start_pair("memory", **file_input(source))
    written = 0
    for kill in range(4):
        if kill:
            wait_until(partial(killed, site), LIMIT_S, "an active input adapter is killed")
        with source.open("a") as file:
            for number in range(written, written + 500):
                file.write(f"{number},1,2,3\n")
                file.flush()
        written += 500
        last = f"I,N,,{written - 1},"
        wait_until(lambda: len(active_of(site.replicas)) == 1, LIMIT_S, "an active input adapter")
        wait_until(partial(at_row, site, last), LIMIT_S, "the last row")
    expected = [f"I,N,,{number},1,2,3" for number in range(written)]
    damage = compare(expected, site.published())
    assert damage.none, damage.first


def test_copies_of_a_file_on_two_volumes_are_one_source(site: Adapters, tmp_path: Path) -> None:
    """Each replica reads its own copy, another inode; the standby's is behind, too."""
    copies = [tmp_path / volume / "in.csv" for volume in ("a", "b")]
    for copy in copies:
        copy.parent.mkdir()
        copy.write_text(f"{HEADER}\n")
    assert len({copy.stat().st_ino for copy in copies}) == 2
    replicas = [
        site.start(f"memory-{number}", "input", **file_input(copy))
        for number, copy in enumerate(copies)
    ]
    wait_until(
        lambda: len(active_of(replicas)) == 1 and all(map(in_sync, replicas)),
        60,
        "one input adapter active, the other one standby",
    )
    written = 0
    for _ in range(4):
        for copy in copies:
            append(copy, written, written + 1)
        wait_until(
            partial(at_row, site, f"I,N,,{written},"), LIMIT_S, "a row of whoever is active now"
        )
        active = only_active(replicas)
        for replica, copy in zip(replicas, copies, strict=True):
            append(copy, written + 1, written + (500 if replica is active else 200))
        wait_until(partial(at_row, site, f"I,N,,{written + 499},"), LIMIT_S, "the last row")
        active.kill_child()
        append(copies[1 - replicas.index(active)], written + 200, written + 500)
        written += 500
    expected = [f"I,N,,{number},1,2,3" for number in range(written)]
    damage = compare(expected, site.published())
    assert damage.none, damage.first


def append(file: Path, first: int, end: int) -> None:
    with file.open("a") as opened:
        opened.writelines(f"{number},1,2,3\n" for number in range(first, end))


def killed(site: Adapters) -> bool:
    """Kill the active input adapter, and tell whether there was one."""
    for replica in active_of(site.replicas):
        with contextlib.suppress(LookupError, ProcessLookupError):
            replica.kill_child()
            return True
    return False


def at_row(site: Adapters, start: str) -> bool:
    return tail(site).startswith(start)


def tail(site: Adapters) -> str:
    last = last_record(site.kafka.bootstrap, site.input_topic)
    return last.value().decode() if last else ""


def test_bad_rows_pass_and_do_not_stop_the_adapter(site: Adapters, tmp_path: Path) -> None:
    """Wrong types are the engine's to refuse; long rows are cut, short ones end in nulls."""
    source = tmp_path / "in.csv"
    source.write_text(f'{HEADER}\nmany,1,2,3\n1,2\n"a,b",1,2,3,4\n5,6,7,8\n')
    site.start("memory-0", "input", **file_input(source))
    wait_until(lambda: tail(site) == "I,N,,5,6,7,8", 60, "the last row")
    assert site.published() == [
        "I,N,,many,1,2,3",
        "I,N,,1,2,,",
        'I,N,,"a,b",1,2,3',
        "I,N,,5,6,7,8",
    ]


def test_the_position_is_found_behind_the_records_of_others(site: Adapters, tmp_path: Path) -> None:
    """Several adapters may write to one topic; each one finds its own last position."""
    writer = FencedWriter(site.kafka.bootstrap, f"test-{uuid.uuid4().hex}")
    writer.fence()
    mine = Position("memory", "name", Place(2, 17, 400, mark="mark"))
    other = Position("other", "x")
    headers = [(("espha-source", position.to_header()),) for position in (mine, *[other] * 300)]
    writer.commit(Record(site.input_topic, b"x", header) for header in headers)
    writer.commit([Record(site.input_topic, b"y")])
    bootstrap, topic, positions = site.kafka.bootstrap, site.input_topic, site.plan.positions
    found = last_position(bootstrap, positions, topic, "memory", None)
    assert source_position("memory", tmp_path / "in.csv", found) == mine


@pytest.mark.parametrize("shared", ["positions", "rows"])
def test_a_position_behind_an_open_transaction_of_others_counts(
    site: Adapters, shared: str
) -> None:
    """Until that one ends nobody sees it; the rows behind an older one would be published twice."""
    bootstrap, topic, positions = site.kafka.bootstrap, site.input_topic, site.plan.positions
    other = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": f"test-{uuid.uuid4().hex}"}
    )
    other.init_transactions(30)
    writer = FencedWriter(bootstrap, f"test-{uuid.uuid4().hex}")
    writer.fence()

    def publish(line: int) -> dict[str, object]:
        header = Position("memory", "name", Place(1, line, 100 * line)).to_header()
        row = Record(topic, b"x", (("espha-source", header),))
        writer.commit([Record(positions, header, key=position_key(topic, "memory")), row])
        return dict(json.loads(header))

    def hide(line: int) -> dict[str, object]:
        """Publish behind the begin of a transaction that stays open."""
        other.begin_transaction()
        shared_topic = positions if shared == "positions" else topic
        other.produce(shared_topic, b"{}", key=b"other", partition=0)
        assert other.flush(30) == 0
        return publish(line)

    publish(1)
    newest = hide(2) if shared == "rows" else {}
    with Positions(bootstrap, positions, topic, "memory") as found:
        newest = newest or hide(2)
        ended = threading.Timer(1.0, other.commit_transaction, [30])
        ended.start()
        found.read_to_end()
        ended.join()
        assert found.last == newest


def test_rows_that_were_removed_are_not_published_again(site: Adapters, tmp_path: Path) -> None:
    """Nothing of the adapter is on its topic any more: its position is kept apart."""
    source = tmp_path / "in.csv"
    source.write_text(f"{HEADER}\n0,1,2,3\n1,1,2,3\n")
    adapter = site.start("memory-0", "input", **file_input(source))
    wait_until(partial(at_row, site, "I,N,,1,"), 60, "the last row")
    adapter.stop()
    bootstrap = site.kafka.bootstrap
    everything = TopicPartition(site.input_topic, 0, Offsets(bootstrap).end(site.input_topic))
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_records([everything]).values():
        future.result(30)
    with source.open("a") as file:
        file.write("2,1,2,3\n")
    adapter.start()
    wait_until(partial(at_row, site, "I,N,,2,"), 60, "the new row")
    assert site.published() == ["I,N,,2,1,2,3"]


def test_the_result_file_is_exact_although_the_output_adapter_is_killed(
    site: Adapters, tmp_path: Path
) -> None:
    """SIGKILL at random moments while the adapter writes; aborted records never show."""
    result = tmp_path / "out.csv"
    file = {"path": str(result), "header": "full"}
    adapter = site.start("result", "output", file=file)
    writer = FencedWriter(site.kafka.bootstrap, f"test-{uuid.uuid4().hex}")
    writer.fence()
    chance, expected = random.Random(3), []
    wait_until(lambda: adapter.is_in("active"), 60, "the output adapter is active")
    for kill in range(6):
        for batch in range(30):
            texts = [f"I,N, {kill},{batch},{number}" for number in range(chance.randint(1, 30))]
            writer.commit(Record(site.output_topic, text.encode()) for text in texts)
            expected += texts
            if batch == 20:
                pid = child_of(adapter)
                os.kill(pid, signal.SIGKILL)
    child_of(adapter, but=pid)
    wait_until(lambda: len(lines_of(result)) > len(expected), 60, "every record is in the file")
    assert (
        lines_of(result)[0]
        == "opcode,flags,index_esp,Record_Counter,MemoryUsed,MemoryFree,epoch,sum20"
    )
    damage = compare(expected, lines_of(result)[1:])
    assert damage.none, damage.first
    assert adapter.told()["restarts"] >= 3


def child_of(adapter: Replica, but: int = 0) -> int:
    """Return the process id of the adapter's child, waiting for one other than `but`."""
    children: list[int] = []

    def found() -> bool:
        with contextlib.suppress(LookupError):
            children.append(adapter.child())
        return bool(children) and children[-1] != but

    wait_until(found, 60, "the adapter's process runs again")
    return children[-1]


def test_a_wrong_configuration_is_said_in_the_status(site: Adapters, tmp_path: Path) -> None:
    file = {"path": str(tmp_path / "out.csv")}
    replica = site.start("result", "output", window="cq/none", file=file)
    wait_until(lambda: "cq/none" in str(replica.status().get("message")), 60, "the sentence")
    assert "there are: cq/outbound" in replica.told()["message"]
    assert replica.told()["last_error"] == replica.told()["message"]


def test_the_status_says_how_far_adapters_are_and_what_was_wrong(
    site: Adapters, tmp_path: Path
) -> None:
    """The file is shorter for a while; then it goes on, and the error stays to be seen."""
    source, result = tmp_path / "in.csv", tmp_path / "out.csv"
    whole = f'{HEADER}\n1,1,2,3\n"open,1,2,3\n'
    source.write_text(whole)
    site.start_pair("memory", **file_input(source))
    active, standby = (
        next(one for one in site.replicas if one.is_in(state)) for state in ("active", "standby")
    )
    wait_until(lambda: active.status().get("rows") == 1, LIMIT_S, "the row is published")
    wait_until(
        lambda: active.status().get("lag") == len('"open,1,2,3\n'), LIMIT_S, "the rest waits"
    )
    assert active.told()["position"].startswith("in.csv, line 2, byte ")
    assert active.told()["last_error"] == ""
    wait_until(lambda: standby.status().get("line") == 2, LIMIT_S, "the standby follows")
    source.write_text(HEADER)
    wait_until(lambda: "waiting" in str(active.status().get("message")), LIMIT_S, "it says so")
    source.write_text(f'{whole}",1,2,3\n')
    wait_until(lambda: active.status().get("rows") == 2, LIMIT_S, "the other row is published")
    wait_until(lambda: active.status().get("lag") == 0, LIMIT_S, "nothing waits")
    assert active.told()["message"] == ""
    assert "waiting" in active.told()["last_error"]
    writer = FencedWriter(site.kafka.bootstrap, f"test-{uuid.uuid4().hex}")
    writer.fence()
    writer.commit([Record(site.output_topic, b"I,N, 1,2,3") for _ in range(10)])
    file = {"path": str(result)}
    output = site.start("result", "output", file=file)
    wait_until(lambda: output.status().get("rows") == 10, 60, "the result is written")
    wait_until(lambda: output.status().get("lag") == 0, LIMIT_S, "the marker does not count")


def test_rotations_of_every_kind_under_kills_lose_double_and_tear_nothing(
    site: Adapters, tmp_path: Path
) -> None:
    """Renamed with a late writer, copied and truncated; the active process is killed meanwhile."""
    source, chance, written = tmp_path / "in.csv", random.Random(18), 0
    site.start_pair("memory", **file_input(source, headerLines=0, settleS=0.5))
    file = source.open("ab", buffering=0)
    for turn in range(24):
        for _ in range(40):
            row = f"{written},1,2,3\n".encode()
            cut = chance.randint(0, len(row))
            file.write(row[:cut])
            file.write(row[cut:])
            written += 1
        if turn == 0:  # what rotation has put away before an adapter first read is not its file
            wait_until(lambda: bool(site.published()), 60, "a row is published")
        if turn % 3 == 2:
            for number in range(turn, 0, -1):
                if (old := tmp_path / f"in.csv.{number}").exists():
                    old.rename(tmp_path / f"in.csv.{number + 1}")
            if turn % 2:
                source.rename(tmp_path / "in.csv.1")
                file.write(f"{written},late,2,3\n".encode())
                written += 1
                file = source.open("ab", buffering=0)
            else:
                shutil.copyfile(source, tmp_path / "in.csv.1")
                os.truncate(source, 0)
        if turn % 4 == 3:
            wait_until(partial(killed, site), 60, "an active input adapter is killed")
    wait_until(lambda: len(site.published()) >= written, 120, "all rows are published")
    found = sorted((row.split(",") for row in site.published()), key=lambda row: int(row[3]))
    assert [int(row[3]) for row in found] == list(range(written))
    assert {tuple(row[5:]) for row in found} == {("2", "3")}
    assert {row[4] for row in found} == {"1", "late"}
