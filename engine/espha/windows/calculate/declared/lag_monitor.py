"""LagMonitor: at which lags fields and a target are most alike."""

from collections.abc import Mapping

from espha.windows.calculate.contract import (
    MAX_WALKED,
    MAX_WINDOW,
    Algorithm,
    Parameter,
    Result,
    Role,
    Settings,
)


def _check(settings: Settings, counts: Mapping[str, int]) -> str:
    window, lags = int(settings["windowLength"]), (int(settings["minLag"]), int(settings["maxLag"]))
    if lags[0] > lags[1]:
        return "minLag is greater than maxLag"
    if max(abs(lag) for lag in lags) >= window:
        return "maxLag must be less than windowLength"
    if int(settings["overlap"]) >= window:
        return "overlap must be less than windowLength"
    return ""


ALGORITHM = Algorithm(
    name="LagMonitor",
    code="lag_monitor:LagMonitor",
    inputs={
        "input": Role(many=True, note="the fields"),
        "target": Role(note="the field that they are compared with"),
        "timeId": Role("any", needed=False, note="the time of an event"),
    },
    parameters={
        "windowLength": Parameter(
            100, 2, MAX_WINDOW // 10, note="how many events are looked at together"
        ),
        "overlap": Parameter(0, note="how many of them the next window begins with"),
        "minLag": Parameter(0, -MAX_WALKED, MAX_WALKED, note="smallest lag"),
        "maxLag": Parameter(10, -MAX_WALKED, MAX_WALKED, note="greatest lag"),
    },
    results={
        "absCCFOut": Result(many=True, note="greatest size of a cross-correlation"),
        "absLagOut": Result("count", many=True, note="its lag"),
        "maxCCFOut": Result(many=True, note="greatest cross-correlation"),
        "maxLagOut": Result("count", many=True, note="its lag"),
        "minCCFOut": Result(many=True, note="least cross-correlation"),
        "minLagOut": Result("count", many=True, note="its lag"),
        "numComputedLagsOut": Result("count", many=True, note="how many lags were looked at"),
        "timeIdOut": Result("any", repeats="timeId", note="the time of the newest event"),
    },
    check=_check,
)
