"""Whether a standby still hears the order log.

Its reader alone cannot tell: when it hangs, or does not reach the broker that leads the topic, it
knows of no newer record either. But the log never rests for long, since the active engine commits
every few seconds. So behind a longer silence the end is asked for, on another connection. Where
Kafka does not answer, or tells of nothing newer (a broker that is cut off from the others may take
itself for the leader), other replicas may know of newer records. Where Kafka is away as a whole,
nobody does, and everybody hears what there is.
"""

import time
from collections.abc import Callable
from typing import Protocol

from espha.engine.position import Position
from espha.kafka.reader import LogError

_SILENT_S = 10.0
"""Twice as long as an active engine rests at most."""
_AGAIN_S = 2.0
_TWICE = 2
"""So many looks in a row must say the same: the newest record may be on its way."""
_AWAY_S = 1.5
"""Who has not looked for so long was frozen, or led, or computed: it has not listened."""
ANSWER_S = 0.3
"""How long a standby waits to be told the log's end: it has something else to do."""


class LogEnd(Protocol):
    """What is needed of `espha.kafka.order_log.OrderLog` to see whether it is read to its end."""

    def at(self, end: int) -> bool:
        """Tell whether every record below a stable offset has been returned."""

    def end(self, limit_s: float) -> int:
        """Return the last stable offset."""


class Hearing:
    """Counts for how long nothing has come, and finds out whether that is all there is."""

    def __init__(
        self,
        log: LogEnd,
        at: Position,
        newest: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Listen to a log.

        Args:
            log: what is listened to.
            at: how far this replica is.
            newest: returns the newest order record that other replicas know of, soon.
            clock: tells seconds.
        """
        self._log, self._at, self._newest, self._clock = log, at, newest, clock
        self._looked = clock()
        self._next = self._looked + _SILENT_S
        self._missed = 0

    def is_deaf(self, heard: bool) -> bool:
        """Note whether something has come just now; tell whether there is more that has not."""
        now = self._clock()
        if heard:
            self._missed = 0
        if heard or now - self._looked > _AWAY_S:
            self._next = now + _SILENT_S
        if now >= self._next:
            self._next = now + _AGAIN_S
            self._missed = self._missed + 1 if self._misses_something() else 0
        self._looked = self._clock()
        return self._missed >= _TWICE

    def _misses_something(self) -> bool:
        try:
            if not self._log.at(self._log.end(ANSWER_S)):
                return True
        except LogError:
            pass  # Kafka does not answer, to this one
        # A broker that is cut off from the others may still take itself for the leader.
        try:
            return self._newest() > self._at.sequence
        except (RuntimeError, OSError):  # no thread, or nothing, is left to ask with
            return False
