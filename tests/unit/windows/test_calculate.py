"""Calculate windows: what each algorithm makes of a row of events, and how it goes on."""

import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espha.kernel import Kernel
from espha.model import ModelError, Project
from espha.model.events import Event
from espha.windows.calculate.declared import ALGORITHMS
from support.models import SUB, behind

IN = "id*:int64,x:double,y:double,s:string,g:string"
INPUTS = {
    "Summary": {"input": "x"},
    "Correlation": {"x": "x", "y": "y"},
    "SegmentedCorrelation": {"x": "x", "y": "y", "indicator": "g"},
    "FitStat": {"inputs": "x", "response": "y"},
    "MRR": {"input": "x"},
    "Histogram": {"input": "x"},
    "ROC": {"input": "x", "response": "s"},
    "ChangeDetection": {"input": "x"},
    "DistributionFitting": {"input": "x"},
    "LagMonitor": {"x": "x", "y": "y"},
    "STFT": {"input": "x", "timeId": "id"},
    "Cepstrum": {"input": "x", "timeId": "id"},
    "SST": {"inputs": "x,y"},
    "Tokenization": {"docId": "id", "doc": "s"},
    "TFIDF": {"docId": "g", "token": "s"},
}
TYPES = {"count": "int64", "number": "double", "any": "string", "text": "string", "blob": "blob"}


def block(tag: str, values: dict[str, Any]) -> str:
    texts = "".join(f'<property name="{name}">{value}</property>' for name, value in values.items())
    return f"<{tag}><properties>{texts}</properties></{tag}>"


def project(
    algorithm: str,
    *,
    inputs: dict[str, Any] | None = None,
    outputs: dict[str, str] | None = None,
    schema: str = "",
    index: str = "pi_EMPTY",
    **parameters: Any,
) -> Project:
    results = ALGORITHMS[algorithm].results
    outputs = outputs or {name: name for name in results}
    apart = ALGORITHMS[algorithm].rows_by
    types = {
        name: "array(dbl)" if many else TYPES[kind] for name, (kind, many, *_) in results.items()
    }
    fields = [
        f"{field}{'*' if name == apart else ''}:{types[name]}"
        for name, field in outputs.items()
        if name in results
    ]
    window = (
        f'<window-calculate name="out" algorithm="{algorithm}">'
        f"<schema-string>{schema or ','.join(['id*:int64', *fields])}</schema-string>"
        + block("parameters", parameters)
        + block("input-map", inputs or INPUTS[algorithm])
        + block("output-map", outputs)
        + f"{SUB}</window-calculate>"
    )
    return behind(IN, window, index=index)


class Run:
    """A kernel with a calculate window; each event gives dictionaries of results."""

    def __init__(self, algorithm: str, **options: Any) -> None:
        self.project = project(algorithm, **options)
        self.kernel = Kernel(self.project)
        self.names = [field.name for field in self.project.windows["q/out"].fields]
        self.next = 0

    def rows(self, x: Any = None, y: Any = None, s: Any = None, g: Any = None) -> list[Any]:
        """Publish one event; return a dictionary for each row, without the event's key."""
        self.next += 1
        outputs = self.kernel.publish("q/in", Event("I", "N", (self.next, x, y, s, g)), 0)
        assert self.kernel.take_refusals() == []
        return [
            {k: v for k, v in zip(self.names, event.values, strict=True) if k != "id"}
            for _, event in outputs
        ]

    def row(self, *values: Any) -> Any:
        """Publish one event that gives one row."""
        (row,) = self.rows(*values)
        return row


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


@settings(max_examples=80, deadline=None)
@given(st.lists(numbers, max_size=25), st.integers(0, 7))
def test_summary_is_what_a_plain_recomputation_gives(values: list[Any], length: int) -> None:
    run = Run("Summary", windowLength=length)
    for place, value in enumerate(values):
        found = run.row(value)
        start = max(0, place + 1 - length) if length else 0
        assert found == recomputed(values[start : place + 1])


def test_summary_without_a_window_length_is_over_all_events() -> None:
    run = Run("Summary", outputs={"nOut": "n", "sumOut": "total"})
    assert [run.row(float(value)) for value in (1, 2, 3)][-1] == {"n": 3, "total": 6.0}


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


def test_a_segment_is_a_row_of_events_with_one_indicator() -> None:
    run = Run("SegmentedCorrelation", minSize=3)
    assert [run.row(x, y, None, "a")["corOut"] for x, y in ((1.0, 1.0), (2.0, 2.0))] == [None] * 2
    assert run.row(3.0, 3.0, None, "a") == {"corOut": 1.0}
    assert [run.row(x, -x, None, "b")["corOut"] for x in (1.0, 2.0, 3.0)] == [None, None, -1.0]
    assert run.row(1.0, 1.0, None, "a") == {"corOut": None}  # the first segment does not go on
    short = Run("SegmentedCorrelation", maxSize=2)
    found = [short.row(x, y, None, "a")["corOut"] for x, y in ((1.0, 1.0), (2.0, 2.0), (3.0, 1.0))]
    assert found == [None, 1.0, -1.0]


def test_fit_of_numbers() -> None:
    run = Run("FitStat", windowLength=2)
    assert run.row(1.0, 3.0) == {
        "nOut": 1, "nmissOut": 0, "aseOut": 4.0, "divOut": 1.0, "raseOut": 2.0,
        "mceOut": None, "mcllOut": None,
    }  # fmt: skip
    assert run.row(2.0, 2.0)["aseOut"] == 2.0
    assert run.row(None, 2.0) == {
        "nOut": 1, "nmissOut": 1, "aseOut": 0.0, "divOut": 1.0, "raseOut": 0.0,
        "mceOut": None, "mcllOut": None,
    }  # fmt: skip
    assert run.row(1.0, None)["aseOut"] is None


def test_fit_of_classes() -> None:
    run = Run("FitStat", inputs={"inputs": "x, y", "response": "s"}, classLabels="yes,no")
    first = run.row(0.75, 0.25, "yes")
    assert first == {
        "nOut": 1, "nmissOut": 0, "aseOut": 0.0625, "divOut": 2.0, "raseOut": 0.25,
        "mceOut": 0.0, "mcllOut": -math.log(0.75),
    }  # fmt: skip
    second = run.row(0.75, 0.25, "no")
    assert (second["mceOut"], second["aseOut"]) == (0.5, (0.125 + 1.125) / 4)
    assert run.row(0.5, 0.5, "maybe")["nmissOut"] == 1
    # A tie goes to the first class; a probability of zero costs much, not everything.
    assert run.row(0.5, 0.5, "yes")["mceOut"] == 1 / 3
    assert run.row(1.0, 0.0, "no")["mcllOut"] > 8


def test_moving_relative_range() -> None:
    run = Run("MRR", windowLength=2)
    assert run.row(2.0) == {"mrrOut": 0.0, "rangeOut": 0.0, "meanOut": 2.0}
    assert run.row(4.0) == {"mrrOut": 2 / 3, "rangeOut": 2.0, "meanOut": 3.0}
    assert run.row(-4.0) == {"mrrOut": None, "rangeOut": 8.0, "meanOut": 0.0}
    assert run.row(-2.0)["mrrOut"] == 2 / 3
    run.row(None)
    assert run.row(None) == {"mrrOut": None, "rangeOut": None, "meanOut": None}


def test_histogram_bins_are_as_narrow_as_the_values_allow() -> None:
    run = Run("Histogram", nBins=4, windowLength=4)
    assert [row["binHeightOut"] for row in run.rows(None)] == [0, 0, 0, 0]
    run.rows(0.0)
    run.rows(3.0)
    assert [row["binHeightOut"] for row in run.rows(3.5)] == [1, 0, 0, 2]
    rows = run.rows(6.0)  # the null has left; 0..6 does not fit into four bins of 1
    assert rows[1] == {
        "binIdOut": 1, "binHeightOut": 2, "binLowerOut": 2.0, "binUpperOut": 4.0,
        "binCenterOut": 3.0, "binWidthOut": 2.0,
    }  # fmt: skip
    rows = run.rows(5.0)  # the 0 has left: 3, 3.5, 6, 5 fit into bins of 1 again
    assert [(row["binLowerOut"], row["binHeightOut"]) for row in rows] == [
        (3.0, 2), (4.0, 0), (5.0, 1), (6.0, 1)
    ]  # fmt: skip


@settings(max_examples=50, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=20), st.integers(2, 9))
def test_a_histogram_over_all_is_one_over_a_window_that_holds_them(
    values: list[Any], most: int
) -> None:
    every, windowed = Run("Histogram", nBins=most), Run("Histogram", nBins=most, windowLength=20)
    for value in values:
        rows = every.rows(value)
        assert rows == windowed.rows(value)
    seen = [value for value in values if value is not None]
    assert sum(row["binHeightOut"] for row in rows) == len(seen)


def test_rows_are_reported_each_so_many_events_under_their_own_keys() -> None:
    outputs = {"binIdOut": "bin", "binHeightOut": "n"}
    options = {"outputs": outputs, "schema": "bin*:int64,n:int64", "index": "pi_HASH"}
    run = Run("Histogram", nBins=2, reportInterval=2, **options)
    publish = run.kernel.publish
    assert publish("q/in", Event("I", "N", (1, 0.0, None, None, None)), 0) == []
    first = publish("q/in", Event("I", "N", (2, 1.0, None, None, None)), 0)
    assert [event for _, event in first] == [Event("I", "N", (0, 1)), Event("I", "N", (1, 1))]
    publish("q/in", Event("I", "N", (3, 1.0, None, None, None)), 0)
    second = publish("q/in", Event("I", "N", (4, 1.0, None, None, None)), 0)
    assert [(event.opcode, event.values) for _, event in second] == [
        ("U", (0, 1)), ("D", (0, 1)), ("U", (1, 3)), ("D", (1, 1))
    ]  # fmt: skip


def test_roc_by_hand() -> None:
    run = Run("ROC", cutStep=0.5, event="yes")
    for x, s in ((0.9, "yes"), (0.5, "no"), (0.6, "yes")):
        run.rows(x, None, s)
    rows = run.rows(0.2, None, "no")
    assert [row["cutOffOut"] for row in rows] == [0.0, 0.5, 1.0]
    middle = rows[1]
    assert {name: middle[name] for name in ("tpOut", "fpOut", "fnOut", "tnOut")} == {
        "tpOut": 2, "fpOut": 1, "fnOut": 0, "tnOut": 1
    }  # fmt: skip
    assert (middle["sensitivityOut"], middle["specificityOut"], middle["fprOut"]) == (1.0, 0.5, 0.5)
    assert (middle["accOut"], middle["miscEventOut"], middle["fdrOut"]) == (0.75, 0.25, 1 / 3)
    assert (middle["f1Out"], middle["fHalfOut"]) == (0.8, 10 / 14)
    assert [(row["ks2Out"], row["ksOut"]) for row in rows] == [(0.0, 0.0), (0.5, 1.0), (0.0, 0.0)]
    # Of four pairs, two are in the order that the cutoffs see, two are tied.
    assert {(row["cOut"], row["giniOut"], row["gammaOut"], row["tauOut"]) for row in rows} == {
        (0.75, 0.5, 1.0, 4 / 12)
    }
    assert rows[2]["fdrOut"] is None


def test_roc_counts_no_nulls_and_takes_numbers_as_labels() -> None:
    run = Run("ROC", inputs={"input": "x", "response": "y"}, cutStep=1, windowLength=2)
    run.rows(0.3, 1.0)
    run.rows(None, 1.0)
    run.rows(0.3, 0.0)
    rows = run.rows(2.0, 1.0)
    assert [(row["tpOut"], row["fpOut"], row["sensitivityOut"]) for row in rows] == [
        (0, 1, None), (0, 0, None)
    ]  # fmt: skip


def test_a_change_is_detected_and_becomes_the_reference() -> None:
    run = Run("ChangeDetection", referenceSize=4, windowLength=4, nBins=2, threshold=0.5)
    for value in (0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0):
        assert run.row(value) == {"changeDetectedOut": 0, "changeValueOut": None}
    assert run.row(3.0) == {"changeDetectedOut": 0, "changeValueOut": 0.0}
    assert run.row(None) == {"changeDetectedOut": 0, "changeValueOut": None}
    for value in (9.0, 9.0):
        assert run.row(value)["changeDetectedOut"] == 0
    found = run.row(9.0)  # 3, 9, 9, 9: shares 0.1 and 0.9, of the reference 0.5 and 0.5
    assert found["changeDetectedOut"] == 0
    assert found["changeValueOut"] == pytest.approx(0.1 * math.log(0.2) + 0.9 * math.log(1.8))
    lower = Run("ChangeDetection", referenceSize=4, windowLength=4, nBins=2, threshold=0.3)
    for value in (0.0, 1.0, 2.0, 3.0, 9.0, 9.0, 8.0):
        lower.row(value)
    assert lower.row(9.0)["changeDetectedOut"] == 1
    for value in (9.0, 9.0, 8.0):
        assert lower.row(value) == {"changeDetectedOut": 0, "changeValueOut": None}
    assert lower.row(9.0)["changeValueOut"] == 0.0


def test_the_lag_is_where_y_follows_x() -> None:
    xs = [0.0, 5.0, 1.0, 4.0, 2.0, 9.0, 3.0, 7.0]
    run = Run("LagMonitor", windowLength=8, maxLag=3)
    for place, x in enumerate(xs):
        found = run.row(x, -xs[place - 2] if place > 1 else 0.5)
    assert found == {"lagOut": 2, "corOut": -1.0}
    first = Run("LagMonitor", windowLength=3, maxLag=0)
    assert first.row(1.0, 1.0) == {"lagOut": None, "corOut": None}


FITTED = {
    "normal": ([1.0, 2.0, 6.0], {"muOut": 3.0, "sigmaOut": math.sqrt(14 / 3)}),
    "lognormal": ([1.0, math.e, math.e**2], {"muOut": 1.0, "sigmaOut": math.sqrt(2 / 3)}),
    "exponential": ([1.0, 2.0, 6.0], {"betaOut": 3.0}),
    "gamma": ([1.0, 2.0, 6.0], {}),
    "weibull": ([1.0, 2.0, 6.0], {}),
}


def likelihood(name: str, values: list[float], row: dict[str, Any]) -> float:
    """Compute the logarithm of the density anew, from its textbook form."""
    mu, sigma = row["muOut"] or 0.0, row["sigmaOut"] or 1.0
    shape, scale = row["alphaOut"] or 1.0, row["betaOut"] or 1.0

    def normal(value: float) -> float:
        return -(((value - mu) / sigma) ** 2) / 2 - math.log(sigma * math.sqrt(2 * math.pi))

    densities: dict[str, Callable[[float], float]] = {
        "normal": normal,
        "lognormal": lambda value: normal(math.log(value)) - math.log(value),
        "exponential": lambda value: -value / scale - math.log(scale),
        "gamma": lambda value: (shape - 1) * math.log(value) - value / scale
        - math.lgamma(shape) - shape * math.log(scale),
        "weibull": lambda value: math.log(shape / scale)
        + (shape - 1) * math.log(value / scale) - (value / scale) ** shape,
    }  # fmt: skip
    return math.fsum(densities[name](value) for value in values)


@pytest.mark.parametrize("name", sorted(FITTED))
def test_a_distribution_is_fitted_where_the_likelihood_is_greatest(name: str) -> None:
    values, expected = FITTED[name]
    run = Run("DistributionFitting", distribution=name, windowLength=10)
    for value in values:
        row = run.row(value)
    assert {field: row[field] for field in expected} == pytest.approx(expected)
    best = likelihood(name, values, row)
    assert row["logLikelihoodOut"] == pytest.approx(best)
    for parameter in ("muOut", "sigmaOut", "alphaOut", "betaOut"):
        for factor in (0.999, 1.001) if row[parameter] else ():
            assert likelihood(name, values, {**row, parameter: row[parameter] * factor}) < best
    assert run.row(None)["nOut"] == 3
    if name not in {"normal", "exponential"}:
        assert run.row(0.0) == run.row(-1.0) == row


@pytest.mark.parametrize("name", sorted(FITTED))
def test_values_that_are_all_alike_have_no_shape(name: str) -> None:
    run = Run("DistributionFitting", distribution=name, windowLength=5)
    for _ in range(4):
        row = run.row(3.3)
    assert row["nOut"] == 4
    assert row["alphaOut"] is None
    assert (row["logLikelihoodOut"] is None) == (name != "exponential")


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
        ("DistributionFitting", {"distribution": "cauchy"}, "give normal or lognormal or"),
        ("DistributionFitting", {"distribution": "weibull"}, "give a windowLength from 1 to"),
        ("LagMonitor", {"maxLag": 100}, "maxLag must be less than windowLength"),
        ("SegmentedCorrelation", {"maxSize": 1}, "maxSize is less than minSize"),
        ("MRR", {"schema": "z*:double,mrrOut:double"}, "key field 'z' is not in the input"),
        ("MRR", {"schema": "id*:blob,mrrOut:double"}, "field 'id' is blob, in the input int64"),
        ("MRR", {"outputs": {"mrrOut": "a,b"}}, "mrrOut goes to one field, not to 2"),
    ],
)
def test_what_cannot_run_is_refused(algorithm: str, options: Any, reason: str) -> None:
    with pytest.raises(ModelError) as caught:
        project(algorithm, **options)
    assert reason in str(caught.value)


SETTINGS: dict[str, list[dict[str, Any]]] = {
    "Summary": [{}, {"windowLength": 3}],
    "Correlation": [{}, {"windowLength": 3}],
    "SegmentedCorrelation": [{}, {"maxSize": 3}],
    "FitStat": [{}, {"windowLength": 3}],
    "MRR": [{}, {"windowLength": 3}],
    "Histogram": [{"reportInterval": 2}, {"windowLength": 3}],
    "ROC": [{"cutStep": 0.25}, {"windowLength": 3, "cutStep": 0.5}],
    "ChangeDetection": [{"referenceSize": 3, "windowLength": 2, "threshold": 0.1}],
    "DistributionFitting": [
        {"distribution": name, "windowLength": length}
        for name in FITTED
        for length in ((4,) if name == "weibull" else (0, 4))
    ],
    "LagMonitor": [{"windowLength": 4, "maxLag": 2}],
    "STFT": [{"windowLength": 4, "overlap": 3, "fftLength": 4, "binsInSchema": 3}],
    "Cepstrum": [
        {"windowLength": 4, "overlap": 3, "windowType": 7, "complexCepstrum": phase}
        for phase in (0, 1)
    ],
    "SST": [{"maxPrincipal": 2, "meanForgetFactor": 0.9, "covForgetFactor": 0.5}],
    "Tokenization": [{}],
    "TFIDF": [{}],
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


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(CASES), events, st.integers(0, 14))
def test_a_restored_window_goes_on_as_the_first_one(
    case: tuple[str, dict[str, Any]], given_: list[Any], cut: int
) -> None:
    whole, first, second = (Run(case[0], **case[1]) for _ in range(3))
    expected = [whole.rows(*values) for values in given_]
    found = [first.rows(*values) for values in given_[:cut]]
    second.kernel.restore(pickle.loads(pickle.dumps(first.kernel.state())))  # noqa: S301
    second.next = first.next
    found += [second.rows(*values) for values in given_[cut:]]
    assert found == expected
    assert second.kernel.state() == whole.kernel.state()
    for rows in found:
        for row in rows:
            for value in row.values():
                assert not isinstance(value, float) or math.isfinite(value)


def test_every_algorithm_is_tried_with_restores() -> None:
    assert {name for name, _ in CASES} == set(ALGORITHMS)
