"""ChangeDetection: whether values are distributed otherwise than before."""

from espha.windows.calculate.contract import (
    MAX_WALKED,
    Algorithm,
    Parameter,
    Role,
    counts,
    numbers,
)

ALGORITHM = Algorithm(
    name="ChangeDetection",
    code="change:ChangeDetection",
    inputs={"input": Role()},
    parameters={
        "referenceSize": Parameter(100, 2, MAX_WALKED),
        "windowLength": Parameter(100, 2, MAX_WALKED),
        "nBins": Parameter(10, 2, 1000),
        "threshold": Parameter(0.5, 0, 1e6),
    },
    results={**counts("changeDetectedOut"), **numbers("changeValueOut")},
)
