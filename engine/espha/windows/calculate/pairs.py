"""Calculate algorithms over two fields: correlations."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from espha.windows.shared.exact import Number, PairSums

Rows = Sequence[Sequence[Number | None]]


class Correlation:
    """Pearson's correlation of x and y; a pair with a null does not count."""

    def __init__(self, settings: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._length: int = settings["windowLength"]
        self._wanted = wanted
        self._window: deque[tuple[Any, ...]] = deque()
        self._sums = PairSums()

    def observe(self, values: tuple[Any, ...]) -> Rows:
        """Take one pair; return one row."""
        if self._length:
            self._window.append(values)
            if len(self._window) > self._length:
                self._count(self._window.popleft(), -1)
        self._count(values, 1)
        return ([self._sums.correlation() for _ in self._wanted],)

    def _count(self, pair: tuple[Any, ...], sign: int) -> None:
        if None not in pair:
            self._sums.add(pair[0], pair[1], sign)

    def state(self) -> Any:
        """Return the window; of all events, the sums."""
        return tuple(self._window) if self._length else self._sums.state()

    def restore(self, state: Any) -> None:
        """Take over the observations."""
        self._window, self._sums = deque(), PairSums()
        if not self._length:
            self._sums.restore(state)
            return
        for pair in state:
            self._window.append(pair)
            self._count(pair, 1)


class SegmentedCorrelation:
    """The correlation within a segment: events in a row with the same indicator."""

    def __init__(self, settings: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._least: int = max(2, settings["minSize"])
        self._most: int = settings["maxSize"]
        self._wanted = wanted
        self._segment: Any = None
        self._begin()

    def _begin(self) -> None:
        self._correlation = Correlation({"windowLength": self._most}, self._wanted)
        self._size = 0

    def observe(self, values: tuple[Any, ...]) -> Rows:
        """Take a pair and its indicator; return one row."""
        *pair, segment = values
        if segment != self._segment:
            self._segment = segment
            self._begin()
        self._size += 1
        rows = self._correlation.observe(tuple(pair))
        return rows if self._size >= self._least else ([None for _ in self._wanted],)

    def state(self) -> Any:
        """Return the segment so far."""
        return (self._segment, self._size, self._correlation.state())

    def restore(self, state: Any) -> None:
        """Take over a segment."""
        self._segment, size, part = state
        self._begin()
        self._size = size
        self._correlation.restore(part)


class LagMonitor:
    """The lag at which y follows x most closely: the greatest |r| of x[t - lag] and y[t]."""

    LEAST = 3
    """Two pairs always correlate perfectly."""

    def __init__(self, settings: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._length: int = settings["windowLength"]
        self._lags = range(int(settings["maxLag"]) + 1)
        self._wanted = wanted
        self._clear()

    def _clear(self) -> None:
        self._window: deque[tuple[Any, ...]] = deque()
        self._sums = [PairSums() for _ in self._lags]

    def observe(self, values: tuple[Any, ...]) -> Rows:
        """Take one pair; return one row."""
        self._put(values)
        best, found = 0.0, None
        for lag, sums in zip(self._lags, self._sums, strict=True):
            correlation = sums.correlation(self.LEAST)
            if correlation is not None and (found is None or abs(correlation) > abs(best)):
                best, found = correlation, lag
        results = {"lagOut": found, "corOut": None if found is None else best}
        return ([results[name] for name in self._wanted],)

    def _put(self, values: tuple[Any, ...]) -> None:
        window = self._window
        if len(window) == self._length:
            x = window[0][0]
            for lag, sums in zip(self._lags, self._sums, strict=True):
                if lag < len(window):
                    self._count(sums, x, window[lag][1], -1)
            window.popleft()
        window.append(values)
        for lag, sums in zip(self._lags, self._sums, strict=True):
            if lag < len(window):
                self._count(sums, window[-1 - lag][0], values[1], 1)

    def _count(self, sums: PairSums, x: Any, y: Any, sign: int) -> None:
        if x is not None and y is not None:
            sums.add(x, y, sign)

    def state(self) -> Any:
        """Return the window, oldest first."""
        return tuple(self._window)

    def restore(self, state: Any) -> None:
        """Take over a window."""
        self._clear()
        for pair in state:
            self._put(pair)
