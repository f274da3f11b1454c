"""Maximum likelihood: the parameters of a distribution that make a sample the most likely."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple

Results = Mapping[str, float]

_CLOSE: Final = 1e-13


class Sample(NamedTuple):
    """A sample, as far as its likelihood depends on it.

    Attributes:
        n: how many values; at least one.
        mean: of the values.
        css: sum of their squared distances from the mean.
        log_mean: mean of their logarithms; NaN where there are none.
        log_css: sum of squared distances of these.
    """

    n: int
    mean: float
    css: float
    log_mean: float
    log_css: float


class Fit(NamedTuple):
    """What came out.

    Attributes:
        n: how many values there were.
        parameters: results by name; without those that do not exist.
        converged: whether these parameters are the most likely ones.
    """

    n: int
    parameters: Mapping[str, float]
    converged: bool


def normal(sample: Sample, _steps: int) -> Results:
    """Return mu and sigma."""
    return _normal(sample.n, sample.mean, sample.css)


def _normal(n: int, mean: float, css: float) -> dict[str, float]:
    variance = css / n
    likelihood = -n / 2 * (_log(2 * math.pi * variance) + 1)
    return {"muOut": mean, "sigmaOut": math.sqrt(variance), "logLikelihoodOut": likelihood}


def lognormal(sample: Sample, _steps: int) -> Results:
    """Return mu and sigma of the logarithms."""
    results = _normal(sample.n, sample.log_mean, sample.log_css)
    results["logLikelihoodOut"] -= sample.n * sample.log_mean
    return results


def exponential(sample: Sample, _steps: int) -> Results:
    """Return alpha, the mean."""
    likelihood = -sample.n * (_log(sample.mean) + 1)
    return {"alphaOut": sample.mean, "logLikelihoodOut": likelihood}


def gamma(sample: Sample, steps: int) -> Results:
    """Return alpha (shape) and beta (scale).

    Raises:
        ValueError: all values are alike, or the steps are not enough.
    """
    spread = math.log(sample.mean) - sample.log_mean
    if not (sample.css > 0 and spread > 0):
        raise ValueError("all values are alike")
    alpha = (3 - spread + math.sqrt((spread - 3) ** 2 + 24 * spread)) / (12 * spread)
    for _ in range(steps):
        gradient = math.log(alpha) - digamma(alpha) - spread
        step = gradient / (1 / alpha - trigamma(alpha))
        alpha = alpha - step if step < alpha else alpha / 2
        if abs(step) <= _CLOSE * alpha:
            break
    else:
        raise ValueError("too few steps")
    beta = sample.mean / alpha
    each = (alpha - 1) * sample.log_mean - alpha * (1 + math.log(beta)) - math.lgamma(alpha)
    return {"alphaOut": alpha, "betaOut": beta, "logLikelihoodOut": sample.n * each}


def digamma(x: float) -> float:
    """Return the derivative of the logarithm of the gamma function, x > 0."""
    below = []
    while x < 10:
        below.append(1 / x)
        x += 1
    square = 1 / (x * x)
    series = square * (
        1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square / 132)))
    )
    return math.log(x) - 0.5 / x - series - math.fsum(below)


def trigamma(x: float) -> float:
    """Return the derivative of `digamma`, x > 0."""
    below = []
    while x < 10:
        below.append(1 / (x * x))
        x += 1
    square = 1 / (x * x)
    series = (
        1 / 6 - square * (1 / 30 - square * (1 / 42 - square * (1 / 30 - square * 5 / 66)))
    ) * square
    return (1 + series) / x + 0.5 * square + math.fsum(below)


def _log(value: float) -> float:
    return math.log(value) if value > 0 else math.nan


def _fitted(fit: Callable[[Sample, int], Results], sample: Sample, steps: int) -> Fit:
    """Return what a function finds; what is infinite or NaN, or raises an error, does not exist."""
    try:
        found = fit(sample, steps) if sample.n else {}
    except (ArithmeticError, ValueError):
        found = {}
    good = {name: value for name, value in found.items() if math.isfinite(value)}
    return Fit(sample.n, good, converged=bool(found) and len(good) == len(found))


FITS: Final[Mapping[str, Callable[[Sample, int], Fit]]] = {
    "Normal": partial(_fitted, normal),
    "Lognormal": partial(_fitted, lognormal),
    "Exponential": partial(_fitted, exponential),
    "Gamma": partial(_fitted, gamma),
}
"""By the name of the distribution; Weibull's looks at each value, see `weibull`."""
