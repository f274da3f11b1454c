"""Calculate windows: FitStat and DistributionFitting."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from support.calculate import Run

REGRESSION = {"aseOut": 4.0, "raseOut": 2.0, "maeOut": 2.0, "rmaeOut": math.sqrt(2)}


def test_fit_of_numbers() -> None:
    run = Run("FitStat", windowLength=2)
    log_square = math.log(2) ** 2  # of 4 and 2
    assert run.row(1.0, 3.0) == {
        "nOut": 1, "nmissOut": 0, "divOut": 1.0, "mceOut": None, "mcllOut": None,
        "msleOut": log_square, "rmsleOut": math.sqrt(log_square), **REGRESSION,
    }  # fmt: skip
    assert run.row(2.0, 2.0)["aseOut"] == 2.0
    found = run.row(None, 2.0)
    assert [found[name] for name in ("nOut", "nmissOut", "aseOut", "divOut")] == [1, 1, 0.0, 1.0]
    assert run.row(1.0, None)["aseOut"] is None


def test_numbers_without_a_logarithm_count_for_other_errors_only() -> None:
    run = Run("FitStat")
    run.row(-3.0, 1.0)
    assert run.row(1.0, 1.0) == {
        "nOut": 2, "nmissOut": 0, "aseOut": 8.0, "divOut": 2.0, "raseOut": math.sqrt(8.0),
        "mceOut": None, "mcllOut": None, "maeOut": 2.0, "rmaeOut": math.sqrt(2.0),
        "msleOut": 0.0, "rmsleOut": 0.0,
    }  # fmt: skip


def test_fit_of_numbers_is_what_a_public_example_shows() -> None:
    # The screenshot of "Computing Fit Statistics" of the SAS ESP Studio examples.
    run = Run("FitStat", windowLength=0, labelLen=128)
    pairs = [(1, 1), (1, 2), (0, 3), (5, 6), (6, 6), (5, 7), (1, 3), (5, 5), (2, 2), (4, 7), (3, 1)]
    rows = [run.row(float(predicted), float(actual)) for predicted, actual in pairs]
    shown = {
        "aseOut": [0, 0.5, 3.333333, 2.75, 2.2, 2.5, 2.714286, 2.375, 2.111111, 2.8, 2.909091],
        "raseOut": [0, 0.707107, 1.825742, 1.658312, 1.48324, 1.581139, 1.647509, 1.541104,
                    1.452966, 1.67332, 1.705606],
        "maeOut": [0, 0.5, 1.333333, 1.25, 1, 1.166667, 1.285714, 1.125, 1, 1.2, 1.272727],
    }  # fmt: skip
    for name, column in shown.items():
        assert [row[name] for row in rows] == pytest.approx(column, abs=1e-6)
    assert [row["divOut"] for row in rows] == [row["nOut"] for row in rows] == list(range(1, 12))
    assert {(row["nmissOut"], row["mceOut"], row["mcllOut"]) for row in rows} == {(0, None, None)}


def test_fit_of_classes() -> None:
    run = Run("FitStat", inputs={"inputs": "x, y", "response": "s"}, classLabels="yes,no")
    first = run.row(0.75, 0.25, "yes")
    assert first == {
        "nOut": 1, "nmissOut": 0, "aseOut": 0.0625, "divOut": 2.0, "raseOut": 0.25,
        "mceOut": 0.0, "mcllOut": -math.log(0.75), "maeOut": 0.25, "rmaeOut": 0.5,
        "msleOut": None, "rmsleOut": None,
    }  # fmt: skip
    second = run.row(0.75, 0.25, "no")
    assert (second["mceOut"], second["aseOut"]) == (0.5, (0.125 + 1.125) / 4)
    assert run.row(0.5, 0.5, "maybe")["nmissOut"] == 1
    # A tie goes to the first class; a probability of zero costs much, not everything.
    assert run.row(0.5, 0.5, "yes")["mceOut"] == 1 / 3
    assert run.row(1.0, 0.0, "no")["mcllOut"] > 8


FITTED = {
    "Normal": ([1.0, 2.0, 6.0], {"muOut": 3.0, "sigmaOut": math.sqrt(14 / 3)}),
    "Lognormal": ([1.0, math.e, math.e**2], {"muOut": 1.0, "sigmaOut": math.sqrt(2 / 3)}),
    "Exponential": ([1.0, 2.0, 6.0], {"alphaOut": 3.0}),
    "Gamma": ([1.0, 2.0, 6.0], {}),
}


def likelihood(name: str, values: list[float], row: dict[str, Any]) -> float:
    """Compute the logarithm of the density anew, from its textbook form."""
    mu, sigma = row["muOut"] or 0.0, row["sigmaOut"] or 1.0
    shape, scale = row["alphaOut"] or 1.0, row["betaOut"] or 1.0

    def normal(value: float) -> float:
        return -(((value - mu) / sigma) ** 2) / 2 - math.log(sigma * math.sqrt(2 * math.pi))

    densities: dict[str, Callable[[float], float]] = {
        "Normal": normal,
        "Lognormal": lambda value: normal(math.log(value)) - math.log(value),
        "Exponential": lambda value: -value / shape - math.log(shape),
        "Gamma": lambda value: (shape - 1) * math.log(value) - value / scale
        - math.lgamma(shape) - shape * math.log(scale),
    }  # fmt: skip
    return math.fsum(densities[name](value) for value in values)


@pytest.mark.parametrize("name", sorted(FITTED))
def test_a_distribution_is_fitted_where_the_likelihood_is_greatest(name: str) -> None:
    values, expected = FITTED[name]
    run = Run("DistributionFitting", distribution=name)
    for value in values:
        row = run.row(value)
    assert {field: row[field] for field in expected} == pytest.approx(expected)
    best = likelihood(name, values, row)
    assert row["logLikelihoodOut"] == pytest.approx(best)
    assert row["convergeOut"] == 1
    for parameter in ("muOut", "sigmaOut", "alphaOut", "betaOut"):
        for factor in (0.999, 1.001) if row[parameter] else ():
            assert likelihood(name, values, {**row, parameter: row[parameter] * factor}) < best
    assert run.row(None)["nOut"] == 3
    if name in {"Lognormal", "Gamma"}:
        assert run.row(0.0) == run.row(-1.0) == row


@pytest.mark.parametrize("name", sorted(FITTED))
def test_values_that_are_all_alike_have_no_shape(name: str) -> None:
    run = Run("DistributionFitting", distribution=name)
    for _ in range(4):
        row = run.row(3.3)
    assert row["nOut"] == 4
    assert row["betaOut"] is None
    assert (row["convergeOut"], row["logLikelihoodOut"] is None) == (
        (1, False) if name == "Exponential" else (0, True)
    )


def test_windows_are_fitted_when_full_and_overlap() -> None:
    run = Run("DistributionFitting", distribution="normal", windowLength=3, overlap=1)
    values = [1.0, 2.0, 6.0, None, 8.0, 5.0, 1.0]
    found = [[(row["nOut"], row["muOut"]) for row in run.rows(value)] for value in values]
    assert found == [[], [], [(3, 3.0)], [], [(2, 7.0)], [], [(3, 14 / 3)]]


@pytest.mark.parametrize("size", [30, 400])
@pytest.mark.parametrize(("shape", "start", "scale"), [(2.5, -40.0, 3.0), (1.8, 1000.0, 200.0)])
def test_weibull_is_what_scipy_finds(size: int, shape: float, start: float, scale: float) -> None:
    drawn = stats.weibull_min.rvs(shape, start, scale, size, random_state=np.random.default_rng(1))
    run = Run("DistributionFitting", windowLength=size)
    (row,) = [row for value in drawn for row in run.rows(float(value))]
    found = (row["betaOut"], row["muOut"], row["alphaOut"])
    expected = stats.weibull_min.fit(drawn, row["betaOut"], loc=row["muOut"], scale=row["alphaOut"])
    assert found == pytest.approx(expected, rel=1e-3)
    assert row["logLikelihoodOut"] == pytest.approx(stats.weibull_min.logpdf(drawn, *found).sum())
    assert row["convergeOut"] == 1
    few = Run("DistributionFitting", windowLength=size, maxIter=2)
    (row,) = [row for value in drawn for row in few.rows(float(value))]
    assert row["convergeOut"] == 0


def test_values_without_a_most_likely_weibull_do_not_converge() -> None:
    run = Run("DistributionFitting", windowLength=3)
    rows = [row for value in (2.0, 2.0, 2.0, 1.0, 9.0, 10.0) for row in run.rows(value)]
    assert [row["convergeOut"] for row in rows] == [0, 0]
    assert [row["betaOut"] is None for row in rows] == [True, False]
