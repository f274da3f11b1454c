"""Calculate windows: segments, lags, ranges, histograms and changes of a series of values."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.calculate import Run

numbers = st.integers(-20, 20).map(lambda number: number / 4)


def plain_correlation(one: list[float], other: list[float]) -> Any:
    if len(one) < 2 or np.std(one) == 0 or np.std(other) == 0:
        return None
    return pytest.approx(np.corrcoef(one, other)[0, 1])


@settings(max_examples=40)
@given(st.lists(numbers, max_size=20), st.integers(2, 5))
def test_segments_of_a_size_are_compared_with_their_neighbours(
    values: list[float], size: int
) -> None:
    run = Run("SegmentedCorrelation", inputs={"x": "x"}, sampleSize=size)
    for place, value in enumerate(values):
        found, end = run.row(value)["corOut"], place + 1
        if end % size or end < 2 * size:
            assert found is None
        else:
            last = values[end - size : end]
            assert found == plain_correlation(values[end - 2 * size : end - size], last)


def segmented(events: list[tuple[float, float]], **options: Any) -> list[Any]:
    run = Run("SegmentedCorrelation", **options)
    return [run.row(value, indicator)["corOut"] for value, indicator in events]


FIRST, SECOND = [1.0, 2.0, 4.0, 7.0, 3.0], [2.0, 1.0, 5.0, 6.0, 9.0]
SEGMENTS = [
    (value, float(place == 0))
    for segment in (FIRST, SECOND, [0.0])
    for place, value in enumerate(segment)
]


def test_segments_begin_where_the_indicator_is_1() -> None:
    whole = segmented(SEGMENTS)
    assert whole[:10] == [None] * 10
    assert whole[10] == plain_correlation(FIRST, SECOND)


def test_parts_of_segments_are_compared_with_those_of_the_same_number() -> None:
    parts = segmented(SEGMENTS, sampleSize=2)
    assert parts[:6] == [None] * 6
    assert parts[6] == plain_correlation(FIRST[:2], SECOND[:2])
    assert parts[8] == plain_correlation(FIRST[2:4], SECOND[2:4])
    assert parts[10] is None  # one pair is too few


def test_how_many_pairs_are_compared_has_limits() -> None:
    assert segmented(SEGMENTS, maxSize=3)[10] == plain_correlation(FIRST[:3], SECOND[:3])
    assert segmented(SEGMENTS, minSize=6)[10] is None


def test_lags_are_those_of_the_greatest_cross_correlations() -> None:
    rng = np.random.default_rng(1)
    goal = rng.normal(size=64)
    following, opposite = np.roll(goal, 3), -np.roll(goal, 5)
    run = Run("LagMonitor", windowLength=64, maxLag=8)
    (row,) = [
        row for pair in np.column_stack([following, goal]).tolist() for row in run.rows(*pair)
    ]
    series, target = following - following.mean(), goal - goal.mean()
    size = math.sqrt((series**2).sum() * (target**2).sum())
    expected = [(target[: 64 - lag] * series[lag:]).sum() / size for lag in range(9)]
    assert row["maxCCFOut"] == (pytest.approx(max(expected)),)
    assert row["minCCFOut"] == (pytest.approx(min(expected)),)
    assert row["absCCFOut"] == row["maxCCFOut"]
    assert row["maxLagOut"] == row["absLagOut"] == (3.0,)
    assert row["minLagOut"] == (float(np.argmin(expected)),)
    assert row["numComputedLagsOut"] == (9.0,)
    assert row["timeIdOut"] == "64"
    mirrored = Run("LagMonitor", windowLength=64, minLag=-8, maxLag=8)
    pairs = np.column_stack([goal, opposite]).tolist()
    (row,) = [row for pair in pairs for row in mirrored.rows(*pair)]
    assert (row["minLagOut"], row["absLagOut"]) == ((-5.0,), (-5.0,))
    assert row["absCCFOut"][0] == -row["minCCFOut"][0] > 0.8


def test_lists_go_into_a_field_for_each_input() -> None:
    run = Run(
        "LagMonitor",
        inputs={"input": "x,y", "target": "y"},
        outputs={"absLagOut": "one,other", "maxCCFOut": "r", "timeIdOut": "time"},
        schema="id*:int64,one:int64,other:double,r:double,time:int64",
        windowLength=5,
        maxLag=2,
    )
    (row,) = [row for n in (0, 1, 5, 2, 4) for row in run.rows(float(n), float(n * n))]
    assert (row["one"], row["other"], row["time"]) == (0, 0.0, None)
    assert row["r"] > 0.9


def test_lags_are_looked_for_when_a_window_is_full() -> None:
    run = Run("LagMonitor", windowLength=4, overlap=3, maxLag=1)
    found = [len(run.rows(float(n), float(n * n))) for n in range(6)]
    assert found == [0, 0, 0, 1, 1, 1]
    flat = Run("LagMonitor", windowLength=2, maxLag=1)
    flat.rows(1.0, 1.0)
    row = flat.row(1.0, None)
    assert (row["maxCCFOut"], row["numComputedLagsOut"]) == ((None,), (0.0,))


@settings(max_examples=40)
@given(st.lists(numbers, max_size=15), st.integers(1, 4), st.integers(1, 4))
def test_relative_ranges_are_those_of_full_windows(
    values: list[float], size: int, ranges: int
) -> None:
    run = Run("MRR", rangeWindowLength=size, expRangeWindowLength=ranges)
    spreads: list[float] = []
    for place, value in enumerate(values):
        found = run.row(value)
        assert found["timeIdOut"] == str(place + 1)
        if place + 1 >= size:
            spreads.append(float(np.ptp(values[place + 1 - size : place + 1])))
        assert found["rangeOut"] == (spreads[-1] if spreads else None)
        expected = np.mean(spreads[-ranges:]) if len(spreads) >= ranges else None
        assert found["erangeOut"] == (None if expected is None else pytest.approx(expected))
        relative = spreads[-1] / expected if expected else None
        assert found["mrrOut"] == (None if relative is None else pytest.approx(relative))


@settings(max_examples=40)
@given(st.lists(st.none() | numbers, min_size=1, max_size=25), st.integers(2, 6))
def test_a_histogram_has_all_values_in_few_bins(values: list[Any], most: int) -> None:
    run = Run("Histogram", nBins=most, quantileList="0,1")
    for value in values:
        row = run.row(value)
    there = [value for value in values if value is not None]
    centers, heights = row["binCentersOut"], row["binHeightsOut"]
    assert sum(heights) == len(there)
    assert list(centers) == sorted(centers)
    assert len(centers) == len(heights) <= most
    if len(set(there)) <= most:
        assert dict(zip(centers, heights, strict=True)) == {v: there.count(v) for v in there}
    if there:
        mean = sum(c * h for c, h in zip(centers, heights, strict=True)) / len(there)
        assert mean == pytest.approx(np.mean(there))
        assert row["quantilesOut"] == (min(there), max(there))


def test_the_nearest_bins_become_one() -> None:
    run = Run("Histogram", nBins=3)
    for value in (10.0, 0.0, 4.0, 5.0, 20.0):
        row = run.row(value)
    # 4 and 5 first, then 0 and 4.5
    assert row["binCentersOut"] == (pytest.approx(3.0), 10.0, 20.0)
    assert row["binHeightsOut"] == (3.0, 1.0, 1.0)


def test_quantiles_are_near_those_of_all_values() -> None:
    values = np.random.default_rng(1).gamma(2.0, size=3000)
    shares = [0.05, 0.25, 0.5, 0.75, 0.95]
    text = ",".join(map(str, shares))
    run = Run("Histogram", nBins=40, quantileList=text, reportInterval=len(values))
    (row,) = [row for value in values for row in run.rows(float(value))]
    assert row["quantilesOut"] == pytest.approx(np.quantile(values, shares), abs=0.05)


@pytest.mark.parametrize("options", [{"halfLifeSteps": 2}, {"alpha": 0.5**0.5}])
def test_what_is_old_fades(options: dict[str, Any]) -> None:
    run = Run("Histogram", nBins=3, **options)
    for value in (1.0, 2.0, None):
        row = run.row(value)
    assert row["binHeightsOut"] == pytest.approx((0.5, 0.5**0.5))


def test_rows_are_reported_each_so_many_events() -> None:
    run = Run("Histogram", nBins=2, reportInterval=2)
    assert [len(run.rows(1.0)) for _ in range(5)] == [0, 1, 0, 1, 0]


def plain_change(reference: list[float], later: list[float], bins: int, alpha: float) -> float:
    ends = (min(reference), max(reference))
    edges = np.linspace(*ends, bins + 1)
    weights = alpha ** np.arange(len(later))[::-1]
    one = np.histogram(np.clip(reference, *ends), edges)[0] + 0.5
    other = np.histogram(np.clip(later, *ends), edges, weights=weights)[0] + 0.5
    p, q = one / one.sum(), other / other.sum()
    return abs(float(np.sum(p * np.log(p / q)) - np.sum(q * np.log(q / p))))


def test_a_change_is_what_two_histograms_say() -> None:
    rng = np.random.default_rng(1)
    values = [float(value) for value in (*rng.normal(size=60), *rng.normal(3, 1, 60))]
    run = Run(
        "ChangeDetection",
        refWindowSize=20, maxBins=8, slidingAlpha=0.9, maxEvalSteps=10, threshold=0.08, showEval=1,
    )  # fmt: skip
    found = [(place, row) for place, value in enumerate(values) for row in run.rows(value)]
    first = next(place for place, row in found if row["changeDetectedOut"])
    assert 60 < first < 75
    for place, row in found:
        if place <= first:
            expected = plain_change(values[:20], values[20 : place + 1], 8, 0.9)
            assert row["changeValueOut"] == pytest.approx(expected)
            assert row["changeDetectedOut"] == (expected > 0.08)
            assert (place + 1) % 10 == 0
    # After it the next 20 values are the reference.
    assert [place for place, _ in found if first < place < first + 40] == [first + 30]


def test_which_events_are_shown() -> None:
    values = [0.0, 1.0, 2.0, 3.0] * 4 + [9.0] * 12
    options: dict[str, Any] = {"refWindowSize": 4, "maxBins": 4, "slidingAlpha": 0.5}
    options |= {"maxEvalSteps": 4, "threshold": 0.01}

    def shown(**more: int) -> list[tuple[int, int, int]]:
        run = Run("ChangeDetection", **options, **more)
        return [
            (place, row["evaluatedOut"], row["changeDetectedOut"])
            for place, value in enumerate(values)
            for row in run.rows(value)
        ]

    every = shown(showAll=1)
    assert [place for place, _, _ in every] == list(range(len(values)))
    assert shown(showEval=1) == [row for row in every if row[1]]
    assert shown() == [row for row in every if row[2]]
    assert len(shown()) == 1


def test_the_step_adapts_to_the_last_difference() -> None:
    values = [float(n % 5) for n in range(10)] + [float(n % 4) for n in range(60)]
    options = {"refWindowSize": 10, "maxBins": 5, "maxEvalSteps": 10, "threshold": 1, "showEval": 1}
    run = Run("ChangeDetection", adaptiveEval=1, **options)
    places = [place for place, value in enumerate(values) for _ in run.rows(value)]
    steps = list(np.diff(places))
    assert places[0] == 19
    assert min(steps) < 10
    fixed = Run("ChangeDetection", **options)
    places = [place for place, value in enumerate(values) for _ in fixed.rows(value)]
    assert set(np.diff(places)) == {10}


def test_the_tutorial_follows_the_ends() -> None:
    run = Run("Tutorial", normalMin=2, normalMax=5)
    rows = [run.row(value) for value in (3.0, None, 7.0, 1.0)]
    assert [tuple(row.values()) for row in rows] == [
        (3.0, 3.0, 0), (3.0, 3.0, 0), (3.0, 7.0, 1), (1.0, 7.0, 1)
    ]  # fmt: skip
