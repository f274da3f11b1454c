"""Calculate algorithms that fit: FitStat and DistributionFitting."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from espha.windows.calculate.bins import label
from espha.windows.calculate.likelihood import FITS, Sample
from espha.windows.calculate.summary import Summary
from espha.windows.shared.exact import ExactSum, Number

Rows = Sequence[Sequence[Number | None]]
Results = dict[str, Number | None]

_LEAST_PROBABILITY: Final = 1e-15
"""A probability of zero would make the log loss infinite."""


class FitStat:
    """How well predictions fit the response.

    Without class labels the one input predicts a number. With them there is one probability a
    class, and the response is the class that came true.
    """

    def __init__(self, settings: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._length: int = settings["windowLength"]
        labels = [part.strip() for part in str(settings["classLabels"]).split(",")]
        self._labels = [part for part in labels if part]
        self._wanted = wanted
        self._clear()

    def _clear(self) -> None:
        self._n = self._missing = self._wrong = 0
        self._square, self._loss = ExactSum(), ExactSum()
        self._window: deque[tuple[float, int, float] | None] = deque()

    def observe(self, values: tuple[Any, ...]) -> Rows:
        """Take the predictions and the response; return one row."""
        predictions, response = values
        terms = None
        if response is not None and None not in predictions:
            terms = self._terms(predictions, response)
        if self._length:
            self._window.append(terms)
            if len(self._window) > self._length:
                self._count(self._window.popleft(), -1)
        self._count(terms, 1)
        results = self._results()
        return ([results[name] for name in self._wanted],)

    def _terms(
        self, predictions: Sequence[float], response: Any
    ) -> tuple[float, int, float] | None:
        """Return the squared error, whether the class is wrong, and the log loss."""
        if not self._labels:
            if isinstance(response, str):
                return None
            error = float(response) - float(predictions[0])
            square = error * error
            return (square, 0, 0.0) if math.isfinite(square) else None
        found = label(response)
        if found not in self._labels:
            return None
        place = self._labels.index(found)
        errors = [float(value) - (number == place) for number, value in enumerate(predictions)]
        square = math.fsum([error * error for error in errors])
        best = max(range(len(predictions)), key=lambda number: (predictions[number], -number))
        loss = -math.log(max(predictions[place], _LEAST_PROBABILITY))
        return (square, int(best != place), loss) if math.isfinite(square) else None

    def _count(self, terms: tuple[float, int, float] | None, sign: int) -> None:
        if terms is None:
            self._missing += sign
            return
        self._n += sign
        self._square.add(terms[0], sign)
        self._wrong += sign * terms[1]
        self._loss.add(terms[2], sign)

    def _results(self) -> Results:
        divisor = self._n * max(1, len(self._labels))
        results: Results = {"nOut": self._n, "nmissOut": self._missing, "divOut": divisor}
        results |= dict.fromkeys(("aseOut", "raseOut", "mceOut", "mcllOut"))
        if self._n:
            ase = self._square.value(divisor)
            results |= {"aseOut": ase, "raseOut": math.sqrt(ase)}
        if self._n and self._labels:
            results |= {"mceOut": self._wrong / self._n, "mcllOut": self._loss.value(self._n)}
        return results

    def state(self) -> Any:
        """Return the window; of all events, the sums."""
        if self._length:
            return tuple(self._window)
        counts = (self._n, self._missing, self._wrong)
        return (*counts, self._square.state(), self._loss.state())

    def restore(self, state: Any) -> None:
        """Take over the observations."""
        self._clear()
        if not self._length:
            self._n, self._missing, self._wrong, square, loss = state
            self._square.restore(square)
            self._loss.restore(loss)
            return
        for terms in state:
            self._window.append(terms)
            self._count(terms, 1)


class DistributionFitting:
    """The parameters of a distribution for which the values are the most likely.

    normal: mu, sigma. lognormal: mu and sigma of the logarithms. exponential: beta (the mean).
    gamma and weibull: alpha (shape) and beta (scale).
    """

    def __init__(self, settings: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._fit = FITS[settings["distribution"]]
        self._positive = settings["distribution"] not in {"normal", "exponential"}
        self._least = 0.0 if settings["distribution"] != "normal" else -math.inf
        self._values = Summary(settings, ("nOut", "meanOut", "cssOut"))
        self._logs = Summary(settings, ("nOut", "meanOut", "cssOut"))
        self._window: deque[float | None] = deque(maxlen=settings["windowLength"] or None)
        self._keeps = settings["distribution"] == "weibull"
        self._wanted = wanted

    def observe(self, values: tuple[Any, ...]) -> Rows:
        """Take one value; return one row."""
        value = values[0]
        if value is not None and (value < self._least or (self._positive and value == 0)):
            value = None  # the distribution cannot have made it
        logarithm = math.log(value) if value is not None and self._positive else None
        (found,) = self._values.observe((value,))
        (logs,) = self._logs.observe((logarithm,))
        if self._keeps:
            self._window.append(logarithm)
        return (self._results(found, logs),)

    def _results(
        self, values: Sequence[Number | None], logs: Sequence[Number | None]
    ) -> list[Number | None]:
        results: Results = dict.fromkeys(
            ("muOut", "sigmaOut", "alphaOut", "betaOut", "logLikelihoodOut")
        )
        results["nOut"] = n = int(values[0] or 0)
        if n and values[1] is not None:
            kept = [value for value in self._window if value is not None]
            mean, css, log_mean, log_css = (_or_nan(each) for each in (*values[1:], *logs[1:]))
            # Values that are all alike, or too large, do not have everything.
            with suppress(ArithmeticError, ValueError):
                results |= self._fit(Sample(n, mean, css, log_mean, log_css, kept))
        return [results[name] for name in self._wanted]

    def state(self) -> Any:
        """Return the values and their logarithms."""
        return (self._values.state(), self._logs.state(), tuple(self._window))

    def restore(self, state: Any) -> None:
        """Take over the values."""
        values, logs, window = state
        self._values.restore(values)
        self._logs.restore(logs)
        self._window = deque(window, maxlen=self._window.maxlen)


def _or_nan(value: Number | None) -> float:
    return math.nan if value is None else float(value)
