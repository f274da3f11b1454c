"""Values on their way into a field: a double into a whole number, a number into a text."""

import math
from collections.abc import Callable
from typing import Any, Final

from espha.model.events import Value
from espha.model.literals import number_text
from espha.model.types import ARRAYS, DOUBLES, INTEGERS

Convert = Callable[[Any], Any]

_INFINITE: Final = math.inf


def converter(type_: str) -> Convert:
    """Return the function that makes a value of a field of this type; null is what has none.

    A number loses its fraction on its way into a whole number, as in a cast of C; an infinite
    result is one that does not exist. The elements of an array are converted each.
    """
    if type_ in INTEGERS:
        return _whole(*INTEGERS[type_])
    if type_ in DOUBLES:
        return _double
    if type_ in ARRAYS:
        return _array(converter(ARRAYS[type_]))
    return _text if type_ == "string" else _blob


def converts(found: str, wanted: str) -> bool:
    """Say whether values of one type go into fields of another."""
    numbers = {*INTEGERS, *DOUBLES}
    if found == wanted or (wanted == "string" and found in numbers):
        return True
    return {found, wanted} <= numbers or {found, wanted} <= set(ARRAYS)


def _whole(low: int, high: int) -> Convert:
    def convert(value: Any) -> Value:
        if value is None or isinstance(value, str) or not -_INFINITE < value < _INFINITE:
            return None
        number = int(value)
        return number if low <= number <= high else None

    return convert


def _double(value: Any) -> Value:
    if value is None or isinstance(value, str) or not -_INFINITE < value < _INFINITE:
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _array(element: Convert) -> Convert:
    def convert(value: Any) -> Value:
        return None if value is None else tuple([element(part) for part in value])

    return convert


def _text(value: Any) -> Value:
    if value is None or isinstance(value, str):
        return value
    return number_text(value) if -_INFINITE < value < _INFINITE else None


def _blob(value: Any) -> Value:
    return value if isinstance(value, bytes) else None
