"""Summary: statistics of one field."""

from espha.windows.calculate.contract import Algorithm, Parameter, Role, counts, numbers

ALGORITHM = Algorithm(
    name="Summary",
    code="summary:Summary",
    inputs={"input": Role()},
    parameters={"windowLength": Parameter(0)},
    results={
        **counts("nOut", "nmissOut"),
        **numbers("minOut", "maxOut", "sumOut", "meanOut", "stdOut", "varOut"),
        **numbers("cssOut", "ussOut", "stderrOut", "cvOut"),
    },
)
