"""How many order records a standby processes together.

To begin a job costs a standby several times what a small batch in it costs. So it lets a few order
records come together, for a time that is short beside a take-over, which does not wait for it:
what is held is processed while the fence goes on.
"""

import time
from collections.abc import Callable

from espha.protocol.order import OrderRecord

_TOGETHER = 3
"""So many records make a job, at 18 ms from one commit to the next."""
_HOLDS_S = 0.08
"""No record waits for longer than this for others."""
_SMALL = 100
"""Input records of batches that cost less than to begin a job."""
_PRACTICE = 1000
"""Jobs of a life before records are held: Java compiles what has run often, and a young JVM that
has to lead shall have run it."""


class Gathering:
    """Holds order records until it is worth while to process them, or time to."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Hold nothing; `clock` tells seconds."""
        self._clock = clock
        self._held: list[OrderRecord] = []
        self._since = 0.0
        self._jobs = 0

    def put(self, records: list[OrderRecord]) -> None:
        """Add some, behind those that are held."""
        if not self._held:
            self._since = self._clock()
        self._held += records

    @property
    def is_empty(self) -> bool:
        """Whether nothing is held."""
        return not self._held

    @property
    def is_due(self) -> bool:
        """Whether what is held shall wait no longer; False where nothing is held."""
        if not self._held:
            return False
        last = self._held[-1]
        return (
            self._jobs < _PRACTICE
            or len(self._held) >= _TOGETHER
            or bool(last.heir)
            or self._clock() - self._since >= _HOLDS_S
            or sum(_size(record) for record in self._held) > _SMALL
        )

    def take(self) -> list[OrderRecord]:
        """Return what is held, in order, and hold nothing from then on."""
        taken, self._held = self._held, []
        self._jobs += bool(taken)
        return taken


def _size(record: OrderRecord) -> int:
    """Return how many input records a batch may have: offsets are counted where nothing tells."""
    if record.records is not None:
        return record.records
    return sum(wanted.end - wanted.start for wanted in record.inputs)
