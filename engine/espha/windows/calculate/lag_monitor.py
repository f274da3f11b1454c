"""The algorithm LagMonitor: at which lags fields and a target are most alike."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Series = npt.NDArray[np.float64]


class LagMonitor:
    """The cross-correlations of the inputs with the target, once a window is full.

    At the lag k, a value of the target is compared with an input k events later. Means and
    deviations are those of the whole window; a null counts as the mean.
    """

    def __init__(self, settings: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._length: int = settings["windowLength"]
        self._step: int = self._length - settings["overlap"]
        self._lags = range(settings["minLag"], settings["maxLag"] + 1)
        self._wanted = wanted
        self._window: list[tuple[Any, ...]] = []

    def observe(self, values: tuple[Any, ...]) -> Sequence[Sequence[Any]]:
        """Take inputs, the target, and the time; return a row when the window is full."""
        inputs, target, time = values
        self._window.append((*inputs, target))
        if len(self._window) < self._length:
            return ()
        columns = zip(*self._window, strict=True)
        *series, goal = [_standardized(column) for column in columns]
        found = [self._lags_of(one, goal) for one in series]
        results = {name: [each.get(name) for each in found] for name in self._wanted}
        results["timeIdOut"] = time
        del self._window[: self._step]
        return ([results[name] for name in self._wanted],)

    def _lags_of(self, series: Series | None, goal: Series | None) -> dict[str, float | int]:
        if series is None or goal is None:
            return {"numComputedLagsOut": 0}
        correlations = np.array([_at(series, goal, lag) for lag in self._lags])
        results: dict[str, float | int] = {"numComputedLagsOut": len(correlations)}
        for name, sized in (
            ("abs", np.abs(correlations)),
            ("max", correlations),
            ("min", -correlations),
        ):
            place = int(np.argmax(sized))
            results[f"{name}CCFOut"] = float(correlations[place])
            results[f"{name}LagOut"] = self._lags[place]
        results["absCCFOut"] = abs(results["absCCFOut"])
        return results

    def state(self) -> Any:
        """Return the window, oldest first."""
        return tuple(self._window)

    def restore(self, state: Any) -> None:
        """Take over a window."""
        self._window = list(state)


def _standardized(column: Sequence[Any]) -> Series | None:
    """Return distances from the mean, in such a unit that their squares add up to 1.

    None: all values are alike, or there are none.
    """
    values = np.array([np.nan if value is None else value for value in column], dtype=float)
    there = ~np.isnan(values)
    if not there.any():
        return None
    scale = np.abs(values[there]).max()
    if scale > 0:
        values = values / scale  # so that no square overflows
    distances = np.where(there, values - values[there].mean(), 0.0)
    size = float(np.sqrt(_product(distances, distances)))
    if not size > np.finfo(float).eps * len(values):
        return None
    return distances / size


def _at(series: Series, goal: Series, lag: int) -> float:
    if abs(lag) >= len(series):
        return 0.0
    if lag >= 0:
        return _product(goal[: len(goal) - lag], series[lag:])
    return _product(goal[-lag:], series[: len(series) + lag])


def _product(one: Series, other: Series) -> float:
    """Return the inner product; that of NumPy adds in an order that depends on the processor."""
    return float((one * other).sum())
