"""The statistics of Summary.

Each is rounded once, from exact sums; those made of other statistics are rounded as these are.
They raise ArithmeticError or ValueError where they do not exist.
"""

import math
from collections.abc import Callable
from functools import cache, partial
from operator import attrgetter
from typing import Final, Protocol

from espha.windows.calculate.contract import Settings
from espha.windows.calculate.order import Recent
from espha.windows.shared.exact import Number


class Sums(Protocol):
    """What statistics are made of; see `Summary`."""

    settings: Settings
    n: int
    missing: int
    total: int
    squares: int
    cubes: int
    fourths: int
    one: int
    one_squared: int
    least: Number | None
    greatest: Number | None
    recent: Recent

    def spread(self) -> int:
        """Return n times the sum of squared distances from the mean, times 4**scale."""
        ...


Statistic = Callable[[Sums], Number | None]


def _any(of: Sums) -> None:
    if not of.n:
        raise ValueError("no observations")


def _sum(of: Sums) -> float:
    _any(of)
    return of.total / of.one


def _mean(of: Sums) -> float:
    return of.total / (of.n * of.one)


def _range(of: Sums) -> Number:
    if of.least is None or of.greatest is None:
        raise ValueError("no observations")
    return of.greatest - of.least


def _css(of: Sums) -> float:
    return of.spread() / (of.n * of.one_squared)


def _uss(of: Sums) -> float:
    _any(of)
    return of.squares / of.one_squared


def _var(of: Sums) -> float:
    n = of.n
    return of.spread() / (n * (n - 1) * of.one_squared)


def _std(of: Sums) -> float:
    # One call for the most frequent statistic, not three.
    n = of.n
    if not n:
        raise ValueError("no observations")
    spread = n * of.squares - of.total * of.total
    return math.sqrt(spread / (n * (n - 1) * of.one_squared))


def _stderr(of: Sums) -> float:
    n = of.n
    return math.sqrt(of.spread() / (n * n * (n - 1) * of.one_squared))


def _cv(of: Sums) -> float:
    return 100 * _std(of) / _mean(of)


def _skewness(of: Sums) -> float:
    """Return the third central moment in terms of the deviation, without bias."""
    n, total, spread = of.n, of.total, of.spread()
    third = n * n * of.cubes - 3 * n * total * of.squares + 2 * total**3
    size = math.sqrt(third * third / spread**3) * math.sqrt(n * (n - 1)) / (n - 2)
    return size if third >= 0 else -size


def _kurtosis(of: Sums) -> float:
    """Return the fourth central moment in terms of the deviation, without bias; 0: normal."""
    n, total = of.n, of.total
    fourth = n**3 * of.fourths - 4 * n * n * total * of.cubes
    fourth += 6 * n * total * total * of.squares - 3 * total**4
    ratio = fourth / of.spread() ** 2
    if n < 4:
        raise ValueError("needs four observations")
    return (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * ratio - 3 * (n - 1))


def _t_value(of: Sums) -> float:
    return _mean(of) / _stderr(of)


def _probability(of: Sums) -> float:
    """Return how probable such a t is if the mean is 0."""
    from scipy import special  # takes longer than a take-over may: only who asks for it waits

    return 2 * float(special.stdtr(of.n - 1, -abs(_t_value(of))))


@cache
def _quantile(freedom: int, alpha: float) -> float:
    from scipy import special  # as above

    return float(special.stdtrit(freedom, 1 - alpha / 2))


def _limit(side: int, of: Sums) -> float:
    """Return a confidence limit of the mean."""
    if of.n < 2:
        raise ValueError("needs two observations")
    alpha = float(of.settings["alpha"])
    return _mean(of) + side * _quantile(of.n - 1, alpha) * _stderr(of)


def _percentile(percent: float, of: Sums) -> float:
    return of.recent.percentile(percent)


def _quartile_range(of: Sums) -> float:
    return of.recent.percentile(75) - of.recent.percentile(25)


def _mode(of: Sums) -> float | None:
    return of.recent.mode()


def _sample_entropy(of: Sums) -> float | None:
    settings = of.settings
    tolerance = float(settings["sampleEntropyTolerance"])
    if settings["sampleEntropyNormalize"]:
        tolerance *= _std(of)
    return of.recent.sample_entropy(int(settings["sampleEntropyTemplateLength"]), tolerance)


_PERCENTS: Final = (1, 5, 10, 20, 25, 30, 40, 50, 60, 70, 75, 80, 90, 95, 99)
_MOMENTS: Final[dict[str, Statistic]] = {"skewnessOut": _skewness, "kurtosisOut": _kurtosis}
_SPREADS: Final[dict[str, Statistic]] = {
    "stdOut": _std,
    "varOut": _var,
    "cssOut": _css,
    "ussOut": _uss,
    "stderrOut": _stderr,
    "cvOut": _cv,
    "lclmOut": partial(_limit, -1),
    "uclmOut": partial(_limit, 1),
    "tValueOut": _t_value,
    "probTOut": _probability,
}
_PLACES: Final[dict[str, Statistic]] = {
    **{f"p{percent}Out": partial(_percentile, percent) for percent in _PERCENTS},
    "q1Out": partial(_percentile, 25),
    "medianOut": partial(_percentile, 50),
    "q3Out": partial(_percentile, 75),
    "qrangeOut": _quartile_range,
    "modeOut": _mode,
}
STATISTICS: Final[dict[str, Statistic]] = {
    "nOut": attrgetter("n"),
    "nmissOut": attrgetter("missing"),
    "minOut": attrgetter("least"),
    "maxOut": attrgetter("greatest"),
    "rangeOut": _range,
    "sumOut": _sum,
    "meanOut": _mean,
    **_SPREADS,
    **_MOMENTS,
    **_PLACES,
    "sampleEntropyOut": _sample_entropy,
}
"""By the name in the output map."""

ENDS: Final = frozenset({"minOut", "maxOut", "rangeOut"})
CUBES: Final = frozenset(_MOMENTS)
SQUARES: Final = frozenset({*_SPREADS, *_MOMENTS, "sampleEntropyOut"})
ORDERED: Final = frozenset({*_PLACES, "sampleEntropyOut"})
"""Which of them need more than the count and the sum."""
