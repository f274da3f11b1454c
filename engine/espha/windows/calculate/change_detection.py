"""The algorithm ChangeDetection: whether values are distributed otherwise than before.

After Sebastiao and Gama (Change Detection in Learning Histograms from Data Streams, 2007): the
divergence of Kullback and Leibler is not symmetric, and its two directions drift apart where two
histograms do. So a change is where they differ by more than a threshold.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from espha.windows.shared.exact import Number

_GREATEST_GAIN: Final = 1e100
_SMOOTH: Final = 0.5
"""What is added to each bin, so that none is empty."""


class ChangeDetection:
    """Compares a histogram of the reference with one of all later values, which fade.

    The first `refWindowSize` values are the reference; `maxBins` bins of equal width lie between
    its least and its greatest value, what is beyond belongs to the outermost. The two are compared
    after `maxEvalSteps` values or, if the step adapts, the sooner the more they differed last.
    After a change everything begins anew.
    """

    def __init__(self, settings: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._bins: int = settings["maxBins"]
        self._alpha: float = settings["slidingAlpha"]
        self._size: int = settings["refWindowSize"]
        self._steps: int = settings["maxEvalSteps"]
        self._adapts: bool = settings["adaptiveEval"]
        self._threshold: float = settings["threshold"]
        self._shows_all: bool = settings["showAll"]
        self._shows_evaluations: bool = settings["showEval"]
        self._wanted = wanted
        self._begin()

    def _begin(self) -> None:
        self._values: list[Number] = []
        self._low = self._high = 0.0
        self._reference: list[float] = []
        self._sliding = [0.0] * self._bins
        # A value counts 1/alpha as much as the one before it; only shares matter.
        self._gain = 1.0
        self._since, self._step = 0, self._steps

    def observe(self, values: tuple[Any, ...]) -> Sequence[Sequence[Any]]:
        """Take one value; return a row if it is one to be shown."""
        (value,) = values
        evaluated = False
        if value is not None and not self._reference:
            self._learn(value)
        elif value is not None:
            evaluated = self._count(value)
        change = self._evaluate() if evaluated else None
        detected = change is not None and change > self._threshold
        if detected:
            self._begin()
        if not (self._shows_all or detected or (evaluated and self._shows_evaluations)):
            return ()
        results = {
            "evaluatedOut": int(evaluated),
            "changeValueOut": change,
            "changeDetectedOut": int(detected),
        }
        return ([results[name] for name in self._wanted],)

    def _learn(self, value: Number) -> None:
        self._values.append(value)
        if len(self._values) < self._size:
            return
        self._low, self._high = float(min(self._values)), float(max(self._values))
        self._reference = [0.0] * self._bins
        for each in self._values:
            self._reference[self._bin(each)] += 1
        self._values = []

    def _bin(self, value: Number) -> int:
        if value <= self._low:
            return 0
        if value >= self._high:
            return self._bins - 1
        # Halves: a difference of doubles could be infinite.
        part = (value / 2 - self._low / 2) / (self._high / 2 - self._low / 2)
        return min(int(part * self._bins), self._bins - 1)

    def _count(self, value: Number) -> bool:
        """Count a value; say whether it is time to compare."""
        self._gain /= self._alpha
        if self._gain > _GREATEST_GAIN:
            self._sliding = [count / self._gain for count in self._sliding]
            self._gain = 1.0
        self._sliding[self._bin(value)] += self._gain
        self._since += 1
        return self._since >= self._step

    def _evaluate(self) -> float:
        """Return how much the two directions of the divergence differ."""
        self._since = 0
        before = _shares(self._reference)
        now = _shares([count / self._gain for count in self._sliding])
        change = abs(_divergence(before, now) - _divergence(now, before))
        if self._adapts and change < self._threshold:
            self._step = max(1, round(self._steps * (1 - change / self._threshold)))
        return change

    def state(self) -> Any:
        """Return the reference, and what came after it."""
        return (
            tuple(self._values),
            (self._low, self._high),
            tuple(self._reference),
            tuple(self._sliding),
            self._gain,
            (self._since, self._step),
        )

    def restore(self, state: Any) -> None:
        """Take over a reference and what came after it."""
        values, ends, reference, sliding, self._gain, steps = state
        self._values, self._reference = list(values), list(reference)
        self._sliding = list(sliding)
        self._low, self._high = ends
        self._since, self._step = steps


def _shares(counts: Sequence[float]) -> list[float]:
    whole = math.fsum(counts) + _SMOOTH * len(counts)
    return [(count + _SMOOTH) / whole for count in counts]


def _divergence(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum([p * math.log(p / q) for p, q in zip(one, other, strict=True)])
