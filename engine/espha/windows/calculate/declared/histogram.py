"""Histogram: centers and heights of bins that follow a stream, and quantiles."""

from collections.abc import Mapping

from espha.windows.calculate.contract import Algorithm, Parameter, Result, Role, Settings


def _check(settings: Settings, counts: Mapping[str, int]) -> str:
    parts = [part for part in str(settings["quantileList"]).split(",") if part.strip()]
    try:
        good = all(0 <= float(part) <= 1 for part in parts)
    except ValueError:
        good = False
    return "" if good else "quantileList is a list of numbers from 0 to 1, such as 0.25,0.5,0.75"


ALGORITHM = Algorithm(
    name="Histogram",
    code="histogram:Histogram",
    inputs={"input": Role(note="the field")},
    parameters={
        "nBins": Parameter(10, 2, 1000, note="most bins"),
        "alpha": Parameter(1.0, 0, 1, note="what an event leaves of the heights before it"),
        "halfLifeSteps": Parameter(0, note="after how many events half is left; 0: alpha counts"),
        "quantileList": Parameter("", note="quantiles wanted, such as `0.25,0.5,0.75`"),
        "reportInterval": Parameter(1, 1, note="a row leaves each so many events"),
    },
    results={
        "binCentersOut": Result(many=True, note="centers of the bins, from the least"),
        "binHeightsOut": Result(many=True, note="their heights"),
        "quantilesOut": Result(many=True, note="the quantiles wanted"),
    },
    check=_check,
)
