"""Correlation: Pearson's coefficient of two fields."""

from espha.windows.calculate.contract import Algorithm, Parameter, Result, Role

ALGORITHM = Algorithm(
    name="Correlation",
    code="correlation:Correlation",
    inputs={"x": Role(note="a field"), "y": Role(note="another field")},
    parameters={"windowLength": Parameter(0, note="how many of the last events count; 0: all")},
    results={"corOut": Result(note="the coefficient")},
)
