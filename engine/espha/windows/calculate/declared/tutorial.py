"""Tutorial: the algorithm that the documentation of SAS ESP explains algorithms with."""

from espha.windows.calculate.contract import Algorithm, Parameter, Result, Role

ALGORITHM = Algorithm(
    name="Tutorial",
    code="tutorial:Tutorial",
    inputs={"input": Role(note="the field")},
    parameters={
        "normalMin": Parameter(0.0, -1e300, 1e300, note="least value that is normal"),
        "normalMax": Parameter(1.0, -1e300, 1e300, note="greatest value that is normal"),
    },
    results={
        "minOut": Result(note="least value so far"),
        "maxOut": Result(note="greatest value so far"),
        "alertOut": Result("count", note="1 where a value is not normal"),
    },
)
