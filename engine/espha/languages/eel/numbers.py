"""Functions on numbers: total, and null for a result that does not exist."""

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from espha.model.literals import finite, whole

NAN: Final = math.nan
_DIGITS: Final = 30
"""More decimal places than a double can have a use for."""


def divide(left: float, right: float) -> float:
    """Divide; always a double, and NaN (which becomes null) by zero."""
    return left / right if right else NAN


def remainder(left: float, right: float) -> float:
    """Return the remainder with the sign of `left`, as C has it."""
    if not right:
        return NAN
    if isinstance(left, int) and isinstance(right, int):
        rest = abs(left) % abs(right)
        return -rest if left < 0 else rest
    return math.fmod(left, right)


def absolute(value: Any) -> Any:
    """Return the value without its sign."""
    return whole(-value) if isinstance(value, int) and value < 0 else abs(value)


def ceiling(value: float) -> float:
    """Round up."""
    return value if isinstance(value, int) else float(math.ceil(value))


def truncated(value: float) -> float:
    """Drop the fraction."""
    return value if isinstance(value, int) else float(math.trunc(value))


def floor(value: float) -> float:
    """Round down."""
    return value if isinstance(value, int) else float(math.floor(value))


def round_half_away(value: Any, digits: float = 0) -> Any:
    """Round to so many decimal places (fewer than 0: to tens, hundreds); a half goes away from 0.

    With places, the double counts as it is written: 2.675 to two places is 2.68.
    """
    places = int(max(-_DIGITS, min(_DIGITS, digits)))
    if isinstance(value, int):
        return value if places >= 0 else whole(_to_tens(value, 10**-places))
    if places == 0:
        # floor(x + 0.5) is wrong for the largest double below a half.
        cut = math.trunc(value)
        far = abs(value - cut) >= 0.5
        return float(cut + (math.copysign(1, value) if far else 0))
    if abs(value) >= 1e15 and places > 0:
        return value
    step = Decimal(1).scaleb(-places)
    units = (Decimal(repr(value)) / step).to_integral_value(rounding=ROUND_HALF_UP)
    return finite(float(units * step))


def _to_tens(value: int, step: int) -> int:
    units = (abs(value) + step // 2) // step
    return units * step if value >= 0 else -units * step


def power(base: float, exponent: float) -> float | None:
    """Raise to a power."""
    try:
        return finite(math.pow(base, exponent))
    except (ValueError, OverflowError):
        return None


def logarithm(value: float, base: float = math.e) -> float | None:
    """Return the logarithm: natural, or to a base."""
    if value <= 0 or base <= 0 or base == 1:
        return None
    return math.log(value) if base == math.e else finite(math.log(value) / math.log(base))


def total(function: Callable[[float], float]) -> Callable[[float], float | None]:
    """Return `function` with null where it has no value."""

    def apply(value: float) -> float | None:
        try:
            return finite(function(value))
        except (ValueError, OverflowError):
            return None

    return apply


def largest(*values: Any) -> Any:
    """Return the largest value that is not null."""
    return max((value for value in values if value is not None), default=None)


def smallest(*values: Any) -> Any:
    """Return the smallest value that is not null."""
    return min((value for value in values if value is not None), default=None)


def sign(value: float) -> int:
    """Return -1, 0 or 1."""
    return (value > 0) - (value < 0)
