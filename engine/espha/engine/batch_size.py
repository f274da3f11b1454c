"""How many records the active engine takes for a batch, so that it takes some seconds at most.

What a record costs differs between models by five orders of magnitude. A batch that computes for
long delays all that waits, and brokers abort a transaction that is open for longer than its limit.
"""

from collections import deque

AT_MOST = 5_000
_FIRST = 512
"""A page of a call (see `espha.ha.progress_judge.PAGE_RECORDS`): so many where nothing is known."""
_TARGET_S = 5.0
_GROWS = 4
"""A batch has at most so many times the records of the one before, or a page."""
_BESIDE_S = 1.0
"""What a batch may take for reasons that are no record's: a pause, a tick of time, a snapshot."""
_FORGETS = 0.995
_REPLAYS = 8
"""So many replays in a row must have been slow for records to be called dear: one may have been
slow because its engine was frozen, or because others had the processor."""


class BatchSize:
    """Learns from batches how many records the next one may have.

    The last batch counts as it was: that a few records seem dear costs one small batch. What long
    batches have shown is forgotten slowly: dear records may come back after many cheap ones.
    """

    def __init__(self) -> None:
        """Know nothing yet."""
        self.limit = _FIRST
        """Records of the next batch, at most."""
        self._record_s = 0.0
        """What a record has cost in long batches."""
        self._replays = deque[float](maxlen=_REPLAYS)
        """What a record has cost in the last replays."""

    def replayed(self, records: int, took_s: float) -> None:
        """Hear how long it took to recompute so many records of another engine's batches."""
        if records:
            self._replays.append(took_s / records)

    def begin(self) -> None:
        """Begin to lead, knowing what replays have shown and nothing else."""
        usual = min(self._replays, default=0.0)
        self._replays.clear()
        self._record_s = 0.0
        self.limit = max(1, min(_FIRST, int(_TARGET_S / usual) if usual > 0 else _FIRST))

    def learn(self, records: int, took_s: float) -> None:
        """Hear how long a batch of so many records has taken until all outputs were handed over."""
        if not records:
            return
        self._record_s = max(self._record_s * _FORGETS, (took_s - _BESIDE_S) / records)
        cost_s = max(self._record_s, took_s / records)
        known = max(_FIRST, _GROWS * records)
        fits = int(_TARGET_S / cost_s) if cost_s > 0 else AT_MOST
        self.limit = max(1, min(AT_MOST, known, fits))
