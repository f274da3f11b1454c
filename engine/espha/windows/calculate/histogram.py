"""The algorithm Histogram: centers and heights of bins that follow a stream, and quantiles.

The bins are those of Ben-Haim and Tom-Tov (A Streaming Parallel Decision Tree Algorithm, 2010):
a value is a bin of its own until there are too many, then the two nearest become one.
"""

import itertools
import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any


class Histogram:
    """At most `nBins` bins; what is old counts less if there is a fading factor."""

    def __init__(self, settings: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._most: int = settings["nBins"]
        self._interval: int = settings["reportInterval"]
        steps: int = settings["halfLifeSteps"]
        self._factor: float = 0.5 ** (1 / steps) if steps else settings["alpha"]
        self._quantiles = quantiles_of(settings["quantileList"])
        self._wanted = wanted
        self._seen = 0
        self._low = math.inf
        self._high = -math.inf
        self.centers: list[float] = []
        self.heights: list[float] = []

    def observe(self, values: tuple[Any, ...]) -> Sequence[Sequence[Any]]:
        """Take one value; return a row each `reportInterval` events."""
        (value,) = values
        self._seen += 1
        if self._factor < 1:
            self.heights = [height * self._factor for height in self.heights]
        if value is not None:
            self._add(float(value))
        return () if self._seen % self._interval else (self._row(),)

    def _add(self, value: float) -> None:
        self._low, self._high = min(self._low, value), max(self._high, value)
        place = bisect_left(self.centers, value)
        if place < len(self.centers) and self.centers[place] == value:
            self.heights[place] += 1
            return
        self.centers.insert(place, value)
        self.heights.insert(place, 1.0)
        if len(self.centers) > self._most:
            self._merge()

    def _merge(self) -> None:
        """Make one bin of the two nearest, the first of several."""
        centers, heights = self.centers, self.heights
        gaps = [right / 2 - left / 2 for left, right in itertools.pairwise(centers)]
        place = min(range(len(gaps)), key=gaps.__getitem__)
        one, other = heights[place], heights[place + 1]
        share = other / (one + other) if one + other > 0 else 0.5
        centers[place] = centers[place] * (1 - share) + centers[place + 1] * share
        heights[place] = one + other
        del centers[place + 1], heights[place + 1]

    def _row(self) -> list[Any]:
        results: dict[str, list[float]] = {
            "binCentersOut": list(self.centers),
            "binHeightsOut": list(self.heights),
        }
        if "quantilesOut" in self._wanted:
            results["quantilesOut"] = [self._quantile(share) for share in self._quantiles]
        return [results[name] for name in self._wanted]

    def _quantile(self, share: float) -> float:
        """Return the value below which there is this share of the heights.

        Half of a bin lies on each side of its center, and between two centers the height changes
        evenly; nothing lies beyond the least and the greatest value.
        """
        if not self.centers:
            return math.nan
        points = [(self._low, 0.0), *zip(self.centers, self.heights, strict=True)]
        points.append((self._high, 0.0))
        rest = share * math.fsum(self.heights)
        for (left, one), (right, other) in itertools.pairwise(points):
            between = (one + other) / 2
            if rest <= between:
                part = _part_of(one, other, rest)
                return left * (1 - part) + right * part
            rest -= between
        return self._high

    def state(self) -> Any:
        """Return the bins."""
        ends = (self._low, self._high)
        return (self._seen, ends, tuple(self.centers), tuple(self.heights))

    def restore(self, state: Any) -> None:
        """Take over bins."""
        self._seen, (self._low, self._high), centers, heights = state
        self.centers, self.heights = list(centers), list(heights)


def _part_of(one: float, other: float, wanted: float) -> float:
    """Return where a trapezoid from `one` to `other`, one wide, has so much on its left."""
    slope = other - one
    if wanted <= 0:
        return 0.0
    root = math.sqrt(max(0.0, one * one + 2 * slope * wanted))
    return min(1.0, 2 * wanted / (one + root)) if one + root > 0 else 0.0


def quantiles_of(text: str) -> list[float]:
    """Return the numbers of a list such as `0.25,0.5`.

    Raises:
        ValueError: a part is no number from 0 to 1.
    """
    shares = [float(part) for part in text.split(",") if part.strip()]
    if not all(0 <= share <= 1 for share in shares):
        raise ValueError(text)
    return shares
