"""What a standby sees of input that nobody orders; its supervisor judges it."""

import time
from collections.abc import Callable
from typing import Protocol

from espha.engine.position import Position
from espha.kafka.reader import LogError
from espha.protocol.activity import Doing

_LOOK_S = 0.1
_SURE_S = 0.2
"""After so long the standby looks whether it is not just the order log that it cannot read."""
_ANSWER_S = 0.3


class _Log(Protocol):
    """What it needs of `espha.kafka.order_log.OrderLog`."""

    def at(self, end: int) -> bool:
        """Tell whether every record below a stable offset has been returned."""

    def end(self, limit_s: float) -> int:
        """Return the last stable offset."""


class _Inputs(Protocol):
    """What it needs of `espha.engine.inputs.Inputs`."""

    def waiting(self) -> bool:
        """Tell whether there is input that no order record that was read names."""


class Witness:
    """Looks now and then whether input waits, and for how long already."""

    def __init__(
        self,
        log: _Log,
        inputs: _Inputs,
        at: Position,
        doing: Doing,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Say in `doing` since when there is input that waits, with nothing ordered since."""
        self._clock = clock
        self._log, self._inputs, self._at, self._doing = log, inputs, at, doing
        self._next = 0.0
        self._since: float | None = None
        self._sequence = 0

    def look(self) -> None:
        """Look, if it is time to; costs a question to Kafka where something waits for long."""
        now = self._clock()
        if now < self._next:
            return
        self._next = now + _LOOK_S
        if not self._inputs.waiting():
            self.forget()
            return
        if self._since is None or self._at.sequence != self._sequence:
            self._since, self._sequence = now, self._at.sequence
        sure = now - self._since >= _SURE_S and self._all_read()
        self._doing.unordered_since = self._since if sure else None

    def forget(self) -> None:
        """Know of nothing that waits."""
        self._since = self._doing.unordered_since = None

    def _all_read(self) -> bool:
        """Say whether Kafka confirms that no order record is left to be read."""
        try:
            return self._log.at(self._log.end(_ANSWER_S))
        except LogError:
            return False
