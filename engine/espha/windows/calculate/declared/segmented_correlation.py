"""SegmentedCorrelation: how alike neighbouring segments of a field are."""

from collections.abc import Mapping

from espha.windows.calculate.contract import Algorithm, Parameter, Result, Role, Settings


def _check(settings: Settings, counts: Mapping[str, int]) -> str:
    if 0 < int(settings["maxSize"]) < int(settings["minSize"]):
        return "maxSize is less than minSize"
    if not settings["sampleSize"] and not counts["indicator"]:
        return "give a sampleSize, or an indicator that is 1 where a segment begins"
    return ""


ALGORITHM = Algorithm(
    name="SegmentedCorrelation",
    code="segmented_correlation:SegmentedCorrelation",
    inputs={
        "x": Role(note="the field"),
        "indicator": Role("any", needed=False, note="is 1 where a segment begins"),
    },
    parameters={
        "sampleSize": Parameter(0, note="length of a part of a segment; 0: the whole segment"),
        "minSize": Parameter(0, note="fewest pairs of values that are compared"),
        "maxSize": Parameter(0, note="most pairs that are compared; 0: all"),
    },
    results={"corOut": Result(note="the coefficient of the part that ends")},
    check=_check,
)
