"""What kinds of values expressions have, and how one kind becomes another.

Kinds are `int`, `double`, `string`, `date` (seconds since 1970), `stamp` (microseconds since
1970), `null` (the literal, which fits everywhere), and for fields that can only be passed on
`blob` and `array(…)`. Truth values are `int` 1 and 0.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from espha.languages.eel.dates import read_date, text_of_date, text_of_stamp
from espha.languages.eel.errors import ExpressionError
from espha.model.events import Value
from espha.model.types import DOUBLES, INTEGERS

Kind = str
Convert = Callable[[Any], Any]

NUMBERS: Final = frozenset({"int", "double", "date", "stamp"})
WHOLE: Final = frozenset({"int", "date", "stamp"})
SCALARS: Final = NUMBERS | {"string", "null"}
LOW, HIGH = INTEGERS["int64"]
LARGEST: Final = 1.7976931348623157e308

_MICROS: Final = 1_000_000
_NUMBER = re.compile(
    r"\s*[+-]?(?:[0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,5})?\s*"
)
_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,400}\s*")


def kind_of(type_: str) -> Kind:
    """Return the kind that the values of a field of this type have."""
    if type_ in {"int32", "int64"}:
        return "int"
    return "double" if type_ in DOUBLES else type_


def same(value: Any) -> Any:
    """Return `value`."""
    return value


def whole(value: int) -> int | None:
    """Return `value`, or null when it has no place in 64 bits."""
    return value if LOW <= value <= HIGH else None


def finite(value: float) -> float | None:
    """Return `value`, or null when it is infinite or not a number."""
    return value if -LARGEST <= value <= LARGEST else None


def _double(value: float | None) -> float | None:
    return None if value is None else float(value)


def _truncated(value: float | None) -> int | None:
    return None if value is None else whole(int(value))


def text_of(value: float | None) -> str | None:
    """Write a number as short as it reads back; a double without a fraction has no point."""
    if value is None:
        return None
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)


def double_from(text: str | None) -> float | None:
    """Read a number; null when the text is none."""
    if text is None or not _NUMBER.fullmatch(text):
        return None
    return finite(float(text))


def integer_from(text: str | None) -> int | None:
    """Read a number and drop its fraction; null when the text is none."""
    if text is not None and _WHOLE.fullmatch(text):
        return whole(int(text))
    return _truncated(double_from(text))


def _stamp_of_date(value: int | None) -> int | None:
    return None if value is None else whole(value * _MICROS)


def _date_of_stamp(value: int | None) -> int | None:
    return None if value is None else value // _MICROS


def _read(text: str | None, ticks: int) -> int | None:
    """Read a date as text, or the whole number that it is kept as."""
    seconds = None if text is None else read_date(text)
    return integer_from(text) if seconds is None else seconds * ticks


_CASTS: Final[dict[tuple[Kind, Kind], Convert]] = {
    ("date", "stamp"): _stamp_of_date,
    ("stamp", "date"): _date_of_stamp,
    ("date", "string"): text_of_date,
    ("stamp", "string"): text_of_stamp,
    ("int", "string"): text_of,
    ("double", "string"): text_of,
    ("string", "double"): double_from,
    ("string", "int"): integer_from,
    ("string", "date"): lambda text: _read(text, 1),
    ("string", "stamp"): lambda text: _read(text, _MICROS),
}


def cast(kind: Kind, wanted: Kind) -> Convert:
    """Return the function that makes a value of the kind `wanted` from one of `kind`; total.

    Raises:
        ExpressionError: there is no such conversion (arrays, blobs).
    """
    if kind in {wanted, "null"}:
        return same
    if kind not in SCALARS or wanted not in SCALARS:
        raise ExpressionError(f"{kind} cannot become {wanted}")
    special = _CASTS.get((kind, wanted))
    if special is not None:
        return special
    if wanted == "double":
        return _double
    return _truncated if kind == "double" else same


def converter(kind: Kind, type_: str) -> Convert:
    """Return the function that makes a field's value from an expression's result.

    A double loses its fraction on the way to a whole number, a string is read as a number, a
    number is written as a string; what does not fit is null.

    Args:
        kind: of the expression.
        type_: ESP type of the field.

    Raises:
        ExpressionError: an array or a blob, and the other side is something else.
    """
    wanted = kind_of(type_)
    try:
        convert = cast(kind, wanted)
    except ExpressionError:
        raise ExpressionError(f"the expression gives {kind}, the field is {type_}") from None
    if type_ != "int32":
        return convert
    low, high = INTEGERS[type_]

    def narrow(value: Any) -> Value:
        number = convert(value)
        return number if number is not None and low <= number <= high else None

    return narrow


def common(kinds: Iterable[Kind]) -> Kind:
    """Return the kind that values of all `kinds` can be cast to.

    Raises:
        ExpressionError: there is none.
    """
    found = sorted({*kinds} - {"null"})
    if len(found) < 2:
        return found[0] if found else "null"
    if not SCALARS.issuperset(found):
        raise ExpressionError(f"{' and '.join(found)} have no common kind")
    for kind in ("string", "double", "stamp", "date"):
        if kind in found:
            return kind
    raise AssertionError(found)
