"""DistributionFitting: the parameters of a distribution for which values are the most likely."""

from collections.abc import Mapping

from espha.windows.calculate.contract import (
    MAX_WALKED,
    Algorithm,
    Parameter,
    Result,
    Role,
    Settings,
)


def _check(settings: Settings, counts: Mapping[str, int]) -> str:
    length = int(settings["windowLength"])
    if settings["distribution"] == "Weibull" and not 2 <= length <= MAX_WALKED:
        return f"Weibull looks at each value again; give a windowLength from 2 to {MAX_WALKED}"
    if length and int(settings["overlap"]) >= length:
        return "overlap must be less than windowLength"
    return ""


ALGORITHM = Algorithm(
    name="DistributionFitting",
    code="distribution_fitting:DistributionFitting",
    inputs={"x": Role(note="the field")},
    parameters={
        "windowLength": Parameter(0, note="events that are fitted together; 0: all so far"),
        "overlap": Parameter(0, note="how many of them the next window begins with"),
        "maxIter": Parameter(50, 1, note="most steps of the search"),
        "distribution": Parameter(
            "Weibull",
            choices=("Weibull", "Gamma", "Normal", "Lognormal", "Exponential"),
            note="what is fitted",
        ),
    },
    results={
        "nOut": Result("count", note="values"),
        "alphaOut": Result(note="Weibull: scale; Gamma: shape; Exponential: mean"),
        "betaOut": Result(note="Weibull: shape; Gamma: scale"),
        "muOut": Result(note="Weibull: where it begins; Normal, Lognormal: mean"),
        "sigmaOut": Result(note="Normal, Lognormal: deviation"),
        "logLikelihoodOut": Result(note="log likelihood"),
        "convergeOut": Result("count", note="1 where the most likely parameters were found"),
    },
    check=_check,
)
