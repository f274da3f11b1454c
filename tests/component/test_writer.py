"""What writes in transactions, and the exact readers, against a real Kafka of three brokers."""

import signal
import time
import uuid
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from pyspark.sql import SparkSession

from chaos.late_end import Coordinator, Transaction
from espha.connectors.topics import topic_plan
from espha.kafka.broker_time import broker_time
from espha.kafka.reader import Offsets, last_record, read_range, records_backwards
from espha.kafka.writer import Fenced, FencedWriter, Record, TooLarge, WriterFailed
from espha.pipeline import transactions
from espha.pipeline.fitting import size_of
from espha.pipeline.job import Batch, BatchJob, Input, Output, Result
from espha.pipeline.transactions import Transactions
from espha.protocol.sizes import MESSAGE_BYTES, RECORD_BYTES
from espha.reader import read_project
from support.models import SUB, source, xml
from support.servers import Kafka, wait_until

pytestmark = pytest.mark.component


@pytest.fixture
def topic(kafka: Kafka) -> str:
    """A new, empty topic."""
    name = f"topic-{uuid.uuid4().hex[:8]}"
    kafka.make_topics(name)
    return name


def values(kafka: Kafka, topic: str, writer: FencedWriter) -> list[bytes]:
    """Return what a topic shows once the writer's last commit, and its marker, are there."""
    offsets = Offsets(kafka.bootstrap)
    wait_until(lambda: offsets.end(topic) >= writer.committed, 30, "the commit's marker")
    end = offsets.end(topic)
    return [message.value() for message in read_range(kafka.bootstrap, topic, 0, end)]


def test_a_fenced_writer_commits_nothing(kafka: Kafka, topic: str) -> None:
    """I1: after a newer holder fenced, the older one fails for good and nothing of it shows."""
    old, new = (FencedWriter(kafka.bootstrap, f"id-{topic}") for _ in range(2))
    old.fence()
    old.commit([Record(topic, b"1")])
    new.fence()
    with pytest.raises(Fenced):
        old.commit([Record(topic, b"lost")])
    new.commit([Record(topic, b"2")])
    with pytest.raises(WriterFailed):
        old.commit([Record(topic, b"lost again")])
    assert values(kafka, topic, new) == [b"1", b"2"]


def test_an_open_transaction_is_aborted_by_the_next_holder(kafka: Kafka, topic: str) -> None:
    """What a dead holder left open never becomes visible and holds nobody up."""
    dead = FencedWriter(kafka.bootstrap, f"id-{topic}")
    dead.fence()
    dead._producer.begin_transaction()
    dead._produce(Record(topic, b"open"), None)
    dead._producer.flush()
    heir = FencedWriter(kafka.bootstrap, f"id-{topic}")
    heir.fence()
    heir.commit([Record(topic, b"after")])
    assert values(kafka, topic, heir) == [b"after"]


def test_what_comes_late_of_a_slow_commit_is_of_an_epoch_that_is_over(
    kafka: Kafka, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KAFKA-17754; here all commits are slow, and the last one finds out that it was replaced."""
    monkeypatch.setattr("espha.kafka.writer._SLOW_S", 0)
    mine, heir = (FencedWriter(kafka.bootstrap, f"id-{topic}") for _ in range(2))
    mine.fence()
    mine.commit([Record(topic, b"1", key=b"me")])
    with closing(Coordinator(kafka, f"id-{topic}")) as coordinator:
        first, answers, commit = coordinator.transaction(), list[int](), mine._commit

        def is_late() -> None:
            mine._producer.flush()
            wait_until(lambda: coordinator.transaction().state == "Ongoing", 30, "it is open")
            answers.append(coordinator.end(*first[1:]))
            commit()

        monkeypatch.setattr(mine, "_commit", is_late)
        mine.commit([Record(topic, b"2", key=b"me")])
        assert answers == [KafkaError.PRODUCER_FENCED]
    monkeypatch.setattr(mine, "_commit", commit)
    heir.fence()
    heir.commit([Record(topic, b"3", key=b"me")])
    with pytest.raises(Fenced):
        mine.commit([Record(topic, b"lost", key=b"me")])
    heir.commit([Record(topic, b"4", key=b"me")])
    assert values(kafka, topic, heir) == [b"1", b"2", b"3", b"4"]


def test_a_record_that_comes_elsewhere_is_not_committed(kafka: Kafka, topic: str) -> None:
    """What was read of the topic was not all, as of a broker that is cut off from the others."""
    writer = FencedWriter(kafka.bootstrap, f"id-{topic}")
    writer.fence()
    writer.commit([Record(topic, b"1")], at=0)
    with pytest.raises(WriterFailed, match="offset 2, and 5 was due"):
        writer.commit([Record(topic, b"never")], at=5)
    heir = FencedWriter(kafka.bootstrap, f"id-{topic}")
    heir.fence()
    heir.commit([Record(topic, b"2")], at=Offsets(kafka.bootstrap).settled(topic))
    assert values(kafka, topic, heir) == [b"1", b"2"]


def test_a_record_that_is_not_delivered_in_time_is_not_committed(
    kafka: Kafka, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows yet where it comes; it may be delivered later, and elsewhere."""
    writer = FencedWriter(kafka.bootstrap, f"id-{topic}")
    writer.fence()
    monkeypatch.setattr("espha.kafka.writer._COMMIT_TIMEOUT_S", 0)
    with pytest.raises(WriterFailed, match="not answered for 0 s; nothing is committed"):
        writer.commit([Record(topic, b"never")], at=0)
    monkeypatch.undo()
    heir = FencedWriter(kafka.bootstrap, f"id-{topic}")
    heir.fence()
    heir.commit([Record(topic, b"1")])
    assert values(kafka, topic, heir) == [b"1"]


def test_the_last_record_is_found_behind_markers_and_aborted_records(
    kafka: Kafka, topic: str
) -> None:
    """Control markers and aborted records take offsets: the last record is not at end - 1."""
    assert last_record(kafka.bootstrap, topic) is None
    writer = FencedWriter(kafka.bootstrap, f"id-{topic}")
    writer.fence()
    for number in range(3):
        writer.commit([Record(topic, b"%d" % number, (("n", b"%d" % number),))])
    writer._producer.begin_transaction()
    for _ in range(200):
        writer._produce(Record(topic, b"aborted"), None)
    writer._producer.flush()
    writer._producer.abort_transaction()
    last = last_record(kafka.bootstrap, topic)
    assert last is not None
    assert last.value() == b"2"
    assert last.headers() == [("n", b"2")]
    backwards = [message.offset() for message in records_backwards(kafka.bootstrap, topic)]
    assert len(backwards) == 3
    assert all(newer > older for newer, older in pairwise(backwards))


def test_a_broker_says_what_time_it_is(kafka: Kafka) -> None:
    """On a topic of which brokers stamp the records; elsewhere it would be this machine's word."""
    name = uuid.uuid4().hex[:8]
    kafka.make_topics(name, f"{name}.warm-up")
    told = broker_time(kafka.bootstrap, f"{name}.warm-up")
    assert told == pytest.approx(time.time() * 1000, abs=60_000)
    assert broker_time(kafka.bootstrap, name) is None


def test_the_largest_record_can_be_written_and_read(kafka: Kafka, topic: str) -> None:
    """Whatever engines write, brokers take, copy to each other, and hand over."""
    headers = (("espha-id", b"t:1:0"), ("espha-reason", b"y" * 1000))
    value = b"x" * (RECORD_BYTES - size_of(b"", headers))
    writer = FencedWriter(kafka.bootstrap, f"id-{topic}")
    writer.fence()
    writer.commit([Record(topic, value, headers)])
    assert values(kafka, topic, writer) == [value]


def outputs(topic: str, *texts: bytes) -> Result:
    return Result([Output(topic, value, (("n", value),)) for value in texts], 0)


def seen(kafka: Kafka, topic: str) -> list[bytes]:
    """Return what a topic shows when nobody's transaction is open on it."""
    offsets = Offsets(kafka.bootstrap)
    wait_until(lambda: not offsets.ends(topic).open, 30, "no open transaction")
    end = offsets.end(topic)
    return [message.value() for message in read_range(kafka.bootstrap, topic, 0, end)]


@pytest.fixture
def order(kafka: Kafka, topic: str) -> str:
    """An order log beside the topic."""
    name = f"{topic}.M"
    kafka.make_topics(name)
    return name


@pytest.fixture
def mine(kafka: Kafka, order: str, spark: SparkSession) -> Transactions:
    """The only holder of the order log's id."""
    made = Transactions(spark, kafka.bootstrap, order)
    made.fence()
    return made


def test_java_commits_outputs_and_order_record_together(
    kafka: Kafka, topic: str, spark: SparkSession
) -> None:
    """With their headers, in order; and it knows where the order log ends then."""
    kafka.make_topics(order := f"{topic}.M", scratch := f"{topic}.warm-up")
    mine = Transactions(spark, kafka.bootstrap, order)
    mine.warm_up([topic, order], scratch, "engine-0")
    mine.fence()
    for number in range(3):
        mine.begin()
        mine.commit(outputs(topic, b"%d" % number, b"x"), b"order-%d" % number)
        assert mine.committed == 2 * number + 2
    assert seen(kafka, topic) == [b"0", b"x", b"1", b"x", b"2", b"x"]
    assert seen(kafka, order) == [b"order-0", b"order-1", b"order-2"]
    last = last_record(kafka.bootstrap, topic)
    assert last is not None
    assert last.headers() == [("n", b"x")]
    mine.close()


def test_a_standby_stays_warm(
    kafka: Kafka, topic: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It rehearses for as long as it has nothing to commit, here much oftener than usual."""
    monkeypatch.setattr(transactions, "_LATER_ROUNDS", 0)
    monkeypatch.setattr(transactions, "_AGAIN_MS", 10)
    mine, rehearsed = rehearsing(kafka, topic, spark)
    before = rehearsed()
    wait_until(lambda: rehearsed() > before + 3, 60, "more rehearsals")
    monkeypatch.setattr(transactions, "_AGAIN_MS", 3_600_000)
    mine.warm_up([topic], scratch_of(topic), "engine-0")
    mine.close()


def test_a_young_jvm_rehearses_until_java_has_compiled(
    kafka: Kafka, topic: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java does that behind some 200 times; else it would do so behind the take-over."""
    monkeypatch.setattr(transactions, "_LATER_ROUNDS", 1_000_000)
    mine, rehearsed = rehearsing(kafka, topic, spark)
    # for less than the minute behind which those at the start are repeated
    wait_until(lambda: rehearsed() > 200, 30, "200 rehearsals", moved=rehearsed)
    monkeypatch.setattr(transactions, "_LATER_ROUNDS", 100)
    mine.warm_up([topic], scratch_of(topic), "engine-0")  # as the next engine process does
    wait_until(lambda: stands(rehearsed), 60, "no rehearsal any more")
    mine.close()


def test_who_leads_does_not_rehearse(
    kafka: Kafka, topic: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It commits by itself, and has better things to do."""
    monkeypatch.setattr(transactions, "_LATER_ROUNDS", 1_000_000)
    mine, rehearsed = rehearsing(kafka, topic, spark)
    first = rehearsed()
    wait_until(lambda: rehearsed() > first, 60, "one more rehearsal")
    mine.fence()
    wait_until(lambda: stands(rehearsed), 60, "no rehearsal any more")
    mine.close()


def rehearsing(
    kafka: Kafka, topic: str, spark: SparkSession
) -> tuple[Transactions, Callable[[], int]]:
    """Return a standby's transactions, and what tells how many commits it has rehearsed.

    Such a commit has six records, and a marker.
    """
    kafka.make_topics(scratch := scratch_of(topic))
    mine = Transactions(spark, kafka.bootstrap, topic)
    mine.warm_up([topic], scratch, "engine-0")
    offsets = Offsets(kafka.bootstrap)
    return mine, lambda: offsets.end(scratch) // 7


def scratch_of(topic: str) -> str:
    """Return the name of a topic's scratch topic."""
    return f"{topic}.warm-up"


def stands(number: Callable[[], int]) -> bool:
    """Say whether a number is the same a second later."""
    before = number()
    time.sleep(1)
    return number() == before


def test_java_is_fenced_for_good(kafka: Kafka, topic: str, spark: SparkSession) -> None:
    """I1: also by its own renewal; what was open is aborted."""
    kafka.make_topics(order := f"{topic}.M")
    old = Transactions(spark, kafka.bootstrap, order)
    old.fence()
    old.commit(outputs(topic, b"1"), b"first")
    old.send(Output(topic, b"open", ()))
    new = Transactions(spark, kafka.bootstrap, order)
    new.fence()
    assert seen(kafka, topic) == [b"1"]
    with pytest.raises(Fenced, match=order):
        old.commit(outputs(topic, b"lost"), b"lost")
    new.commit(outputs(topic, b"2"), b"second")
    with pytest.raises(WriterFailed):
        old.commit(outputs(topic, b"lost again"), b"lost")
    newest = new.renewed()
    newest.fence()
    newest.commit(outputs(topic, b"3"), b"third")
    assert seen(kafka, topic) == [b"1", b"2", b"3"]
    assert seen(kafka, order) == [b"first", b"second", b"third"]


def test_java_writes_all_of_a_transaction_or_nothing(
    kafka: Kafka, topic: str, order: str, mine: Transactions
) -> None:
    """I2: here the order record is one that no broker takes."""
    mine.send(Output(topic, b"never", ()))
    wait_until(lambda: Offsets(kafka.bootstrap).ends(topic).open, 30, "the output is there")
    with pytest.raises(TooLarge, match="RecordTooLarge"):
        mine.commit(Result([], 0), bytes(MESSAGE_BYTES + 1))
    heir = mine.renewed()
    heir.fence()
    assert seen(kafka, topic) == []
    assert seen(kafka, order) == []


def let_take(kafka: Kafka, topic: str, size: int) -> None:
    """Have a topic take records of so many bytes at most, as an owner of it may do at any time."""
    entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    wanted = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for done in admin.incremental_alter_configs([wanted]).values():
        done.result(30)


def test_that_a_topic_takes_no_record_of_this_size_is_told(
    kafka: Kafka, topic: str, order: str, mine: Transactions
) -> None:
    """A record is to blame then; many small ones in one batch of the client's are not."""
    small = NewTopic(f"{topic}.small", 1, 3, config={"max.message.bytes": "100000"})
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([small])[small.topic].result(30)
    many = [b"x" * 30_000] * 16  # in value and header
    mine.commit(outputs(small.topic, *many), b"first")
    with pytest.raises(TooLarge, match="RecordTooLarge"):
        mine.commit(outputs(small.topic, b"never", b"y" * 60_000, b"never"), b"lost")
    heir = mine.renewed()
    heir.fence()
    heir.commit(outputs(small.topic, b"2"), b"second")
    assert seen(kafka, small.topic) == [*many, b"2"]
    assert seen(kafka, order) == [b"first", b"second"]


def test_a_slow_commit_is_followed_by_a_new_epoch(
    kafka: Kafka, topic: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KAFKA-17754: its late second half must not end the next one; here all commits are slow.

    Only brokers whose transactions are of version 1 need it.
    """
    kafka.make_topics(order := f"{topic}.M", scratch := f"{topic}.warm-up")
    monkeypatch.setattr(transactions, "_SLOW_S", 0)
    mine = Transactions(spark, kafka.bootstrap, order)
    mine.warm_up([topic, order], scratch, "engine-0")
    mine.fence()
    mine.commit(outputs(topic, b"1"), b"first")
    number = mine.begin()
    mine.commit(outputs(topic, b"2"), b"second")
    assert mine.begin() == number, "version 2: each transaction has an epoch of its own"
    mine._version = 1
    mine.commit(outputs(topic, b"3"), b"third")
    assert mine.begin() != number
    mine.commit(outputs(topic, b"4"), b"fourth")
    heir = Transactions(spark, kafka.bootstrap, order)
    heir.fence()
    heir.commit(outputs(topic, b"5"), b"fifth")
    with pytest.raises(Fenced):
        mine.begin()
    assert seen(kafka, topic) == [b"1", b"2", b"3", b"4", b"5"]


def test_an_end_that_comes_late_does_not_end_the_next_transaction(
    kafka: Kafka, topic: str, order: str, mine: Transactions
) -> None:
    """KAFKA-17754, as a late request would do it; one with the epoch of today would end it."""
    offsets = Offsets(kafka.bootstrap)
    with closing(Coordinator(kafka, order)) as coordinator:

        def open_one() -> Transaction:
            mine.send(Output(topic, bytes(1 << 20), ()))  # more than a batch: sent at once
            wait_until(lambda: coordinator.transaction().state == "Ongoing", 30, "it is open")
            wait_until(lambda: offsets.ends(topic).open, 30, "the output is there")
            return coordinator.transaction()

        first = open_one()
        mine.commit(Result([], 0), b"first")
        second = open_one()
        assert second[1:] != first[1:]
        assert coordinator.end(*first[1:]) == KafkaError.PRODUCER_FENCED
        assert offsets.ends(topic).open
        mine.commit(Result([], 0), b"second")
        assert seen(kafka, order) == [b"first", b"second"]
        third = open_one()
        assert coordinator.end(*third[1:]) == 0, "this one is not late"
        wait_until(lambda: not offsets.ends(topic).open, 30, "the half is committed")
        with pytest.raises(WriterFailed):
            mine.commit(Result([], 0), b"third")


def test_a_log_that_has_lost_its_end_is_not_written_to(
    kafka: Kafka, topic: str, order: str, mine: Transactions
) -> None:
    """All brokers were without power, or somebody has made it anew."""
    for number in range(2):
        mine.commit(outputs(topic, b"%d" % number), b"order-%d" % number)
    admin, offsets = AdminClient({"bootstrap.servers": kafka.bootstrap}), Offsets(kafka.bootstrap)
    lost = offsets.topic_id(order)
    admin.delete_topics([order])[order].result(30)
    kafka.make_topics(order)
    wait_until(lambda: offsets.topic_id(order) != lost, 60, "the brokers know the new one")
    with pytest.raises(WriterFailed, match="lost its end: an order record has got offset 0, and 3"):
        mine.commit(outputs(topic, b"never"), b"never")
    heir = mine.renewed()
    heir.fence()
    assert seen(kafka, order) == []
    assert seen(kafka, topic) == [b"0", b"1"]


def test_a_topic_that_is_gone_is_waited_for_once(
    kafka: Kafka, topic: str, order: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a batch lasted as often half a minute as it has outputs for it, and counted as alive."""
    monkeypatch.setitem(transactions._SETTINGS, "max.block.ms", "3000")
    mine = Transactions(spark, kafka.bootstrap, order)
    mine.fence()
    began = time.monotonic()
    mine.send(Output("nowhere", b"1", ()))
    first = time.monotonic() - began
    for number in range(9):
        mine.send(Output("nowhere", b"%d" % number, ()))
    assert time.monotonic() - began < 5 * first, "each of the ten is waited for"
    with pytest.raises(WriterFailed, match="nowhere"):
        mine.commit(outputs(topic, b"never"), b"never")
    assert seen(kafka, topic) == []


def test_brokers_that_are_away_are_no_riddle(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A16: the JVM is not to blame, and stays."""
    for name in ("max.block.ms", "delivery.timeout.ms"):
        monkeypatch.setitem(transactions._SETTINGS, name, "10000")
    kafka = Kafka(tmp_path)
    try:
        kafka.start()
        kafka.make_topics("t", "t.M")
        mine, other = (Transactions(spark, kafka.bootstrap, "t.M") for _ in range(2))
        mine.fence()
        mine.commit(outputs("t", b"1"), b"first")
    finally:
        kafka.stop()
    acts: list[Callable[[], object]] = [
        lambda: mine.commit(outputs("t", b"2"), b"second"),
        lambda: other.warm_up(["elsewhere"], "t.warm-up", "engine-0"),
    ]
    for act in acts:
        with pytest.raises(WriterFailed) as raised:
            act()
        assert not isinstance(raised.value, Fenced)


def test_a_fence_finds_its_clients_there(
    kafka: Kafka, topic: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new one takes 20 to 400 ms of a take-over to find out who leads.

    One that is not answered in time is replaced; here there is time.
    """
    for name in ("_REQUEST_S", "_REQUEST_AT_MOST_S"):
        monkeypatch.setattr(f"espha.kafka.reader.{name}", 30.0)
    mine = Transactions(spark, kafka.bootstrap, topic)
    mine.warm_up([topic], topic, "engine-0")

    def warm() -> bool:  # on a busy machine it may take more than one attempt
        mine.keep_warm()
        return len(mine._offsets._consumers) == 2

    wait_until(warm, 60, "warm clients")

    def refuse(*_: object) -> None:
        raise AssertionError("a new client")

    monkeypatch.setattr("espha.kafka.reader.Consumer", refuse)
    mine.fence()
    heir = mine.renewed()
    heir.fence()
    heir.close()


def test_the_coordinator_is_connected_to_before_the_fence(
    kafka: Kafka, topic: str, spark: SparkSession
) -> None:
    """It is another broker than the one that the client begins with."""
    coordinator = kafka.coordinator_of(topic)
    begins = next(server for server in kafka.servers if server is not coordinator)
    mine = Transactions(spark, f"127.0.0.1:{begins.port}", topic)
    try:
        wait_until(lambda: is_connected(jvm(spark), coordinator.port), 30, "a connection")
    finally:
        mine.close()


def jvm(spark: SparkSession) -> Path:
    """Return what the kernel says of Spark's JVM."""
    return Path(f"/proc/{spark._jvm.java.lang.ProcessHandle.current().pid()}")


def is_connected(process: Path, port: int) -> bool:
    """Tell whether a process has a connection to a port of the loopback."""
    own = set()
    for file in (process / "fd").iterdir():
        with suppress(OSError):
            own.add(str(file.readlink()))
    tables = [process / "net" / name for name in ("tcp", "tcp6")]
    entries = [line.split() for table in tables for line in table.read_text().splitlines()[1:]]
    return any(
        entry[2].endswith(f":{port:04X}") and entry[3] == "01" and f"socket:[{entry[9]}]" in own
        for entry in entries
    )


def test_a_coordinator_that_is_away_is_not_asked_for_without_a_pause(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A16: the last broker names a dead one, and has better things to do than to say it again."""
    monkeypatch.setitem(transactions._SETTINGS, "max.block.ms", "3000")
    kafka = Kafka(tmp_path, 3)
    try:
        kafka.start()
        kafka.make_topics("t.M")
        mine = Transactions(spark, kafka.bootstrap, "t.M")
        coordinator = kafka.coordinator_of("t.M")
        other = next(server for server in kafka.servers if server is not coordinator)
        for server in (coordinator, other):
            server.kill()
        before = writes(spark)
        with pytest.raises(WriterFailed):
            mine.fence()
        asked = writes(spark) - before
    finally:
        kafka.stop()
    assert asked < 1000, "a question each 20 ms, and what else there is to say"


def writes(spark: SparkSession) -> int:
    """Return how often Spark's JVM has written anything so far, to a socket or elsewhere."""
    counters = (jvm(spark) / "io").read_text()
    return int(dict(line.split(": ") for line in counters.splitlines())["syscw"])


def test_a_batch_whose_outputs_wait_for_room_gets_on(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody computes while brokers take nothing, and nobody hangs: it is Kafka's time."""
    monkeypatch.setitem(transactions._SETTINGS, "buffer.memory", str(1 << 20))
    text = xml(
        source("id*:int64,text:string", 'insert-only="true" index="pi_EMPTY"')
        + '<window-copy name="out" index="pi_EMPTY">'
        + f"{SUB}</window-copy>",
        '<edge source="in" target="out"/>',
    )
    project = read_project(text)
    plan = topic_plan(project, "t")
    # A few rows fill the client's room: far less than 30 times anything can move before that.
    rows = [Input(plan.inputs["q/in"], at, b"I,N,%d," % at + b"x" * 200_000) for at in range(20)]
    kafka = Kafka(tmp_path)
    moves = 0
    try:
        kafka.start()
        kafka.make_topics(plan.outputs["q/out"], plan.order_log)
        mine = Transactions(spark, kafka.bootstrap, plan.order_log)
        mine.fence()
        mine.commit(outputs(plan.outputs["q/out"], b"1"), b"first")
        (broker,) = kafka.servers

        def moved() -> None:
            nonlocal moves
            moves += 1
            if moves == 30:
                broker.signal(signal.SIGCONT)

        with closing(BatchJob(spark, text, project, plan, collect=False)) as job:
            job.greet()
            job.when_moved(moved)
            broker.signal(signal.SIGSTOP)
            (result,) = job.run([Batch(None, 1, 0, rows)], mine.begin())
            assert moves >= 30, "nothing has moved for long"
            assert result.waited_s > 0
            mine.commit(result, b"second")
        assert len(seen(kafka, plan.outputs["q/out"])) == 21
        mine.close()
    finally:
        kafka.stop()
