"""Correlation: Pearson's coefficient of two fields."""

from espha.windows.calculate.contract import Algorithm, Parameter, Role, numbers

ALGORITHM = Algorithm(
    name="Correlation",
    code="pairs:Correlation",
    inputs={"x": Role(), "y": Role()},
    parameters={"windowLength": Parameter(0)},
    results=numbers("corOut"),
)
