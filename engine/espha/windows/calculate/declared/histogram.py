"""Histogram: how values are distributed."""

from espha.windows.calculate.contract import Algorithm, Parameter, Role, counts, numbers

ALGORITHM = Algorithm(
    name="Histogram",
    code="bins:Histogram",
    inputs={"input": Role()},
    parameters={
        "windowLength": Parameter(0),
        "nBins": Parameter(10, 2, 1000),
        "reportInterval": Parameter(1, 1),
    },
    results={
        **counts("binIdOut", "binHeightOut"),
        **numbers("binLowerOut", "binUpperOut", "binCenterOut", "binWidthOut"),
    },
    rows_by="binIdOut",
)
