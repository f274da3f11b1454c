"""SST: subspace tracking."""

from collections.abc import Mapping

from espha.windows.calculate.contract import Algorithm, Parameter, Result, Role, Settings

MAX_INPUTS = 200


def _check(settings: Settings, counts: Mapping[str, int]) -> str:
    if counts["inputs"] > MAX_INPUTS:
        return f"{counts['inputs']} inputs; SST takes at most {MAX_INPUTS}"
    return ""


ALGORITHM = Algorithm(
    name="SST",
    code="subspace:SubspaceTracking",
    inputs={"inputs": Role(many=True, note="the vector")},
    parameters={
        "maxPrincipal": Parameter(1, 1, MAX_INPUTS, note="most eigenvectors"),
        "meanForgetFactor": Parameter(1.0, 0, 1, note="what an older vector counts in the mean"),
        "covForgetFactor": Parameter(1.0, 0, 1, note="what it counts in the covariance"),
        "eigvalTolCumulative": Parameter(1.0, 0, 1, note="share of the variance that is enough"),
    },
    results={
        "projAngleOut": Result(note="angle to the subspace, 0 … π/2"),
        "residualOut": Result(note="its sine: the share outside"),
        "numRankOut": Result("count", note="dimension of the subspace"),
        "principalVecOut": Result(many=True, note="the eigenvectors, one after the other"),
    },
    check=_check,
    aliases=("SubspaceTracking",),
)
