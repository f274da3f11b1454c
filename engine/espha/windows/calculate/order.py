"""The last values, in their order and by size: percentiles, the mode, sample entropy."""

import math
from bisect import bisect_left, insort
from collections import deque
from itertools import islice
from typing import Any, Final

from espha.windows.shared.exact import Number

MOST: Final = 10_000
"""How many of the last events count where the window holds all."""
COMPARED: Final = 1_000
"""How many of the last events sample entropy compares: that costs the square of their number."""


class Recent:
    """The values of the last events: of `length`, or of `MOST` if that is 0."""

    def __init__(self, length: int) -> None:
        self._length = length or MOST
        self._events: deque[Number | None] = deque()
        self._sorted: list[Number] = []

    def put(self, value: Number | None) -> None:
        """Take the value of an event; the oldest event leaves."""
        self._events.append(value)
        if value is not None:
            insort(self._sorted, value)
        if len(self._events) > self._length:
            oldest = self._events.popleft()
            if oldest is not None:
                del self._sorted[bisect_left(self._sorted, oldest)]

    def percentile(self, percent: float) -> float:
        """Return a percentile: the mean of two values where it falls between them.

        That is the definition 5 of SAS, the empirical distribution with averaging.

        Raises:
            ValueError: there is no value.
        """
        if not self._sorted:
            raise ValueError("no observations")
        place = len(self._sorted) * percent / 100
        below = math.floor(place)
        upper = self._sorted[min(below, len(self._sorted) - 1)]
        if place > below or below == 0:
            return float(upper)
        return self._sorted[below - 1] / 2 + upper / 2

    def mode(self) -> float | None:
        """Return the most frequent value, the least of several; None: all occur once."""
        best: Number | None = None
        most, start = 1, 0
        for place, value in enumerate(self._sorted):
            if value != self._sorted[start]:
                start = place
            if place - start + 1 > most:
                most, best = place - start + 1, value
        return None if best is None else float(best)

    def sample_entropy(self, length: int, tolerance: float) -> float | None:
        """Return -ln(A / B): how seldom what was alike for `length` values stays so for one more.

        B counts the pairs of rows of `length` values that differ nowhere by more than the
        tolerance, A those of them that do not by their next values either. Nulls are left out, and
        what is older than the last `COMPARED` events.
        None: there are no such pairs.
        """
        import numpy as np  # only who asks for it waits for the import

        events = islice(self._events, max(0, len(self._events) - COMPARED), None)
        values = np.array([value for value in events if value is not None], dtype=float)
        alike = longer = 0
        for lag in range(1, len(values) - length):
            close = np.abs(values[lag:] - values[:-lag]) <= tolerance
            rows = close[: len(close) - length].copy()
            for shift in range(1, length):
                rows &= close[shift : len(close) - length + shift]
            alike += int(np.count_nonzero(rows))
            longer += int(np.count_nonzero(rows & close[length:]))
        return -math.log(longer / alike) if longer else None

    def state(self) -> Any:
        """Return the values, oldest first."""
        return tuple(self._events)

    def restore(self, state: Any) -> None:
        """Take over the values."""
        self._events = deque(state)
        self._sorted = sorted(value for value in state if value is not None)
