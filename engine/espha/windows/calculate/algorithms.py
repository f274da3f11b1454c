"""What each algorithm of calculate windows takes and gives."""

from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple

InputType = Literal["number", "label"]
ResultType = Literal["count", "number"]
Settings = Mapping[str, int | float | str]

MAX_WINDOW: Final = 100_000
"""Longest window, in events."""
MAX_WALKED: Final = 10_000
"""Longest window of an algorithm that walks over it at each event."""


class Parameter(NamedTuple):
    """A parameter: a whole number, a number or a text, as its default is one.

    Attributes:
        default: what holds when it is not given.
        low: smallest number.
        high: largest number.
        choices: the texts that it can be; empty: any.
    """

    default: int | float | str
    low: float = 0
    high: float = MAX_WINDOW
    choices: tuple[str, ...] = ()


def _any(settings: Settings, counts: Mapping[str, int]) -> str:
    return ""


class Algorithm(NamedTuple):
    """An algorithm's contract.

    Attributes:
        inputs: by name, what the fields must be, and whether there can be several.
        parameters: by name.
        results: by name, what they are.
        rows_by: the result that tells the rows of one event apart; empty: there is one row.
        check: takes the settings and the number of fields of each input; returns a sentence when
            they do not go together.
    """

    inputs: Mapping[str, tuple[InputType, bool]]
    parameters: Mapping[str, Parameter]
    results: Mapping[str, ResultType]
    rows_by: str = ""
    check: Callable[[Settings, Mapping[str, int]], str] = _any


def _numbers(*names: str) -> dict[str, ResultType]:
    return dict.fromkeys(names, "number")


def _fit_check(settings: Settings, counts: Mapping[str, int]) -> str:
    labels = [label for label in str(settings["classLabels"]).split(",") if label.strip()]
    if labels and len(labels) != counts["inputs"]:
        return f"{len(labels)} classLabels for {counts['inputs']} inputs; give one probability each"
    if not labels and counts["inputs"] != 1:
        return "several inputs are the probabilities of classes; name these in classLabels"
    return ""


def _distribution_check(settings: Settings, counts: Mapping[str, int]) -> str:
    if (
        settings["distribution"] == "weibull"
        and not 1 <= int(settings["windowLength"]) <= MAX_WALKED
    ):
        return f"weibull looks at each value again; give a windowLength from 1 to {MAX_WALKED}"
    return ""


def _lag_check(settings: Settings, counts: Mapping[str, int]) -> str:
    if int(settings["maxLag"]) >= int(settings["windowLength"]):
        return "maxLag must be less than windowLength"
    return ""


def _segment_check(settings: Settings, counts: Mapping[str, int]) -> str:
    if 0 < int(settings["maxSize"]) < int(settings["minSize"]):
        return "maxSize is less than minSize"
    return ""


_WINDOW: Final = {"windowLength": Parameter(0)}

ALGORITHMS: Final[Mapping[str, Algorithm]] = {
    "Summary": Algorithm(
        {"input": ("number", False)},
        _WINDOW,
        {
            "nOut": "count",
            "nmissOut": "count",
            **_numbers("minOut", "maxOut", "sumOut", "meanOut", "stdOut", "varOut"),
            **_numbers("cssOut", "ussOut", "stderrOut", "cvOut"),
        },
    ),
    "Correlation": Algorithm(
        {"x": ("number", False), "y": ("number", False)}, _WINDOW, _numbers("corOut")
    ),
    "SegmentedCorrelation": Algorithm(
        {"x": ("number", False), "y": ("number", False), "indicator": ("label", False)},
        {"minSize": Parameter(2), "maxSize": Parameter(0)},
        _numbers("corOut"),
        check=_segment_check,
    ),
    "FitStat": Algorithm(
        {"inputs": ("number", True), "response": ("label", False)},
        {**_WINDOW, "classLabels": Parameter(""), "labelLen": Parameter(0)},
        {
            "nOut": "count",
            "nmissOut": "count",
            **_numbers("aseOut", "divOut", "raseOut", "mceOut", "mcllOut"),
        },
        check=_fit_check,
    ),
    "MRR": Algorithm(
        {"input": ("number", False)},
        _WINDOW,
        _numbers("mrrOut", "rangeOut", "meanOut"),
    ),
    "Histogram": Algorithm(
        {"input": ("number", False)},
        {**_WINDOW, "nBins": Parameter(10, 2, 1000), "reportInterval": Parameter(1, 1)},
        {
            "binIdOut": "count",
            "binHeightOut": "count",
            **_numbers("binLowerOut", "binUpperOut", "binCenterOut", "binWidthOut"),
        },
        rows_by="binIdOut",
    ),
    "ROC": Algorithm(
        {"input": ("number", False), "response": ("label", False)},
        {
            **_WINDOW,
            "cutStep": Parameter(0.01, 0.001, 1),
            "event": Parameter("1"),
            "eventLen": Parameter(0),
            "reportInterval": Parameter(1, 1),
        },
        {
            "binIdOut": "count",
            **dict.fromkeys(("tpOut", "fpOut", "fnOut", "tnOut"), "count"),
            **_numbers("cutOffOut", "sensitivityOut", "specificityOut", "ksOut", "ks2Out"),
            **_numbers("fHalfOut", "fprOut", "accOut", "fdrOut", "f1Out", "cOut", "giniOut"),
            **_numbers("gammaOut", "tauOut", "miscEventOut"),
        },
        rows_by="binIdOut",
    ),
    "ChangeDetection": Algorithm(
        {"input": ("number", False)},
        {
            "referenceSize": Parameter(100, 2, MAX_WALKED),
            "windowLength": Parameter(100, 2, MAX_WALKED),
            "nBins": Parameter(10, 2, 1000),
            "threshold": Parameter(0.5, 0, 1e6),
        },
        {"changeDetectedOut": "count", **_numbers("changeValueOut")},
    ),
    "DistributionFitting": Algorithm(
        {"input": ("number", False)},
        {
            **_WINDOW,
            "distribution": Parameter(
                "normal",
                choices=("normal", "lognormal", "exponential", "gamma", "weibull"),
            ),
        },
        {
            "nOut": "count",
            **_numbers("muOut", "sigmaOut", "alphaOut", "betaOut", "logLikelihoodOut"),
        },
        check=_distribution_check,
    ),
    "LagMonitor": Algorithm(
        {"x": ("number", False), "y": ("number", False)},
        {"windowLength": Parameter(100, 1), "maxLag": Parameter(10, 0, 1000)},
        {"lagOut": "count", **_numbers("corOut")},
        check=_lag_check,
    ),
}
"""By the name in the XML."""
