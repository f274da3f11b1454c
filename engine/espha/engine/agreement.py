"""Whether this replica's state is the active engine's, seen before a failover and not after it.

Outputs say little of a state: a window may hold for an hour what is wrong. So the active engine
marks an order record now and then. Every replica has its worker digest the state as it is after
that very record; the active engine's digest stands in a later record, and each follower compares it
with its own. A digest may be missing, on either side: then nothing is compared.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from espha.protocol.checkpoint import CheckpointBegun, CheckpointOrder, CheckpointReport
from espha.protocol.order import OrderRecord, StateDigest

_Value = TypeVar("_Value")
_KEPT = 16
_EVERY_S = 60.0
_SHARE = 1000
"""The fork for a checkpoint holds up a replica for one part in so many of its time."""
_BESIDE_SHARE = 10
"""The forked process is there for one part in so many of the time."""
_LOOK_S = 0.02


class Digests(Protocol):
    """What digests the state, beside the work: `espha.engine.checkpoints.Checkpoints`."""

    def order(self) -> CheckpointOrder | None:
        """Return what goes with the batch behind which the state is meant; None: not now."""

    def begun(self, answer: CheckpointBegun | None) -> None:
        """Take the worker's answer."""

    @property
    def is_busy(self) -> bool:
        """Whether a digest is still to come."""

    def finished(self) -> list[CheckpointReport]:
        """Return what has come since the last time."""


class Difference(NamedTuple):
    """Two states that should be the same."""

    sequence: int
    here: str
    there: str
    engine: str


class Agreement:
    """The digests of this replica, and those that the order log tells."""

    def __init__(self, digests: Digests, clock: Callable[[], float] = time.monotonic) -> None:
        """Compare what `digests` finds; `clock` tells seconds."""
        self._digests, self._clock = digests, clock
        self._here: OrderedDict[int, str] = OrderedDict()
        self._there: OrderedDict[int, tuple[str, str]] = OrderedDict()
        self._untold: StateDigest | None = None
        self._marked = clock()
        self._pause_s = _EVERY_S
        self.last = StateDigest(0, "")
        """The newest digest of this replica's own."""

    def know(self, sequence: int, digest: str) -> None:
        """Note what a snapshot says of the state that this replica began with."""
        _put(self._here, sequence, digest)

    def due(self) -> bool:
        """Tell the active engine whether to mark the next record."""
        return self._clock() - self._marked >= self._pause_s

    def order(self) -> CheckpointOrder | None:
        """Return what goes with a batch whose record is marked; None: it cannot be now."""
        self._marked = self._clock()
        return self._digests.order()

    def begun(self, answer: CheckpointBegun | None) -> None:
        """Take the worker's answer to an order."""
        self._digests.begun(answer)
        if answer:
            self._pause_s = max(self._pause_s, answer.pause_ms / 1000 * _SHARE)

    def told(self) -> StateDigest | None:
        """Return, once, the newest digest of this replica, for an order record."""
        self._collect()
        told, self._untold = self._untold, None
        return told

    def heard(self, record: OrderRecord) -> None:
        """Note what an order record says of the active engine's state."""
        if record.state:
            _put(self._there, record.state.sequence, (record.state.digest, record.engine))

    def wait(self, limit_s: float) -> None:
        """Wait until no digest is still to come, `limit_s` seconds at most."""
        until = time.monotonic() + limit_s
        while self._digests.is_busy and time.monotonic() < until:
            time.sleep(_LOOK_S)
            self._collect()

    def difference(self) -> Difference | None:
        """Return the oldest difference that has not been returned; None: all that is known agrees.

        What agrees is forgotten, and so is what is returned.
        """
        self._collect()
        for sequence in sorted(self._here.keys() & self._there.keys()):
            here, (there, engine) = self._here.pop(sequence), self._there.pop(sequence)
            if here != there:
                return Difference(sequence, here, there, engine)
        return None

    def _collect(self) -> None:
        for report in self._digests.finished():
            self.last = self._untold = StateDigest(report.sequence, report.state)
            _put(self._here, report.sequence, report.state)
            self._pause_s = max(self._pause_s, report.took_ms / 1000 * _BESIDE_SHARE)


def _put(table: OrderedDict[int, _Value], sequence: int, value: _Value) -> None:
    table[sequence] = value
    while len(table) > _KEPT:
        table.popitem(last=False)
