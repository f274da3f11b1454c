"""The algorithm FitStat: how well predictions fit what came true."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from espha.windows.calculate.roc import label
from espha.windows.shared.exact import ExactSum, Number

Rows = Sequence[Sequence[Number | None]]
Results = dict[str, Number | None]

_LEAST_PROBABILITY: Final = 1e-15
"""A probability of zero would make the log loss infinite."""
_SIZES: Final = frozenset({"maeOut", "rmaeOut"})
_LOGS: Final = frozenset({"msleOut", "rmsleOut"})
"""What needs sums of its own."""


class Terms(NamedTuple):
    """What one observation adds to the sums.

    Attributes:
        square: the squared error.
        size: the size of the error.
        wrong: whether the class is wrong.
        loss: the log loss.
        log_square: the squared distance of the logarithms of 1 + the values; None: there is none,
            or it is not needed.
    """

    square: float
    size: float
    wrong: int = 0
    loss: float = 0.0
    log_square: float | None = None


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
        self._has_sizes = not _SIZES.isdisjoint(wanted)
        self._has_logs = not (self._labels or _LOGS.isdisjoint(wanted))
        self._has_losses = bool(self._labels) and "mcllOut" in wanted
        self._clear()

    def _clear(self) -> None:
        self._n = self._missing = self._wrong = self._logs = 0
        self._square, self._size = ExactSum(), ExactSum()
        self._loss, self._log_square = ExactSum(), ExactSum()
        self._sums = (self._square, self._size, self._loss, self._log_square)
        self._window: deque[Terms | None] = deque()

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

    def _terms(self, predictions: Sequence[float], response: Any) -> Terms | None:
        if self._labels:
            return self._class_terms(predictions, label(response))
        if isinstance(response, str):
            return None
        predicted, actual = float(predictions[0]), float(response)
        error = actual - predicted
        square, log_square = error * error, None
        if self._has_logs and predicted > -1 and actual > -1:
            log_square = (math.log1p(actual) - math.log1p(predicted)) ** 2
        finite = math.isfinite(square)
        return Terms(square, abs(error), log_square=log_square) if finite else None

    def _class_terms(self, predictions: Sequence[float], found: str) -> Terms | None:
        if found not in self._labels:
            return None
        place = self._labels.index(found)
        errors = [float(value) - (number == place) for number, value in enumerate(predictions)]
        square = math.fsum([error * error for error in errors])
        size = math.fsum([abs(error) for error in errors])
        best = max(range(len(predictions)), key=lambda number: (predictions[number], -number))
        loss = -math.log(max(predictions[place], _LEAST_PROBABILITY))
        return Terms(square, size, int(best != place), loss) if math.isfinite(square) else None

    def _count(self, terms: Terms | None, sign: int) -> None:
        if terms is None:
            self._missing += sign
            return
        square, size, wrong, loss, log_square = terms
        self._n += sign
        self._wrong += sign * wrong
        self._square.add(square, sign)
        if self._has_sizes:
            self._size.add(size, sign)
        if self._has_losses:
            self._loss.add(loss, sign)
        if log_square is not None:
            self._logs += sign
            self._log_square.add(log_square, sign)

    def _results(self) -> Results:
        divisor = self._n * max(1, len(self._labels))
        results: Results = dict.fromkeys(self._wanted)
        results |= {"nOut": self._n, "nmissOut": self._missing, "divOut": divisor}
        if self._n:
            ase = self._square.value(divisor)
            results |= {"aseOut": ase, "raseOut": math.sqrt(ase)}
        if self._n and self._has_sizes:
            mae = self._size.value(divisor)
            results |= {"maeOut": mae, "rmaeOut": math.sqrt(mae)}
        if self._logs:
            msle = self._log_square.value(self._logs)
            results |= {"msleOut": msle, "rmsleOut": math.sqrt(msle)}
        if self._n and self._labels:
            results["mceOut"] = self._wrong / self._n
            if self._has_losses:
                results["mcllOut"] = self._loss.value(self._n)
        return results

    def state(self) -> Any:
        """Return the window; of all events, the sums."""
        if self._length:
            return tuple([None if terms is None else tuple(terms) for terms in self._window])
        counts = (self._n, self._missing, self._wrong, self._logs)
        return (*counts, *(each.state() for each in self._sums))

    def restore(self, state: Any) -> None:
        """Take over the observations."""
        self._clear()
        if not self._length:
            self._n, self._missing, self._wrong, self._logs, *sums = state
            for each, part in zip(self._sums, sums, strict=True):
                each.restore(part)
            return
        for values in state:
            terms = None if values is None else Terms(*values)
            self._window.append(terms)
            self._count(terms, 1)
