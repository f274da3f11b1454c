"""Looking for a topic's newest record of a kind, on a topic that is a plain list."""

import gc
import weakref
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from espha.kafka import reader
from espha.kafka.reader import ClientSettings, last_matching


class Record:
    """A record of a topic."""

    alive: ClassVar["weakref.WeakSet[Record]"] = weakref.WeakSet()

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.alive.add(self)


@pytest.fixture
def most_alive(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Have a topic of 10,000 records; return how many of them were in memory, at each one."""
    seen: list[int] = []

    class Ends:
        def __init__(self, bootstrap: str, settings: ClientSettings) -> None:
            """Connect."""

        def first(self, topic: str) -> int:
            """Return the first offset."""
            return 3

        def end(self, topic: str) -> int:
            """Return the last stable offset."""
            return 10_000

    def read_range(
        bootstrap: str, topic: str, start: int, end: int, settings: ClientSettings
    ) -> Iterator[Any]:
        for offset in range(start, end):
            yield Record(offset)
            seen.append(len(Record.alive))

    monkeypatch.setattr(reader, "Offsets", Ends)
    monkeypatch.setattr(reader, "read_range", read_range)
    return seen


@pytest.mark.parametrize(("kind", "newest"), [(7, 9_996), (6_000, 6_000), (9_999, 9_999)])
def test_the_newest_one_is_found(most_alive: list[int], kind: int, newest: int) -> None:
    found: Any = last_matching("b", "t", lambda message: message.offset % kind == 0)
    assert found.offset == newest


def test_a_whole_topic_without_one_does_not_fill_the_memory(most_alive: list[int]) -> None:
    """An adapter that has never published looks at all that others have."""
    gc.collect()
    assert last_matching("b", "t", lambda message: False) is None
    assert len(most_alive) == 10_000 - 3
    assert max(most_alive) <= 3
