"""Arithmetic. Whole numbers stay whole; a result without a place in 64 bits is null."""

import math
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final

from espha.languages.functional.catalog import Function
from espha.languages.functional.frame import Frame
from espha.languages.functional.values import compare, double, integer, number, settled

Number = int | float
MAX_PRECISION = 15
_DIGITS = Context(prec=60)


def _over(fold: Callable[[list[Number]], Number | None]) -> Function:
    """Return a function of the arguments that are numbers; null when there are none."""

    def run(*values: Any) -> Number | None:
        found = [value for value in values if value is not None]
        result = fold(found) if found else None
        return None if result is None else settled(result)

    return Function("n*", run, nulls=True)


def _product(values: list[Number]) -> Number:
    result: Number = 1
    for value in values:
        # A whole number beyond a double's range cannot be multiplied with a double.
        result = result * value if abs(result) < 2**1000 else math.inf
    return result


def _mean(values: list[Number]) -> float:
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        return math.inf


def _difference(first: Number, *others: Number) -> Number | None:
    result = first
    for value in others:
        result -= value
    return settled(result)


def _quotient(first: Number, *others: Number) -> float | None:
    result = float(first)
    for value in others:
        if not value:
            return None
        result /= value
    return settled(result)


def _mod(left: Number, right: Number) -> Number | None:
    if not right:
        return None
    if isinstance(left, int) and isinstance(right, int):
        rest = abs(left) % abs(right)
        return -rest if left < 0 else rest
    return math.fmod(left, right)


def _round(value: Number, digits: int = 0) -> Number | None:
    """Round to so many decimals; a half goes away from zero."""
    if isinstance(value, int) or not 0 <= digits <= MAX_PRECISION:
        return value
    if abs(value) >= 2.0**53:
        return value
    unit = Decimal(1).scaleb(-digits)
    rounded = Decimal(repr(value)).quantize(unit, ROUND_HALF_UP, _DIGITS)
    return float(rounded) if digits else int(rounded)


def _whole(cut: Callable[[Number], int]) -> Function:
    return Function("n", lambda value: settled(cut(value)))


def _total(compute: Callable[..., float], takes: str = "n") -> Function:
    """Return a function with null where `compute` has no result."""

    def run(*values: Number) -> Number | None:
        try:
            return settled(compute(*values))
        except (ValueError, OverflowError):
            return None

    return Function(takes, run)


def _interval(value: Any, *parts: Any) -> Any:
    """Return the result behind the first limit that lies above `value`, or the last part."""
    if value is None:
        return None
    for limit, result in zip(parts[::2], parts[1::2], strict=False):
        if limit is not None and compare(value, limit) < 0:
            return result
    return parts[-1] if len(parts) % 2 else None


def _random(frame: Frame, low: Number = 0.0, high: Number = 1.0) -> Number | None:
    """Draw: of two whole limits a whole number, both included, else a double below `high`."""
    if isinstance(low, int) and isinstance(high, int):
        span = high - low + 1
        drawn = int.from_bytes(frame.digest()[:16], "big")
        return low + drawn % span if span > 0 else None
    return settled(low + (high - low) * frame.fraction())


_POWER = _total(math.pow, "nn")
_CEILING = _whole(math.ceil)
_DIFFERENCE = Function("nn*", _difference)

FUNCTIONS: Final[Mapping[str, Function]] = {
    "sum": _over(sum),
    "product": _over(_product),
    "mean": _over(_mean),
    "max": _over(max),
    "min": _over(min),
    "diff": _DIFFERENCE,
    "difference": _DIFFERENCE,
    "quotient": Function("nn*", _quotient),
    "mod": Function("nn", _mod),
    "abs": Function("n", lambda value: settled(abs(value))),
    "neg": Function("n", lambda value: settled(-value)),
    "increment": Function("n", lambda value: settled(value + 1)),
    "decrement": Function("n", lambda value: settled(value - 1)),
    "sqrt": _total(math.sqrt),
    "exp": _total(math.exp),
    "log": _total(math.log),
    "log10": _total(math.log10),
    "pow": _POWER,
    "power": _POWER,
    "ceiling": _CEILING,
    "ceil": _CEILING,
    "floor": _whole(math.floor),
    "round": Function("n?i", _round),
    "precision": Function("ni", _round),
    "integer": Function("a", integer),
    "int": Function("a", integer),
    "long": Function("a", integer),
    "double": Function("a", double),
    "number": Function("a", number),
    "isNumber": Function("a", lambda value: int(number(value) is not None), nulls=True),
    "interval": Function("aaa?a*", _interval, nulls=True),
    "random": Function("?nn", _random, framed=True),
}
