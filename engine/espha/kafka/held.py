"""Input that nobody can read: a producer has left a transaction open.

A read_committed reader stops at the oldest open transaction (the last stable offset), and whatever
others commit behind it waits too. Kafka ends the transaction when its time-out is over, which may
be a quarter of an hour. Nobody here can end it; but somebody should say so.
"""

import json
import time
from collections.abc import Callable, Container
from typing import NamedTuple

from espha.kafka.reader import PARTITION

STATISTICS = {"statistics.interval.ms": 2000}
_LONG_S = 10.0


class Held(NamedTuple):
    """A topic that cannot be read on."""

    topic: str
    since: float
    """When that was first seen (monotonic, s)."""


class HeldTopics:
    """Learns from a reader's statistics which topics stand still before their end."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, paused: Container[str] = frozenset()
    ) -> None:
        """Know of none.

        Args:
            clock: in seconds.
            paused: topics that the reader does not ask for now, so nothing new is told of them.
        """
        self._clock, self._paused = clock, paused
        self._stands: dict[str, tuple[int, float]] = {}

    def hear(self, statistics: str) -> None:
        """Note what the Kafka client tells, as JSON."""
        for topic, facts in json.loads(statistics).get("topics", {}).items():
            partition = facts.get("partitions", {}).get(str(PARTITION), {})
            stable, end = partition.get("ls_offset", -1), partition.get("hi_offset", -1)
            if topic in self._paused or not 0 <= stable < end:
                self._stands.pop(topic, None)
            elif self._stands.get(topic, (-1, 0.0))[0] != stable:
                self._stands[topic] = (stable, self._clock())

    def longest(self) -> Held | None:
        """Return the topic that has stood still the longest, if that is long."""
        found = [Held(topic, since) for topic, (_, since) in list(self._stands.items())]
        held = min(found, key=lambda one: one.since, default=None)
        return held if held and self._clock() - held.since > _LONG_S else None
