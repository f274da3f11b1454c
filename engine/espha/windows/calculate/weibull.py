"""The distribution of Weibull with three parameters, fitted by maximum likelihood.

Where the distribution begins (mu), its likelihood has no greatest value of its own: it is infinite
at the least value of the sample if the shape is below 1. So a local maximum is looked for, from
places near the least value to places far below it; for each there is a best shape and scale.
"""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from scipy import optimize

from espha.windows.calculate.likelihood import Fit

_PLACES: Final = [10 ** (step / 3) for step in range(-12, 10)]
"""How far below the least value the distribution can begin, in terms of the range."""
_STEPS: Final = 60
_CLOSE: Final = 1e-7
_NEWTON: Final = 1e-12


class _Best(NamedTuple):
    """The shape and scale that are best for a place, and their likelihood."""

    likelihood: float
    shape: float
    scale: float


def fit_weibull(values: Sequence[float], most: int) -> Fit:
    """Return alpha (scale), beta (shape) and mu, and whether there is such a maximum.

    Args:
        values: the sample.
        most: most steps towards the maximum.
    """
    n, least = len(values), min(values, default=0.0)
    spread = max(values, default=0.0) - least
    if not 0 < spread < math.inf:
        return Fit(n, {}, converged=False)
    scaled = [(value - least) / spread for value in values]
    found: list[_Best] = []
    for place in _PLACES:
        found.append(_best(scaled, place, found[-1].shape if found else 0.0))
    peak = _peak([each.likelihood for each in found])
    place, converged = _PLACES[-1], False
    if peak:
        low, high = math.log(_PLACES[peak - 1]), math.log(_PLACES[peak + 1])
        place, converged = _refined(scaled, (low, high), found[peak].shape, most)
    best = _best(scaled, place, found[peak or -1].shape)
    parameters = {
        "alphaOut": best.scale * spread,
        "betaOut": best.shape,
        "muOut": least - place * spread,
        "logLikelihoodOut": best.likelihood - n * math.log(spread),
    }
    return Fit(n, parameters, converged)


def _peak(likelihoods: Sequence[float]) -> int:
    """Return where the highest local maximum is; 0: there is none."""
    inner = [
        place
        for place in range(1, len(likelihoods) - 1)
        if likelihoods[place - 1] < likelihoods[place] >= likelihoods[place + 1]
    ]
    return max(inner, key=likelihoods.__getitem__, default=0)


def _refined(
    scaled: Sequence[float], ends: tuple[float, float], shape: float, most: int
) -> tuple[float, bool]:
    """Return the place of the maximum between two, and whether it is found."""
    found = optimize.minimize_scalar(
        lambda place: -_best(scaled, math.exp(place), shape).likelihood,
        bounds=ends,
        method="bounded",
        options={"maxiter": most, "xatol": _CLOSE},
    )
    return math.exp(found.x), bool(found.success)


def _best(scaled: Sequence[float], place: float, shape: float) -> _Best:
    """Return what is best for a place.

    Args:
        scaled: the sample, from 0 to 1.
        place: how far below 0 the distribution begins.
        shape: where to look first; 0: unknown.
    """
    logs = [math.log(value + place) for value in scaled]
    top = math.log(1 + place)
    logs = [value - top for value in logs]  # below 0, so that no power overflows
    n = len(logs)
    mean = math.fsum(logs) / n
    if not shape:
        shape = math.pi / math.sqrt(6 * math.fsum([(log - mean) ** 2 for log in logs]) / n)
    for _ in range(_STEPS):
        powers = [math.exp(shape * log) for log in logs]
        firsts = [power * log for power, log in zip(powers, logs, strict=True)]
        whole, first = math.fsum(powers), math.fsum(firsts)
        second = math.fsum([part * log for part, log in zip(firsts, logs, strict=True)]) / whole
        first /= whole
        step = (first - 1 / shape - mean) / (second - first * first + 1 / (shape * shape))
        shape = shape - step if step < shape else shape / 2
        if abs(step) <= _NEWTON * shape:
            break
    powers = [math.exp(shape * log) for log in logs]
    log_scale = top + math.log(math.fsum(powers) / n) / shape
    each = math.log(shape) - shape * log_scale + (shape - 1) * (mean + top) - 1
    return _Best(n * each, shape, math.exp(log_scale))
