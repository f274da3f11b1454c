"""DistributionFitting: the parameters of a distribution that fits best."""

from collections.abc import Mapping

from espha.windows.calculate.contract import (
    MAX_WALKED,
    Algorithm,
    Parameter,
    Role,
    Settings,
    counts,
    numbers,
)


def _check(settings: Settings, counts: Mapping[str, int]) -> str:
    if (
        settings["distribution"] == "weibull"
        and not 1 <= int(settings["windowLength"]) <= MAX_WALKED
    ):
        return f"weibull looks at each value again; give a windowLength from 1 to {MAX_WALKED}"
    return ""


ALGORITHM = Algorithm(
    name="DistributionFitting",
    code="fit:DistributionFitting",
    inputs={"input": Role()},
    parameters={
        "windowLength": Parameter(0),
        "distribution": Parameter(
            "normal",
            choices=("normal", "lognormal", "exponential", "gamma", "weibull"),
        ),
    },
    results={
        **counts("nOut"),
        **numbers("muOut", "sigmaOut", "alphaOut", "betaOut", "logLikelihoodOut"),
    },
    check=_check,
)
