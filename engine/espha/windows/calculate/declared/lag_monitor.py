"""LagMonitor: the lag at which one field follows another."""

from collections.abc import Mapping

from espha.windows.calculate.contract import Algorithm, Parameter, Role, Settings, counts, numbers


def _check(settings: Settings, counts: Mapping[str, int]) -> str:
    if int(settings["maxLag"]) >= int(settings["windowLength"]):
        return "maxLag must be less than windowLength"
    return ""


ALGORITHM = Algorithm(
    name="LagMonitor",
    code="pairs:LagMonitor",
    inputs={"x": Role(), "y": Role()},
    parameters={"windowLength": Parameter(100, 1), "maxLag": Parameter(10, 0, 1000)},
    results={**counts("lagOut"), **numbers("corOut")},
    check=_check,
)
