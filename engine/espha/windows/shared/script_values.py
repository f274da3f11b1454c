"""Values of fields, made of what scripts say."""

import math
from collections.abc import Callable
from typing import Any

from espha.model.events import BadRecord, Value
from espha.model.types import ARRAYS, INTEGERS, checker, parser

Take = Callable[[Any], Value]
"""What makes a field's value of what a script says."""


def converted(name: str, take: Take, value: Any) -> Value:
    """Return the value of a field.

    Raises:
        BadRecord: what the script says does not fit.
    """
    try:
        return take(value)
    except ValueError as error:
        raise BadRecord(f"field {name}: {error}") from None


def taker(type_: str, *, encoded: bool = False) -> Take:
    """Return the function that makes a field's value of what a script says.

    Numbers lose their fraction on the way to a whole number and become texts as they are, texts
    are read as numbers, true and false are 1 and 0; the text for a blob is base64 where blobs are
    `encoded`. The function raises ValueError, with a sentence, for what does not fit.
    """
    check = checker(type_)
    if type_ in ARRAYS:
        element = taker(ARRAYS[type_])
        return lambda value: check(_elements(value, element))
    if type_ == "blob":
        read = parser(type_) if encoded else str.encode
        return lambda value: read(value) if isinstance(value, str) else check(value)
    if type_ == "string":
        return lambda value: check(value if type(value) is str else _text(value))
    parse = parser(type_)
    whole = type_ in INTEGERS
    fits = int if whole else float

    def take(value: Any) -> Value:
        if type(value) is fits or value is None:
            return check(value)
        if isinstance(value, bool):
            value = int(value)
        elif isinstance(value, bytes | str):
            return parse(_text(value) or "")
        elif whole and isinstance(value, float):
            value = None if math.isnan(value) else _whole(value)
        return check(value)

    return take


def _elements(value: Any, element: Take) -> Any:
    return tuple([element(part) for part in value]) if isinstance(value, tuple | list) else value


def _whole(value: float) -> int:
    if math.isinf(value):
        raise ValueError("an infinite number")
    return int(value)


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise ValueError("bytes that are not UTF-8 text") from None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return f"{value:.14g}" if isinstance(value, float) else str(value)
    raise ValueError("a list is not a text")
