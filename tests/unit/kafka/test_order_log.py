"""What has been read of an order log whose records are followed by markers that nobody sees."""

import json
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition

from espha.kafka import order_log as orderlog
from espha.kafka import reader
from espha.kafka.order_log import OrderLog, last_order_record
from espha.kafka.reader import LogError
from espha.protocol.order import FORMAT, OrderRecord


class Entry:
    """A record, or (without a value) the news that the end is reached."""

    def __init__(self, offset: int, value: bytes | None) -> None:
        self._offset, self._value = offset, value

    def error(self) -> KafkaError | None:
        """None for a record."""
        return None if self._value else KafkaError(KafkaError._PARTITION_EOF)

    def offset(self) -> int:
        """Where it lies."""
        return self._offset

    def topic(self) -> str:
        """The order log."""
        return "t.M"

    def value(self) -> bytes | None:
        """The record."""
        return self._value


class Foreign(Entry):
    """A record that somebody else wrote; it need not have a value."""

    def error(self) -> KafkaError | None:
        """None for a record."""
        return None


class Broker:
    """Stands in for the client and the brokers: hands out entries from an offset on."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.at_hand = self.idle = 0
        self.readers = list[dict[str, int]]()

    def reader(self, bootstrap: str, topics: dict[str, int], wait_ms: int) -> "Broker":
        """Begin to read."""
        self.readers.append(topics)
        return self

    def assign(self, places: list[TopicPartition]) -> None:
        """Begin to read somewhere else."""
        self.readers.append({place.topic: place.offset for place in places})

    def first(self, topic: str) -> int:
        """Return the first offset."""
        return 0

    def poll(self, timeout: float) -> Entry | None:
        """Return the next entry."""
        self.idle += not self.entries
        assert self.idle < 10_000, "it waits for ever"
        return self.entries.pop(0) if self.entries else None

    def consume(self, limit: int, timeout: float) -> list[Entry]:
        """Return what else is at hand."""
        found, self.entries = self.entries[: self.at_hand], self.entries[self.at_hand :]
        return found


def record(offset: int) -> Entry:
    made = OrderRecord(
        sequence=offset // 2 + 1, inputs=(), clock=1, outputs=0, digest="", model="", engine="e",
        epoch=1, runtime="",
    )  # fmt: skip
    return Entry(offset, made.encode())


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    made = Broker()

    def offsets(bootstrap: str) -> Any:
        return made

    monkeypatch.setattr(orderlog, "reader", made.reader)
    monkeypatch.setattr(orderlog, "Offsets", offsets)
    return made


def test_the_marker_at_the_end_need_not_be_passed(broker: Broker) -> None:
    """Two transactions take four offsets; both records are there when the second one is."""
    log = OrderLog("b", "t.M")
    broker.entries = [record(0), record(2)]
    assert not log.at(4)
    assert [one.sequence for one in log.poll(0, 9)] == [1]
    assert log.at(2)
    assert not log.at(4)
    assert [one.sequence for records in log.read_to(4, 9) for one in records] == [2]
    assert log.at(4)


def test_what_was_aborted_is_passed_when_the_end_is_told(broker: Broker) -> None:
    """Offsets 2 and 3 are an aborted record and its marker: nothing comes of them."""
    log = OrderLog("b", "t.M")
    broker.entries = [record(0)]
    log.poll(0, 9)
    assert not log.at(4)
    broker.entries = [Entry(4, None)]
    assert list(log.read_to(4, 9)) == [[]]
    assert log.reached == 4


def test_an_empty_log_is_read(broker: Broker) -> None:
    assert OrderLog("b", "t.M").at(0)


def test_it_can_be_followed_again_from_another_place(broker: Broker) -> None:
    log = OrderLog("b", "t.M")
    log.reopen(7)
    assert broker.readers == [{"t.M": 0}, {}, {"t.M": 7}]
    assert (log.reached, log.at(8), log.at(9)) == (7, True, False)


def decoded(broker: Broker, **fields: object) -> OrderRecord:
    told = json.loads(record(0).value() or b"") | fields
    broker.entries = [Entry(0, json.dumps(told).encode())]
    return OrderLog("b", "t.M").poll(0, 9)[0]


def test_a_log_that_does_not_go_on_is_not_waited_for_for_ever(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its leader does not answer this engine; in a take-over others wait for it."""
    monkeypatch.setattr(reader, "STANDSTILL_S", 0.0)
    broker.entries = [record(0)]
    with pytest.raises(LogError, match=r"waiting for offset 9: nothing has come"):
        list(OrderLog("b", "t.M").read_to(9, 10))


def test_a_field_of_a_newer_espha_is_ignored(broker: Broker) -> None:
    """Else nobody could go back after an upgrade."""
    assert decoded(broker, format=2, mood="good").sequence == 1


def test_records_of_the_first_format_are_read(broker: Broker) -> None:
    old = decoded(broker)
    assert (old.format, old.records, old.semantics) == (1, None, None)


@pytest.mark.parametrize("changes", [{}, {"inputs": {"t.I": [0, 1]}}])
def test_a_format_of_a_newer_espha_is_refused_by_name(
    broker: Broker, changes: dict[str, object]
) -> None:
    """Whether it looks like this one's or not."""
    newer = FORMAT + 1
    says = rf"offset 0: an order record of format {newer}.*espha 7\.1"
    with pytest.raises(LogError, match=says):
        decoded(broker, format=newer, runtime="espha 7.1, Python 3.14", **changes)


def test_what_is_no_order_record_is_refused(broker: Broker) -> None:
    broker.entries = [Entry(0, b"hello")]
    with pytest.raises(LogError, match="offset 0: not an order record"):
        OrderLog("b", "t.M").poll(0, 9)


@pytest.mark.parametrize("value", [b"hello", b"{}", b"[1]", b"7", None])
def test_what_is_no_order_record_is_passed_where_that_is_allowed(
    broker: Broker, value: bytes | None
) -> None:
    """What stands before it comes first; it is read once more then."""
    strays = list[str]()
    log = OrderLog("b", "t.M")
    log.at_stray = lambda stray: strays.append(str(stray))
    broker.at_hand, stray, later = 9, Foreign(2, value), record(4)
    broker.entries = [record(0), stray, later]
    assert [one.sequence for one in log.poll(0, 9)] == [1]
    assert (strays, log.reached, broker.readers[-1]) == ([], 1, {"t.M": 2})
    broker.entries = [stray, later]
    assert [one.sequence for one in log.poll(0, 9)] == [3]
    assert ["offset 2: not an order record" in one for one in strays] == [True]
    assert log.reached == 5


def test_the_newest_order_record_may_have_stray_ones_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever starts asks of which model the next one is."""
    there = [Foreign(6, b"hello"), record(4), Foreign(2, b""), record(0)]
    monkeypatch.setattr(orderlog, "records_backwards", lambda *_: iter(there))
    found = last_order_record("b", "t.M")
    assert found is not None
    assert found.sequence == 3
    monkeypatch.setattr(orderlog, "records_backwards", lambda *_: iter(there[:1]))
    assert last_order_record("b", "t.M") is None


def test_what_has_a_number_is_never_passed(broker: Broker) -> None:
    """It may be an order record that is damaged, and the next one would have its number."""
    log = OrderLog("b", "t.M")
    log.at_stray = lambda stray: None
    broker.entries = [Entry(0, b'{"sequence": 1, "clock": "no"}')]
    with pytest.raises(LogError, match="offset 0: not an order record"):
        log.poll(0, 9)


def test_a_log_that_has_lost_its_end_is_not_taken_for_read(broker: Broker) -> None:
    """Else this engine would go on behind records that are gone, and write their numbers again."""
    log = OrderLog("b", "t.M", start=200)
    with pytest.raises(LogError, match=r"ends at offset 180, and records up to 199 were read"):
        list(log.read_to(180, 9))
    assert list(log.read_to(199, 9)) == []
