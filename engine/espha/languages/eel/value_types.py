"""What kinds of values expressions have, and how one kind becomes another.

Kinds are `int`, `double`, `string`, `date` (seconds since 1970), `stamp` (microseconds since
1970), `null` (the literal, which fits everywhere), and for fields that can only be passed on
`blob` and `array(…)`. Truth values are `int` 1 and 0.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from espha.languages.eel.dates import read_date, text_of_date, text_of_stamp
from espha.languages.eel.errors import ExpressionError
from espha.model import literals
from espha.model.events import Value
from espha.model.literals import MICROS, finite, number_text, whole
from espha.model.types import DOUBLES, INTEGERS

Kind = str
Convert = Callable[[Any], Any]

NUMBERS: Final = frozenset({"int", "double", "date", "stamp"})
WHOLE: Final = frozenset({"int", "date", "stamp"})
SCALARS: Final = NUMBERS | {"string", "null"}


def kind_of(type_: str) -> Kind:
    """Return the kind that the values of a field of this type have."""
    if type_ in {"int32", "int64"}:
        return "int"
    return "double" if type_ in DOUBLES else type_


def same(value: Any) -> Any:
    """Return `value`."""
    return value


def _double(value: float | None) -> float | None:
    return None if value is None else float(value)


def _truncated(value: float | None) -> int | None:
    return None if value is None else whole(int(value))


def text_of(value: float | None) -> str | None:
    """Write a number as short as it reads back; a double without a fraction has no point."""
    return None if value is None else number_text(value)


def double_from(text: str | None) -> float | None:
    """Read a number; null when the text is none."""
    value = None if text is None else literals.double_from(text.strip())
    return None if value is None else finite(value)


def integer_from(text: str | None) -> int | None:
    """Read a number and drop its fraction; null when the text is none."""
    value = None if text is None else literals.whole_from(text.strip())
    return _truncated(double_from(text)) if value is None else whole(value)


def _stamp_of_date(value: int | None) -> int | None:
    return None if value is None else whole(value * MICROS)


def _date_of_stamp(value: int | None) -> int | None:
    return None if value is None else value // MICROS


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
    ("string", "stamp"): lambda text: _read(text, MICROS),
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
