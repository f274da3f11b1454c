"""SegmentedCorrelation: how alike neighbouring segments of a field are."""

from collections.abc import Mapping

from espha.windows.calculate.contract import Algorithm, Parameter, Role, Settings, numbers


def _check(settings: Settings, counts: Mapping[str, int]) -> str:
    if 0 < int(settings["maxSize"]) < int(settings["minSize"]):
        return "maxSize is less than minSize"
    return ""


ALGORITHM = Algorithm(
    name="SegmentedCorrelation",
    code="pairs:SegmentedCorrelation",
    inputs={"x": Role(), "y": Role(), "indicator": Role("any")},
    parameters={"minSize": Parameter(2), "maxSize": Parameter(0)},
    results=numbers("corOut"),
    check=_check,
)
