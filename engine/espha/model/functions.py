"""What expressions compute with: total functions on values, null in, null out."""

import math
from collections.abc import Callable
from typing import Any, Final

from espha.model.types import INTEGERS

LOW, HIGH = INTEGERS["int64"]


def same(value: Any) -> Any:
    """Return `value`."""
    return value


def whole(value: int) -> int | None:
    """Return `value`, or null when it has no place in 64 bits."""
    return value if LOW <= value <= HIGH else None


def finite(value: float) -> float | None:
    """Return `value`, or null when it is infinite or not a number."""
    return value if math.isfinite(value) else None


def to_integer(low: int, high: int) -> Callable[[Any], int | None]:
    """Return the function that cuts a number to a whole one between `low` and `high`."""

    def cut(value: float | None) -> int | None:
        if value is None:
            return None
        number = int(value)
        return number if low <= number <= high else None

    return cut


def to_double(value: float | None) -> float | None:
    """Return the number as a double."""
    return None if value is None else float(value)


def divide(left: float, right: float) -> float | None:
    """Divide; always a double."""
    return finite(left / right) if right else None


def remainder(left: float, right: float) -> float | None:
    """Return the remainder with the sign of `left`, as C has it."""
    if not right:
        return None
    if isinstance(left, int) and isinstance(right, int):
        rest = abs(left) % abs(right)
        return -rest if left < 0 else rest
    return math.fmod(left, right)


def round_half_away(value: float) -> float:
    """Round to a whole number; a half goes away from zero."""
    if isinstance(value, int):
        return value
    # floor(x + 0.5) is wrong for the largest double below a half.
    whole_part = math.trunc(value)
    far = abs(value - whole_part) >= 0.5
    return float(whole_part + (math.copysign(1, value) if far else 0))


ARITHMETIC: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": divide,
    "%": remainder,
}

COMPARISONS: Final[dict[str, Callable[[Any, Any], int]]] = {
    "==": lambda left, right: int(left == right),
    "!=": lambda left, right: int(left != right),
    "<": lambda left, right: int(left < right),
    "<=": lambda left, right: int(left <= right),
    ">": lambda left, right: int(left > right),
    ">=": lambda left, right: int(left >= right),
}

# name: takes what ("number", "string"), gives what ("same" as its argument), the function
FUNCTIONS: Final[dict[str, tuple[str, str, Callable[[Any], Any]]]] = {
    "abs": ("number", "same", abs),
    "ceil": ("number", "same", lambda value: type(value)(math.ceil(value))),
    "floor": ("number", "same", lambda value: type(value)(math.floor(value))),
    "round": ("number", "same", round_half_away),
    "upper": ("string", "same", str.upper),
    "lower": ("string", "same", str.lower),
    "trim": ("string", "same", str.strip),
    "length": ("string", "int", len),
}
