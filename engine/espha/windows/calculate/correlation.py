"""The algorithm Correlation: Pearson's coefficient of two fields."""

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
