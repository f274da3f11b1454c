"""Maximum likelihood: the parameters of a distribution that make a sample the most likely.

What does not exist is NaN, or raises ValueError or ArithmeticError.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

Results = Mapping[str, float]

_STEPS: Final = 100
_CLOSE: Final = 1e-13


class Sample(NamedTuple):
    """A sample, as far as its likelihood depends on it.

    Attributes:
        n: how many values; at least one.
        mean: of the values.
        css: sum of their squared distances from the mean.
        log_mean: mean of their logarithms; NaN where there are none.
        log_css: sum of squared distances of these.
        logs: the logarithms themselves, where they are needed.
    """

    n: int
    mean: float
    css: float
    log_mean: float
    log_css: float
    logs: Sequence[float]


def normal(sample: Sample) -> Results:
    """Return mu and sigma."""
    return _normal(sample.n, sample.mean, sample.css)


def _normal(n: int, mean: float, css: float) -> dict[str, float]:
    variance = css / n
    likelihood = -n / 2 * (_log(2 * math.pi * variance) + 1)
    return {"muOut": mean, "sigmaOut": math.sqrt(variance), "logLikelihoodOut": likelihood}


def lognormal(sample: Sample) -> Results:
    """Return mu and sigma of the logarithms."""
    results = _normal(sample.n, sample.log_mean, sample.log_css)
    results["logLikelihoodOut"] -= sample.n * sample.log_mean
    return results


def exponential(sample: Sample) -> Results:
    """Return beta, the mean."""
    likelihood = -sample.n * (_log(sample.mean) + 1)
    return {"betaOut": sample.mean, "logLikelihoodOut": likelihood}


def gamma(sample: Sample) -> Results:
    """Return alpha (shape) and beta (scale).

    Raises:
        ValueError: all values are alike.
    """
    spread = math.log(sample.mean) - sample.log_mean
    if not (sample.css > 0 and spread > 0):
        raise ValueError("all values are alike")
    alpha = (3 - spread + math.sqrt((spread - 3) ** 2 + 24 * spread)) / (12 * spread)
    for _ in range(_STEPS):
        gradient = math.log(alpha) - digamma(alpha) - spread
        step = gradient / (1 / alpha - trigamma(alpha))
        alpha = alpha - step if step < alpha else alpha / 2
        if abs(step) <= _CLOSE * alpha:
            break
    beta = sample.mean / alpha
    each = (alpha - 1) * sample.log_mean - alpha * (1 + math.log(beta)) - math.lgamma(alpha)
    return {"alphaOut": alpha, "betaOut": beta, "logLikelihoodOut": sample.n * each}


def weibull(sample: Sample) -> Results:
    """Return alpha (shape) and beta (scale).

    Raises:
        ValueError: all values are alike.
    """
    if not sample.log_css > 0:
        raise ValueError("all values are alike")
    greatest = max(sample.logs)
    # Below the greatest, so that no power overflows.
    logs = [value - greatest for value in sample.logs]
    mean = math.fsum(logs) / sample.n
    alpha = math.pi / math.sqrt(6 * sample.log_css / sample.n)
    for _ in range(_STEPS):
        powers = [math.exp(alpha * value) for value in logs]
        whole = math.fsum(powers)
        first = math.fsum([power * log for power, log in zip(powers, logs, strict=True)]) / whole
        squares = [power * log * log for power, log in zip(powers, logs, strict=True)]
        slope = math.fsum(squares) / whole - first * first + 1 / (alpha * alpha)
        step = (first - 1 / alpha - mean) / slope
        alpha = alpha - step if step < alpha else alpha / 2
        if abs(step) <= _CLOSE * alpha:
            break
    powers = [math.exp(alpha * value) for value in logs]
    log_beta = greatest + math.log(math.fsum(powers) / sample.n) / alpha
    each = math.log(alpha) - alpha * log_beta + (alpha - 1) * (mean + greatest) - 1
    return {
        "alphaOut": alpha,
        "betaOut": math.exp(log_beta),
        "logLikelihoodOut": sample.n * each,
    }


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


FITS: Final[Mapping[str, Callable[[Sample], Results]]] = {
    "normal": normal,
    "lognormal": lognormal,
    "exponential": exponential,
    "gamma": gamma,
    "weibull": weibull,
}
"""By the name of the distribution."""
