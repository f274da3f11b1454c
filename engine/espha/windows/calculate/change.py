"""Calculate algorithms that watch how values move: MRR and ChangeDetection."""

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from espha.windows.calculate.summary import Summary
from espha.windows.shared.exact import Number

Rows = Sequence[Sequence[Number | None]]


class Mrr:
    """Moving relative range: the range of the values divided by the size of their mean."""

    def __init__(self, settings: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._summary = Summary(settings, ("minOut", "maxOut", "meanOut"))
        self._wanted = wanted

    def observe(self, values: tuple[Any, ...]) -> Rows:
        """Take one value; return one row."""
        ((low, high, mean),) = self._summary.observe(values)
        results: dict[str, Number | None] = dict.fromkeys(("mrrOut", "rangeOut", "meanOut"))
        if low is not None and high is not None:
            results |= {"rangeOut": high - low, "meanOut": mean}
            if mean:
                results["mrrOut"] = (high - low) / abs(mean)
        return ([results[name] for name in self._wanted],)

    def state(self) -> Any:
        """Return the summary's state."""
        return self._summary.state()

    def restore(self, state: Any) -> None:
        """Take over a summary."""
        self._summary.restore(state)


class ChangeDetection:
    """Tells when the last values are distributed otherwise than those before.

    The first `referenceSize` values are the reference; `nBins` bins of equal width lie between its
    least and its greatest value, what is beyond belongs to the outermost. The last `windowLength`
    values after it are compared with it by the Kullback-Leibler divergence of the bins' shares,
    each count half a value larger than it is, so that no share is zero. Beyond `threshold` a
    change is detected, these values are the new reference, and the window is empty.
    """

    def __init__(self, settings: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._size: int = settings["referenceSize"]
        self._length: int = settings["windowLength"]
        self._count: int = settings["nBins"]
        self._threshold: float = settings["threshold"]
        self._wanted = wanted
        self._reference: list[Number] = []
        self._window: deque[Number] = deque()
        self._prepare(ready=False)

    def _prepare(self, *, ready: bool) -> None:
        """Lay the bins over the reference."""
        self._ready = ready
        self._edges: list[float] = []
        if not ready:
            return
        low, high = float(min(self._reference)), float(max(self._reference))
        # The mean of the two, weighted: a difference of doubles could be infinite.
        parts = [number / self._count for number in range(1, self._count)]
        self._edges = [low * (1 - part) + high * part for part in parts]
        self._shares = self._shares_of(self._reference)
        self._counts = [0] * self._count
        for value in self._window:
            self._counts[bisect_right(self._edges, value)] += 1

    def _shares_of(self, values: Sequence[Number]) -> list[float]:
        counts = [0] * self._count
        for value in values:
            counts[bisect_right(self._edges, value)] += 1
        return _smoothed(counts)

    def observe(self, values: tuple[Any, ...]) -> Rows:
        """Take one value; return one row."""
        (value,) = values
        divergence, detected = None, 0
        if value is not None and not self._ready:
            self._reference.append(value)
            if len(self._reference) == self._size:
                self._prepare(ready=True)
        elif value is not None:
            divergence = self._compare(value)
        if divergence is not None and divergence > self._threshold:
            detected = 1
            self._reference, self._window = list(self._window), deque()
            self._prepare(ready=True)
        results = {"changeDetectedOut": detected, "changeValueOut": divergence}
        return ([results[name] for name in self._wanted],)

    def _compare(self, value: Number) -> float | None:
        self._window.append(value)
        self._counts[bisect_right(self._edges, value)] += 1
        if len(self._window) > self._length:
            self._counts[bisect_right(self._edges, self._window.popleft())] -= 1
        if len(self._window) < self._length:
            return None
        pairs = zip(_smoothed(self._counts), self._shares, strict=True)
        return math.fsum([now * math.log(now / before) for now, before in pairs])

    def state(self) -> Any:
        """Return the reference and the window."""
        return (self._ready, tuple(self._reference), tuple(self._window))

    def restore(self, state: Any) -> None:
        """Take over a reference and a window."""
        ready, reference, window = state
        self._reference, self._window = list(reference), deque(window)
        self._prepare(ready=ready)


def _smoothed(counts: Sequence[int]) -> list[float]:
    whole = 2 * sum(counts) + len(counts)
    return [(2 * count + 1) / whole for count in counts]
