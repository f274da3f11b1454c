"""The algorithm DistributionFitting: the parameters for which the values are the most likely."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from espha.windows.calculate.likelihood import FITS, Fit, Sample
from espha.windows.calculate.summary import Summary
from espha.windows.calculate.weibull import fit_weibull
from espha.windows.shared.exact import Number

_OF = ("nOut", "meanOut", "cssOut")


class DistributionFitting:
    """Fits a distribution to each window once it is full, or to all values at each event.

    normal: mu, sigma. lognormal: mu and sigma of the logarithms. exponential: alpha (the mean).
    gamma: alpha (shape) and beta (scale). Weibull: alpha (scale), beta (shape) and mu, where it
    begins.
    """

    def __init__(self, settings: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._length: int = settings["windowLength"]
        self._step: int = self._length - settings["overlap"]
        self._steps: int = settings["maxIter"]
        self._name: str = settings["distribution"]
        self._positive = self._name in {"Lognormal", "Gamma"}
        self._least = 0.0 if self._positive or self._name == "Exponential" else -math.inf
        self._wanted = wanted
        self._window: list[Number | None] = []
        self._clear()

    def _clear(self) -> None:
        self._values = Summary({"windowLength": 0}, _OF)
        self._logs = Summary({"windowLength": 0}, _OF)

    def observe(self, values: tuple[Any, ...]) -> Sequence[Sequence[Any]]:
        """Take one value; return a row when a window is full, or for each event without one."""
        (value,) = values
        if value is not None and (value < self._least or (self._positive and value == 0)):
            value = None  # the distribution cannot have made it
        if not self._length:
            return (self._row(self._fit_sums([value])),)
        self._window.append(value)
        if len(self._window) < self._length:
            return ()
        self._clear()
        if self._name == "Weibull":
            there = [float(each) for each in self._window if each is not None]
            fit = fit_weibull(there, self._steps)
        else:
            fit = self._fit_sums(self._window)
        del self._window[: self._step]
        return (self._row(fit),)

    def _fit_sums(self, values: Sequence[Number | None]) -> Fit:
        for value in values:
            logarithm = math.log(value) if value is not None and self._positive else None
            (found,) = self._values.observe((value,))
            (logs,) = self._logs.observe((logarithm,))
        n = int(found[0] or 0)
        numbers = [math.nan if each is None else float(each) for each in (*found[1:], *logs[1:])]
        return FITS[self._name](Sample(n, *numbers), self._steps)

    def _row(self, fit: Fit) -> list[Number | None]:
        results: dict[str, Number | None] = dict.fromkeys(self._wanted)
        results |= {"nOut": fit.n, "convergeOut": int(fit.converged), **fit.parameters}
        return [results[name] for name in self._wanted]

    def state(self) -> Any:
        """Return the window; of all events, the sums."""
        if self._length:
            return tuple(self._window)
        return (self._values.state(), self._logs.state())

    def restore(self, state: Any) -> None:
        """Take over the values."""
        self._clear()
        if self._length:
            self._window = list(state)
        else:
            values, logs = state
            self._values.restore(values)
            self._logs.restore(logs)
