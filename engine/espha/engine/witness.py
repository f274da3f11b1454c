"""What a standby sees of input that nobody orders; its supervisor judges it.

Each topic has a clock of its own: what is ordered of one says nothing about another. But while
others are ordered, the active engine may have a backlog of theirs before it, at which it gets on.
So the one number that is told is the longer one of two: for how long nothing at all was ordered,
and, but for some seconds, for how long the same record of a topic has waited.
"""

import time
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from espha.engine.hearing import ANSWER_S, LogEnd
from espha.kafka.reader import LogError
from espha.protocol.activity import Doing

_LOOK_S = 0.1
_SURE_S = 0.2
"""After so long the standby looks whether it is not just the order log that it cannot read."""
_LATELY_S = 1.0
"""So long ago the order log may have been read to what was its end then."""
_OTHERS_S = 10.0
"""For so long a topic waits for its turn, while others are ordered."""


class _Inputs(Protocol):
    """What it needs of `espha.engine.inputs.Inputs`."""

    def waiting(self) -> Collection[str]:
        """Return the topics of which there is input that no order record that was read names."""

    def next_offsets(self) -> Mapping[str, int]:
        """Return for each topic the offset at which its next range begins."""


class Witness:
    """Looks now and then whether input waits, and for how long already."""

    def __init__(
        self,
        log: LogEnd,
        inputs: _Inputs,
        doing: Doing,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Say in `doing` since when there is input that waits; see the module's text."""
        self._clock = clock
        self._log, self._inputs, self._doing = log, inputs, doing
        self._next = 0.0
        self._since: dict[str, float] = {}
        """Since when the next record of a topic waits."""
        self._places: dict[str, int] = {}
        self._moved = 0.0
        """When something was ordered last."""
        self._end, self._asked, self._read = 0, 0.0, 0.0
        """An end of the order log, when it was one, and when the last one was that was reached."""

    def look(self) -> None:
        """Look, if it is time to; costs a question to Kafka where something waits for long."""
        now = self._clock()
        if now < self._next:
            return
        self._next = now + _LOOK_S
        waiting = self._inputs.waiting()
        places = dict(self._inputs.next_offsets())
        if places != self._places:
            self._moved = now
        self._since = {
            topic: self._since.get(topic, now)
            if places.get(topic) == self._places.get(topic)
            else now
            for topic in waiting
        }
        self._places = places
        since = self._longest()
        sure = since is not None and now - since >= _SURE_S and self._all_read(now)
        self._doing.unordered_since = since if sure else None

    def forget(self) -> None:
        """Know of nothing that waits."""
        self._since = {}
        self._doing.unordered_since = None

    def _longest(self) -> float | None:
        """Return since when input waits whose turn it should have been; None: there is none."""
        if not self._since:
            return None
        oldest = min(self._since.values())
        return min(max(oldest, self._moved), oldest + _OTHERS_S)

    def _all_read(self, now: float) -> bool:
        """Say whether Kafka confirms that no order record of before a moment is left to be read.

        Where one follows the other, the newest one is always on its way.
        """
        try:
            if self._log.at(self._end):
                self._read, self._asked = self._asked, now
                self._end = self._log.end(ANSWER_S)
            if self._log.at(self._end):
                self._read = self._asked
        except LogError:
            return False
        return now - self._read <= _LATELY_S
