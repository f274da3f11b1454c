"""The algorithm SegmentedCorrelation: how alike neighbouring segments of a field are."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from espha.windows.shared.exact import Number, PairSums

Rows = Sequence[Sequence[Number | None]]

_LONGEST: Final = 100_000
"""How many values of a segment are kept where nothing limits them."""


class SegmentedCorrelation:
    """The correlation of a segment with the one before it, value by value.

    With an indicator, a segment begins where that is 1; each is divided into parts of `sampleSize`
    values, if that is not 0, and a part is compared with the part of the same number. Without
    one, each part is a segment.
    """

    def __init__(self, settings: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._size: int = settings["sampleSize"]
        self._least: int = max(2, settings["minSize"])
        self._most: int = settings["maxSize"] or _LONGEST
        self._wanted = wanted
        self._before: list[Any] = []
        self._segment: list[Any] = []
        self._length = self._done = 0
        self._indicated = False

    def observe(self, values: tuple[Any, ...]) -> Rows:
        """Take a value and its indicator; return one row, null where no part has ended."""
        value, indicator = values
        found = None
        if indicator is not None:
            self._indicated = True
        if _begins(indicator) and self._segment:
            found = self._end()
        if len(self._segment) < _LONGEST:
            self._segment.append(value)
        self._length += 1
        if self._size and self._length == self._done + self._size:
            found = self._compare()
            if not self._indicated:
                self._end()
        return ([found for _ in self._wanted],)

    def _end(self) -> float | None:
        """End a segment; return the correlation of what is left of it."""
        found = self._compare() if self._length > self._done else None
        self._before, self._segment = self._segment, []
        self._length = self._done = 0
        return found

    def _compare(self) -> float | None:
        """Return the correlation of the newest part; the next part begins."""
        start, self._done = self._done, self._length
        end = start + self._size if self._size else None
        pairs = list(zip(self._before[start:end], self._segment[start:end], strict=False))
        sums = PairSums()
        for x, y in pairs[: self._most]:
            if x is not None and y is not None:
                sums.add(x, y)
        return sums.correlation(self._least)

    def state(self) -> Any:
        """Return the segment before and the one so far."""
        return (
            tuple(self._before),
            tuple(self._segment),
            self._length,
            self._done,
            self._indicated,
        )

    def restore(self, state: Any) -> None:
        """Take over segments."""
        before, segment, self._length, self._done, self._indicated = state
        self._before, self._segment = list(before), list(segment)


def _begins(indicator: Any) -> bool:
    """Say whether an indicator is 1; a text can say so too."""
    return indicator == 1 or (isinstance(indicator, str) and indicator.strip() in {"1", "true"})
