"""What functions give, as values of the fields of a schema."""

from collections.abc import Callable
from typing import Any, Final

from espha.languages.functional.documents import read_json
from espha.languages.functional.values import double, integer, seconds_of, text
from espha.model.events import Value
from espha.model.types import ARRAYS, DOUBLES, INTEGERS, parser

_TICKS: Final = {"date": 1, "stamp": 1_000_000}


def field_maker(type_: str) -> Callable[[Any], Value]:
    """Return the function that makes a value of this type; null when it cannot be one.

    A number loses what the type has no room for (its fraction); beyond the range of the type it
    is null. A text becomes a number, a time (ISO 8601) or an array (`[a;b]`, `[a,b]`) if it is
    written like one.
    """
    if type_ in DOUBLES:
        return double
    if type_ == "string":
        return text
    if type_ == "blob":
        return _blob
    if type_ in ARRAYS:
        return _array_maker(ARRAYS[type_], type_)
    return _integer_maker(type_)


def _integer_maker(type_: str) -> Callable[[Any], Value]:
    low, high = INTEGERS[type_]
    ticks = _TICKS.get(type_)

    def make(value: Any) -> Value:
        found = integer(value)
        if found is None and ticks and isinstance(value, str):
            moment = seconds_of(value)
            if moment:
                found = moment[0] * ticks + moment[1] * ticks // 1_000_000
        return found if found is not None and low <= found <= high else None

    return make


def _blob(value: Any) -> Value:
    if value is None or isinstance(value, bytes):
        return value
    found = text(value)
    return None if found is None else found.encode()


def _array_maker(element: str, type_: str) -> Callable[[Any], Value]:
    make, read = field_maker(element), parser(type_)

    def array(value: Any) -> Value:
        if isinstance(value, str):
            try:
                return read(value)
            except ValueError:
                value = read_json(value)
        if not isinstance(value, tuple | list):
            return None
        parts: tuple[Any, ...] = tuple([make(part) for part in value])
        return parts

    return array
