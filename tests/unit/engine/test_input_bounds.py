"""Input that is read ahead is bounded by bytes, and what the order log names always comes."""

import json
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from espha.engine import inputs
from espha.engine.inputs import Inputs
from espha.protocol.order import Range
from espha.protocol.sizes import BATCH_BYTES, BUFFER_BYTES

MEGABYTE = 1 << 20


class Consumer:
    """Hands over the records of its topics in turn; of a paused one it hands over nothing."""

    def __init__(self, topics: dict[str, list[bytes]]) -> None:
        self.waiting = {topic: deque(enumerate(values)) for topic, values in topics.items()}
        self.paused: set[str] = set()

    def poll(self, timeout: float) -> Any:
        """Return the next record."""
        for topic, records in self.waiting.items():
            if records and topic not in self.paused:
                self.waiting[topic].rotate(0)
                offset, value = records.popleft()
                return _message(topic, offset, value)
        return None

    def consume(self, limit: int, timeout: float) -> list[Any]:
        """Return what is at hand, no more than a client keeps."""
        found = [self.poll(0) for _ in range(min(limit, 4))]
        return [each for each in found if each is not None]

    def pause(self, partitions: list[Any]) -> None:
        """Hand over nothing of these."""
        self.paused |= {each.topic for each in partitions}

    def resume(self, partitions: list[Any]) -> None:
        """Hand them over again."""
        self.paused -= {each.topic for each in partitions}


def _message(topic: str, offset: int, value: bytes) -> Any:
    return SimpleNamespace(
        topic=lambda: topic, offset=lambda: offset, value=lambda: value, error=lambda: None
    )


class _Offsets:
    def __init__(self, bootstrap: str) -> None:
        pass

    def first(self, topic: str) -> int:
        return 0


def made(monkeypatch: pytest.MonkeyPatch, topics: dict[str, list[bytes]]) -> Inputs:
    monkeypatch.setattr(inputs, "Offsets", _Offsets)
    monkeypatch.setattr(inputs, "reader", lambda bootstrap, starts, settings: Consumer(topics))
    return Inputs("", list(topics))


def held(read: Inputs) -> int:
    return sum(buffer._bytes for buffer in read._buffers.values())


def test_a_batch_is_bounded_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    read = made(monkeypatch, {"a": [b"x" * MEGABYTE] * 9})
    sizes = []
    while taken := read.take(5000, 0)[1]:
        sizes.append(sum(len(entry.value) for entry in taken))
    assert sum(sizes) == 9 * MEGABYTE
    assert max(sizes) <= BATCH_BYTES


def test_a_record_that_alone_is_too_large_is_a_batch_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = made(monkeypatch, {"a": [b"x", b"y" * (BATCH_BYTES + 1), b"z"], "b": [b"w"]})
    taken = [read.take(5000, 0) for _ in range(3)]
    assert [[len(entry.value) for entry in inputs] for _, inputs in taken] == [
        [1, 1],
        [BATCH_BYTES + 1],
        [1],
    ]
    assert [ranges for ranges, _ in taken] == [
        [Range("a", 0, 1), Range("b", 0, 1)],
        [Range("a", 1, 2)],
        [Range("a", 2, 3)],
    ]


def test_what_is_read_ahead_is_bounded_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order log wants the last record of one topic, and there is far more of another."""
    much = [b"x" * MEGABYTE] * 200
    read = made(monkeypatch, {"much": much, "few": [b"1", b"2"]})
    assert [entry.value for entry in read.read(Range("few", 0, 2))] == [b"1", b"2"]
    assert held(read) <= BUFFER_BYTES
    assert len(read.read(Range("much", 0, 200))) == 200, "more than a share, when it is named"


def test_a_topic_that_was_paused_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    read = made(monkeypatch, {"much": [b"x" * MEGABYTE] * 200, "few": [b"1"]})
    read.read(Range("few", 0, 1))
    taken = 0
    while found := read.take(5000, 0)[1]:
        taken += len(found)
    assert taken == 200


def test_a_topic_that_is_paused_is_not_said_to_be_held(monkeypatch: pytest.MonkeyPatch) -> None:
    read = made(monkeypatch, {"much": [b"x" * MEGABYTE] * 200, "few": [b"1"]})
    read.read(Range("few", 0, 1))
    stands = {"partitions": {"0": {"ls_offset": 7, "hi_offset": 9}}}
    read.held_topics.hear(json.dumps({"topics": {"much": stands, "few": stands}}))
    assert list(read.held_topics._stands) == ["few"]


def shares(read: Inputs, limit: int) -> list[tuple[str, int]]:
    """Take a batch; return how many records it has of each topic, in order."""
    ranges, taken = read.take(limit, 0)
    offsets = [(topic, at) for topic, start, end in ranges for at in range(start, end)]
    assert [(entry.topic, entry.offset) for entry in taken] == offsets, "the order log says it so"
    return [(topic, end - start) for topic, start, end in ranges]


def test_topics_have_equal_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one does not use is the others'; who begins changes with each batch."""
    read = made(monkeypatch, {"a": [b"x"] * 20, "b": [b"y"] * 5, "c": [b"z"] * 2})
    taken = [shares(read, 9) for _ in range(4)]
    assert taken == [
        [("a", 4), ("b", 3), ("c", 2)],
        [("b", 2), ("a", 7)],
        [("a", 9)],
        [],
    ]


def test_a_large_record_does_not_wait_for_others_to_have_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is larger than its topic's share; the others have more than theirs, and never end."""
    large = [b"x" * (BATCH_BYTES - 1)] * 2
    read = made(monkeypatch, {"a": large, "b": [b"y" * MEGABYTE] * 40})
    taken = [shares(read, 5000) for _ in range(4)]
    assert [dict(share).get("a", 0) for share in taken] == [1, 0, 1, 0]


@pytest.mark.parametrize("limit", [5000, 400])
def test_no_source_waits_for_the_end_of_another_ones_backlog(
    monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """Its record comes behind the backlog's, of which a standby holds much already."""
    read = made(monkeypatch, {"a": [b"x"] * 60_000, "b": [b"y"]})
    assert read.waiting()
    batches = 0
    while not any(topic == "b" for topic, _ in shares(read, limit)):
        batches += 1
        assert batches < 20, "it starves"
