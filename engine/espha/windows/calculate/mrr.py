"""The algorithm MRR: moving relative range."""

from collections.abc import Mapping, Sequence
from typing import Any

from espha.windows.calculate.summary import Summary
from espha.windows.shared.exact import Number


class Mrr:
    """The range of the last values, beside the range to be expected: the mean of the last ranges.

    There is no range before its window is full, and none expected before so many ranges are there.
    """

    def __init__(self, settings: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._least: int = settings["rangeWindowLength"]
        self._ranges: int = settings["expRangeWindowLength"]
        self._values = Summary({"windowLength": self._least}, ("nOut", "rangeOut"))
        self._expected = Summary({"windowLength": self._ranges}, ("nOut", "meanOut"))
        self._seen = 0
        self._wanted = wanted

    def observe(self, values: tuple[Any, ...]) -> Sequence[Sequence[Any]]:
        """Take one value and its time; return one row."""
        value, time = values
        self._seen += 1
        ((n, spread),) = self._values.observe((value,))
        results: dict[str, Number | None] = dict.fromkeys(self._wanted)
        results["timeIdOut"] = time
        if self._seen >= self._least:
            ((n, mean),) = self._expected.observe((spread if n else None,))
            full = self._seen >= self._least + self._ranges - 1
            results["rangeOut"] = spread
            if full and n and mean is not None:
                results["erangeOut"] = mean
                if mean > 0 and spread is not None:
                    results["mrrOut"] = spread / mean
        return ([results[name] for name in self._wanted],)

    def state(self) -> Any:
        """Return how many events there were, and both windows."""
        return (self._seen, self._values.state(), self._expected.state())

    def restore(self, state: Any) -> None:
        """Take over windows."""
        self._seen, values, expected = state
        self._values.restore(values)
        self._expected.restore(expected)
