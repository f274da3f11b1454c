"""MRR: moving relative range."""

from espha.windows.calculate.contract import Algorithm, Parameter, Role, numbers

ALGORITHM = Algorithm(
    name="MRR",
    code="change:Mrr",
    inputs={"input": Role()},
    parameters={"windowLength": Parameter(0)},
    results=numbers("mrrOut", "rangeOut", "meanOut"),
)
