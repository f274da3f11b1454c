"""Where an engine stands in the order log."""

import time
from dataclasses import dataclass, field

from espha.pipeline.job import Batch, Input, Result
from espha.protocol.order import OrderRecord, Shadow, Skip
from espha.protocol.status import Counts, TakeOverFacts
from espha.recovery.store import SnapshotMeta


@dataclass
class Position:
    """Where an engine stands in the order log, and what its model said last."""

    sequence: int = 0
    epoch: int = 0
    clock: int = 0
    active: str = ""
    """Name of the engine that committed the last order record; empty: not seen yet."""
    fresh: bool = True
    """The next batch starts with empty state: nothing of this model was processed before."""
    counts: Counts = field(default_factory=Counts)
    heir: str = ""
    """Whom the last order record names as the engine that goes on; empty: nobody, or seen to."""
    left_to: str = ""
    """The same, and it stays until the next order record."""
    begins: bool = False
    """The model of this engine begins here, with empty state: the order log says so."""
    model: str = ""
    """Digest of the model that the next order record is of; empty: not known."""
    since: int = 0
    """Order record behind which the model of this engine began with empty state."""
    shadow: Shadow | None = None
    """The next model, as the last order record has it."""
    due: int | None = None
    """Clock (ms) at which the model has something to do without input; None: never."""
    _passed: float = field(default_factory=time.monotonic)

    @property
    def knows_nothing(self) -> bool:
        """Neither an order record nor a snapshot has said yet where the order log stands."""
        return self.sequence == 0

    @property
    def begun(self) -> bool:
        """The model of this engine has begun: it processes what the next order record names."""
        return not self.fresh or self.begins

    @property
    def age_ms(self) -> float:
        """How long ago the last order record was processed here."""
        return (time.monotonic() - self._passed) * 1000

    @classmethod
    def behind(cls, meta: SnapshotMeta) -> "Position":
        """Return the position of a state that was restored."""
        return cls(
            meta.sequence,
            meta.epoch,
            meta.clock,
            fresh=False,
            counts=meta.counts,
            since=meta.since,
        )

    def passed(self, record: OrderRecord) -> None:
        """Go behind an order record."""
        self.sequence, self.epoch, self.clock = record.sequence, record.epoch, record.clock
        self.active, self.heir = record.engine, record.heir
        self.left_to = record.heir
        self.model = record.next_model
        self.shadow = None if record.switch else record.shadow
        self._passed = time.monotonic()

    def begin(self, since: int) -> None:
        """Begin with empty state behind an order record."""
        self.fresh = self.begins = True
        self.since, self.counts, self.due = since, Counts(), None

    def batch(
        self, sequence: int, clock: int, inputs: list[Input], skipped: tuple[Skip, ...] = ()
    ) -> Batch:
        """Return the batch that comes next here."""
        expect = None if self.fresh else self.sequence
        self.fresh = self.begins = False
        return Batch(expect, sequence, clock, inputs, skipped)

    def count(self, batch: Batch, result: Result) -> None:
        """Add a batch that was processed."""
        self.counts = self.counts.plus(
            events_in=len(batch.inputs),
            events_out=result.total - result.refused,
            dead_letters=result.refused,
            quarantined=len(batch.skipped),
        )
        self.due = result.due


def taken_over(before: Position, after: Position) -> TakeOverFacts:
    """Return how an engine became the active one.

    Args:
        before: behind the last order record of the engine before.
        after: behind its own first one.
    """
    if before.knows_nothing:
        return TakeOverFacts()
    return TakeOverFacts(
        taken_from=before.active,
        taken_as_planned=before.left_to == after.active,
        takeover_gap_ms=after.clock - before.clock,
    )
