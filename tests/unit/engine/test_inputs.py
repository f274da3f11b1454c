"""Which records of a range an engine processes, from a consumer that is a plain list."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, TopicPartition

from espha.engine import inputs as module
from espha.engine.digests import inputs_digest
from espha.engine.inputs import Inputs
from espha.kafka import reader
from espha.kafka.reader import LogError
from espha.pipeline.job import Input
from espha.protocol.order import Cursor, Range

TOPIC, OTHER = "t.I", "t.J"
Read = Callable[..., Inputs]


class Entry:
    """A record, or (without a value) the news that the end is reached."""

    def __init__(self, offset: int, value: bytes | None, topic: str = TOPIC) -> None:
        self._offset, self._value, self._topic = offset, value, topic

    def error(self) -> KafkaError | None:
        """None for a record."""
        return None if self._value is not None else KafkaError(KafkaError._PARTITION_EOF)

    def offset(self) -> int:
        """Where it lies."""
        return self._offset

    def topic(self) -> str:
        """The input topic."""
        return self._topic

    def value(self) -> bytes | None:
        """The record."""
        return self._value


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    """Make inputs of a topic that holds records at these offsets."""

    class Broker:
        entries: list[Entry]
        idle = 0

        def __init__(self, *_: Any, **__: Any) -> None:
            """Connect."""

        def first(self, topic: str) -> int:
            """Return the first offset."""
            return self.entries[0].offset()

        def poll(self, timeout: float) -> Entry | None:
            """Return the next entry."""
            self.idle += not self.entries
            assert self.idle < 100_000, "it waits for ever"
            return self.entries.pop(0) if self.entries else None

        def consume(self, limit: int, timeout: float) -> list[Entry]:
            """Return no more."""
            return []

        def seek(self, place: TopicPartition) -> None:
            """Go on at an offset."""
            while self.entries[0].offset() < place.offset:
                self.entries.pop(0)

    def made(*offsets: int, cursors: dict[str, Cursor] | None = None, ends: bool = True) -> Inputs:
        Broker.entries = [Entry(at, b"%d" % at) for at in offsets]
        if ends:
            Broker.entries.append(Entry(max(offsets) + 1, None))
        monkeypatch.setattr(module, "Offsets", Broker)
        monkeypatch.setattr(module, "reader", Broker)
        return Inputs("b", [TOPIC, OTHER], cursors)

    return made


def test_what_lies_before_the_first_range_is_not_processed(read: Read) -> None:
    """The first order record that is left names offset 3; the topic still holds 1 and 2."""
    found = read(1, 2, 3, 4).read(Range(TOPIC, 3, 5))
    assert [entry.offset for entry in found] == [3, 4]


def test_a_range_whose_last_record_is_missing_is_refused(read: Read) -> None:
    with pytest.raises(LogError, match=r"t\.I: the record at offset 5"):
        read(3, 4, 7).read(Range(TOPIC, 3, 6))


def test_a_range_that_does_not_go_on_where_the_one_before_ended_is_refused(read: Read) -> None:
    """What lies between would be left out, and nobody would know."""
    inputs = read(1, 2, 3, 4)
    inputs.read(Range(TOPIC, 1, 3))
    with pytest.raises(LogError, match=r"goes on at offset 4, this engine is at 3"):
        inputs.read(Range(TOPIC, 4, 5))


def test_a_range_whose_first_records_retention_has_removed_is_refused(read: Read) -> None:
    """An order record of the first format does not say how many there were."""
    with pytest.raises(LogError, match=r"records 1 to 2 are needed to rebuild the state"):
        read(3, 4, 5).read(Range(TOPIC, 1, 5))


def test_what_was_read_ahead_is_read_again_behind_a_snapshot(read: Read) -> None:
    inputs = read(3, 4, 5)
    inputs.read(Range(TOPIC, 3, 5))
    assert inputs.waiting() == [TOPIC], "5 is here, and nobody has processed it"
    assert inputs.cursors() == {TOPIC: Cursor(5, 5)}


def test_a_range_that_never_comes_is_not_waited_for_for_ever(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker that leads the topic is out of reach, or has lost its end."""
    monkeypatch.setattr(reader, "STANDSTILL_S", 0.0)
    monkeypatch.setattr(module, "_STEP_S", 0)
    with pytest.raises(LogError, match=r"t\.I, waiting for offset 9: nothing has come"):
        read(3, 4, ends=False).read(Range(TOPIC, 3, 10))


def test_input_that_nobody_orders_is_noticed(read: Read) -> None:
    inputs = read(3, 4, 5)
    assert inputs.waiting() == [TOPIC]
    inputs.read(Range(TOPIC, 3, 5))
    assert inputs.waiting() == [TOPIC]
    inputs.read(Range(TOPIC, 5, 6))
    assert inputs.waiting() == []


def test_input_is_noticed_though_other_input_waits(read: Read) -> None:
    inputs = read(3)
    assert inputs.waiting() == [TOPIC]
    cast("Any", inputs)._consumer.entries.append(Entry(3, b"3", OTHER))
    inputs.waiting()
    assert inputs.waiting() == [TOPIC, OTHER]


def test_the_digest_tells_apart_what_may_not_be_mixed_up() -> None:
    one = [Input("t", 1, b"ab"), Input("t", 2, b"c")]
    others = [
        [],
        one[:1],
        one[::-1],
        [Input("t", 1, b"a"), Input("t", 2, b"bc")],
        [Input("t", 1, b"ab"), Input("t", 3, b"c")],
        [Input("t", 1, b"ab"), Input("u", 2, b"c")],
        [*one, Input("t", 3, b"")],
    ]
    digests = [inputs_digest(each) for each in (one, *others)]
    assert len(set(digests)) == len(digests)
    assert digests[0] == inputs_digest(iter(one))


def test_what_is_gone_behind_a_snapshot_is_not_left_out_by_itself(read: Read) -> None:
    """Neither when this engine leads, nor when the order log names what is left."""
    gone = r"t\.I: records 28 to 39 come next, and retention has removed them; `espha skip`"
    with pytest.raises(LogError, match=gone):
        read(40, 41, cursors={TOPIC: Cursor(28, 28)}).take(9, 0)
    with pytest.raises(LogError, match=gone):
        read(40, 41, cursors={TOPIC: Cursor(28, 28)}).read(Range(TOPIC, 28, 41))


@pytest.mark.parametrize("to", [40, 41])
def test_what_is_gone_can_be_passed_over(read: Read, to: int) -> None:
    inputs = read(40, 41, 42, cursors={TOPIC: Cursor(28, 28)})
    inputs.pass_over(TOPIC, to)
    found = inputs.read(Range(TOPIC, to, 43))
    assert [entry.offset for entry in found] == [*range(to, 43)]


@pytest.mark.parametrize("ahead", [True, False], ids=["read ahead", "not read yet"])
def test_what_is_left_out_is_not_taken(read: Read, ahead: bool) -> None:
    """Another model has processed it, or `espha skip` says so: whoever leads takes the rest."""
    inputs = read(1, 2, 3, 4)
    for _ in range(4 * ahead):
        inputs.waiting()
    inputs.pass_over(TOPIC, 3)
    taken = [entry.offset for _ in range(4) for entry in inputs.take(9, 0)[1]]
    assert taken == [3, 4]


def test_what_is_gone_behind_the_place_to_go_on_is_noticed(read: Read) -> None:
    """Retention has gone on since."""
    inputs = read(40, 41, cursors={TOPIC: Cursor(28, 28)})
    inputs.pass_over(TOPIC, 35)
    with pytest.raises(LogError, match=r"records 28 to 39 come next"):
        inputs.take(9, 0)
