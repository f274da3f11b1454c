"""Calculate windows: what each algorithm makes of a row of events, and how it goes on."""

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from espha.kernel import Kernel
from espha.model import ModelError
from espha.model.events import Event
from espha.recovery.plain import dumps, loads
from espha.windows.calculate.declared import ALGORITHMS
from support.calculate import Run, project

# Summary: by hand in test_semantics; here against a plain recomputation with fractions.


def recomputed(window: list[Any]) -> dict[str, Any]:
    values = [Fraction(value) for value in window if value is not None]
    n = len(values)
    total = sum(values, Fraction(0))
    squares = sum((value * value for value in values), Fraction(0))
    css = squares - total * total / n if n else None
    var = css / (n - 1) if css is not None and n > 1 else None
    exact: dict[str, Any] = {
        "minOut": min(values, default=None),
        "maxOut": max(values, default=None),
        "sumOut": total if n else None,
        "meanOut": total / n if n else None,
        "cssOut": css,
        "ussOut": squares if n else None,
        "varOut": var,
    }
    result = {name: rounded(value) for name, value in exact.items()}
    result |= {"nOut": n, "nmissOut": len(window) - n}
    roots = {"stdOut": var, "stderrOut": None if var is None else var / n}
    result |= {
        name: None if rounded(value) is None else math.sqrt(rounded(value))  # type: ignore[arg-type]
        for name, value in roots.items()
    }
    std, mean = result["stdOut"], result["meanOut"]
    result["cvOut"] = None if std is None or not mean else 100 * std / mean
    if result["cvOut"] is not None and math.isinf(result["cvOut"]):
        result["cvOut"] = None
    return result


def rounded(value: Fraction | None) -> float | None:
    try:
        return None if value is None else float(value)
    except OverflowError:
        return None


numbers = st.one_of(
    st.none(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.1, 0.2, 1e308, -1e308, 5e-324, 1e16, 1.0, 0.0, -0.0]),
    st.integers(-5, 5).map(float),
)


@settings(max_examples=80)
@given(st.lists(numbers, max_size=25), st.integers(0, 7))
def test_summary_is_what_a_plain_recomputation_gives(values: list[Any], length: int) -> None:
    run = Run("Summary", windowLength=length)
    for place, value in enumerate(values):
        found = run.row(value)
        start = max(0, place + 1 - length) if length else 0
        expected = recomputed(values[start : place + 1])
        assert {name: found[name] for name in expected} == expected


def test_summary_without_a_window_length_is_over_all_events() -> None:
    run = Run("Summary", outputs={"nOut": "n", "sumOut": "total"})
    assert [run.row(float(value)) for value in (1, 2, 3)][-1] == {"n": 3, "total": 6.0}


@settings(max_examples=60)
@given(st.lists(st.none() | st.integers(-40, 40).map(lambda n: n / 8), max_size=30))
def test_summary_knows_shape_places_and_limits_as_scipy_does(values: list[Any]) -> None:
    length = 8
    run = Run("Summary", windowLength=length, alpha=0.1)
    for place, value in enumerate(values):
        found = run.row(value)
        there = [v for v in values[max(0, place + 1 - length) : place + 1] if v is not None]
        n = len(there)
        if n > 3 and len(set(there)) > 1:
            assert found["skewnessOut"] == pytest.approx(stats.skew(there, bias=False), abs=1e-9)
            assert found["kurtosisOut"] == pytest.approx(stats.kurtosis(there, bias=False))
            test = stats.ttest_1samp(there, 0)
            assert found["tValueOut"] == pytest.approx(test.statistic)
            assert found["probTOut"] == pytest.approx(test.pvalue)
            limits = test.confidence_interval(0.9)
            assert (found["lclmOut"], found["uclmOut"]) == pytest.approx(tuple(limits))
        for percent in (1, 25, 50, 75, 90) if n else ():
            expected = np.percentile(there, percent, method="averaged_inverted_cdf")
            assert found[f"p{percent}Out"] == expected
        if n:
            assert found["medianOut"] == np.median(there)
            assert found["qrangeOut"] == found["q3Out"] - found["q1Out"]
            assert found["rangeOut"] == max(there) - min(there)
        counts = Counter(there)
        most = max(counts.values(), default=0)
        modes = [value for value, count in counts.items() if count == most]
        assert found["modeOut"] == (min(modes) if most > 1 else None)


def plain_entropy(values: list[float], length: int, tolerance: float) -> float | None:
    """Compute the sample entropy from its definition: pairs of rows, one by one."""

    def pairs(size: int) -> int:
        rows = [values[start : start + size] for start in range(len(values) - length)]
        return sum(
            max(abs(a - b) for a, b in zip(one, other, strict=True)) <= tolerance
            for number, one in enumerate(rows)
            for other in rows[number + 1 :]
        )

    longer, alike = pairs(length + 1), pairs(length)
    return -math.log(longer / alike) if longer and alike else None


@pytest.mark.parametrize("normalize", [0, 1])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_sample_entropy_is_what_its_definition_says(length: int, normalize: int) -> None:
    run = Run(
        "Summary",
        windowLength=20,
        sampleEntropyTemplateLength=length,
        sampleEntropyTolerance=0.6,
        sampleEntropyNormalize=normalize,
        outputs={"sampleEntropyOut": "entropy"},
    )
    values = [float((7 * n * n + n // 3) % 11) / 4 for n in range(32)]
    seen = set()
    for place, value in enumerate(values):
        found = run.row(value)["entropy"]
        there = values[max(0, place - 19) : place + 1]
        scale = np.std(there, ddof=1) if normalize and place else 1.0
        expected = plain_entropy(there, length, 0.6 * float(scale)) if place else None
        assert found == (None if expected is None else pytest.approx(expected))
        seen.add(found)
    assert len(seen) > 2


def test_the_parameters_of_the_failover_project_are_known() -> None:
    run = Run(
        "Summary",
        windowLength=20,
        alpha=0.05,
        sampleEntropyTolerance=0.2,
        sampleEntropyNormalize=1,
        sampleEntropyTemplateLength=2,
        outputs={"sumOut": "sum20"},
        schema="id*:int64,sum20:int64",
    )
    assert run.project.warnings == ()
    assert [run.row(1.5)["sum20"] for _ in range(22)][-3:] == [30, 30, 30]


def test_correlation_by_hand() -> None:
    run = Run("Correlation", windowLength=3)
    assert run.row(1.0, 2.0) == {"corOut": None}
    assert run.row(2.0, 4.0) == {"corOut": 1.0}
    assert run.row(3.0, 0.0) == {"corOut": -0.5}
    assert run.row(4.0, None) == {"corOut": -1.0}  # (1, 2) has left, (4, null) does not count
    assert run.row(3.0, 5.0) == {"corOut": None}  # both x are 3


def test_correlation_keeps_no_error_of_what_has_left() -> None:
    run = Run("Correlation", windowLength=3)
    for x, y in ((1e300, 1e-300), (1e10, 1e-10), (1.0, 3.0), (2.0, 2.0)):
        run.row(x, y)
    assert run.row(3.0, 1.0) == {"corOut": -1.0}


def test_roc_by_hand() -> None:
    run = Run("ROC", cutStep=0.5, event="yes")
    for x, s in ((0.9, "yes"), (0.5, "no"), (0.6, "yes")):
        run.rows(x, None, s)
    rows = run.rows(0.2, None, "no")
    assert [row["cutOffOut"] for row in rows] == [0.0, 0.5]
    middle = rows[1]
    assert {name: middle[name] for name in ("tpOut", "fpOut", "fnOut", "tnOut")} == {
        "tpOut": 2, "fpOut": 1, "fnOut": 0, "tnOut": 1
    }  # fmt: skip
    assert (middle["sensitivityOut"], middle["specificityOut"], middle["fprOut"]) == (1.0, 0.5, 0.5)
    assert (middle["accOut"], middle["miscEventOut"], middle["fdrOut"]) == (0.75, 0.25, 1 / 3)
    assert (middle["f1Out"], middle["fHalfOut"]) == (0.8, 10 / 14)
    assert [(row["ks2Out"], row["ksOut"]) for row in rows] == [(0.0, 0.0), (0.5, 1.0)]
    # Of four pairs, two are in the order that the cutoffs see, two are tied.
    assert {(row["cOut"], row["giniOut"], row["gammaOut"], row["tauOut"]) for row in rows} == {
        (0.75, 0.5, 1.0, 4 / 12)
    }


@pytest.mark.parametrize(("step", "bins"), [(0.01, 100), (0.1, 10), (1, 1)])
def test_roc_has_as_many_bins_as_steps(step: float, bins: int) -> None:
    rows = Run("ROC", cutStep=step).rows(1.0, None, "1")
    assert [row["binIdOut"] for row in rows] == list(range(bins))
    assert {row["tpOut"] for row in rows} == {1}  # the last bin has 1 in it


def test_roc_counts_no_nulls_and_takes_numbers_as_labels() -> None:
    run = Run("ROC", inputs={"input": "x", "response": "y"}, cutStep=0.5, windowLength=2)
    run.rows(0.3, 1.0)
    run.rows(None, 1.0)
    run.rows(0.3, 0.0)
    rows = run.rows(2.0, 1.0)
    assert [(row["tpOut"], row["fpOut"], row["sensitivityOut"]) for row in rows] == [
        (0, 1, None), (0, 0, None)
    ]  # fmt: skip


def test_updates_are_observations_and_deletes_are_not() -> None:
    kernel = Kernel(project("Correlation"))
    for opcode in ("I", "U", "P"):
        ((_, event),) = kernel.publish("q/in", Event(opcode, "N", (1, 1.0, 1.0, None, None)), 0)
        assert event.opcode == opcode
    before = kernel.state()["windows"]
    for opcode in ("D", "SD"):
        assert kernel.publish("q/in", Event(opcode, "N", (1, 1.0, 1.0, None, None)), 0) == []
    assert kernel.state()["windows"] == before


@pytest.mark.parametrize(
    ("algorithm", "options", "reason"),
    [
        ("Summary", {"windowLength": "-1"}, "windowLength is '-1'; give a whole number from 0 to"),
        ("Summary", {"windowLength": "1e3"}, "windowLength is '1e3'"),
        ("Correlation", {"inputs": {"x": "x"}}, "the <input-map> needs the property y"),
        ("Correlation", {"inputs": {"x": "x,y", "y": "y"}}, "x takes one field, not 2"),
        ("Correlation", {"inputs": {"x": "s", "y": "y"}}, "'s' is string; Correlation takes numb"),
        ("Correlation", {"inputs": {"x": "q", "y": "y"}}, "'q' is not a field of the input window"),
        ("Correlation", {"outputs": {"meanOut": "m"}}, "Correlation: 'meanOut' is not one of"),
        ("FitStat", {"classLabels": "a,b"}, "2 classLabels for 1 inputs"),
        ("FitStat", {"inputs": {"inputs": "x,y", "response": "s"}}, "name these in classLabels"),
        ("ROC", {"cutStep": "0"}, "cutStep is '0'; give a number from 0.001 to 1"),
        ("ROC", {"cutStep": "x"}, "cutStep is 'x'"),
        ("DistributionFitting", {"distribution": "cauchy"}, "give Weibull or Gamma or Normal or"),
        ("DistributionFitting", {}, "Weibull looks at each value again; give a windowLength"),
        (
            "DistributionFitting",
            {"windowLength": 5, "overlap": 5},
            "overlap must be less than windowLength",
        ),
        ("LagMonitor", {"maxLag": 100}, "maxLag must be less than windowLength"),
        ("LagMonitor", {"minLag": 11}, "minLag is greater than maxLag"),
        ("LagMonitor", {"overlap": 100}, "overlap must be less than windowLength"),
        ("SegmentedCorrelation", {"maxSize": 1, "minSize": 2}, "maxSize is less than minSize"),
        ("SegmentedCorrelation", {"inputs": {"x": "x"}}, "give a sampleSize, or an indicator"),
        ("Histogram", {"quantileList": "0.5,2"}, "a list of numbers from 0 to 1"),
        ("Histogram", {"quantileList": "a"}, "a list of numbers from 0 to 1"),
        ("ChangeDetection", {"showAll": "maybe"}, "showAll is 'maybe'; give 0 or 1"),
        ("MRR", {"schema": "z*:double,mrrOut:double"}, "key field 'z' is not in the input"),
        ("MRR", {"schema": "id*:blob,mrrOut:double"}, "field 'id' is blob, in the input int64"),
        ("MRR", {"outputs": {"mrrOut": "a,b"}}, "mrrOut goes to one field, not to 2"),
    ],
)
def test_what_cannot_run_is_refused(algorithm: str, options: Any, reason: str) -> None:
    with pytest.raises(ModelError) as caught:
        project(algorithm, **options)
    assert reason in str(caught.value)


DISTRIBUTIONS = ALGORITHMS["DistributionFitting"].parameters["distribution"].choices
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "Summary": [{}, {"windowLength": 5}],
    "Correlation": [{}, {"windowLength": 3}],
    "SegmentedCorrelation": [{}, {"sampleSize": 2, "maxSize": 3}],
    "FitStat": [{}, {"windowLength": 3}],
    "MRR": [{"rangeWindowLength": 2, "expRangeWindowLength": 3}],
    "Histogram": [
        {"reportInterval": 2, "nBins": 3, "quantileList": "0,0.5,1"},
        {"halfLifeSteps": 2, "nBins": 2, "quantileList": "0.25"},
    ],
    "ROC": [{"cutStep": 0.25}, {"windowLength": 3, "cutStep": 0.5}],
    "ChangeDetection": [
        {"refWindowSize": 3, "maxEvalSteps": 2, "maxBins": 3, "showAll": 1, "adaptiveEval": 1}
    ],
    "DistributionFitting": [
        {"distribution": name, "windowLength": length, "overlap": length // 2}
        for name in DISTRIBUTIONS
        for length in ((4,) if name == "Weibull" else (0, 4))
    ],
    "LagMonitor": [{"windowLength": 4, "maxLag": 2, "minLag": -1, "overlap": 2}],
    "Tutorial": [{"normalMin": 0, "normalMax": 2}],
    "STFT": [{"windowLength": 4, "overlap": 3, "fftLength": 4, "binsInSchema": 3}],
    "Cepstrum": [
        {"windowLength": 4, "overlap": 3, "windowType": 7, "complexCepstrum": phase}
        for phase in (0, 1)
    ],
    "SST": [{"maxPrincipal": 2, "meanForgetFactor": 0.9, "covForgetFactor": 0.5}],
    "Tokenization": [{}],
    "TFIDF": [{}],
    "ImageProcessing": [{"function": "flip"}],
    "TextVectorization": [{"outputDocVec": 1, "wordVec": "1,2,0.1\n0,7"}],
}
CASES = [(name, options) for name, each in SETTINGS.items() for options in each]
events = st.lists(
    st.tuples(
        st.one_of(numbers, st.floats(0, 1)),
        numbers,
        st.sampled_from(["1", "0", None]),
        st.sampled_from(["a", "b", None]),
    ),
    max_size=14,
)


@settings(max_examples=150)
@given(st.sampled_from(CASES), events, st.integers(0, 14))
def test_a_restored_window_goes_on_as_the_first_one(
    case: tuple[str, dict[str, Any]], given_: list[Any], cut: int
) -> None:
    whole, first, second = (Run(case[0], **case[1]) for _ in range(3))
    expected = [whole.rows(*values) for values in given_]
    found = [first.rows(*values) for values in given_[:cut]]
    second.kernel.restore(loads(dumps(first.kernel.state())))
    second.next = first.next
    found += [second.rows(*values) for values in given_[cut:]]
    assert found == expected
    assert second.kernel.state() == whole.kernel.state()
    for rows in found:
        for row in rows:
            for value in row.values():
                parts = value if isinstance(value, tuple) else (value,)
                assert all(not isinstance(part, float) or math.isfinite(part) for part in parts)


def test_every_algorithm_is_tried_with_restores() -> None:
    assert {name for name, _ in CASES} == set(ALGORITHMS)
