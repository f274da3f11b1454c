"""The types of values that expressions have, and how one becomes another.

Types are `int`, `double`, `string`, `date` (seconds since 1970), `stamp` (microseconds since
1970), `null` (the literal, which fits everywhere), `array(…)`, and for fields that can only be
passed on `blob`. Truth values are `int` 1 and 0.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from espha.languages.eel.dates import read_date, text_of_date, text_of_stamp
from espha.languages.eel.errors import ExpressionError
from espha.model import literals
from espha.model.events import Value
from espha.model.literals import MICROS, finite, number_text, whole
from espha.model.types import DOUBLES, INTEGERS

ValueType = str
Convert = Callable[[Any], Any]

NUMBERS: Final = frozenset({"int", "double", "date", "stamp"})
WHOLE: Final = frozenset({"int", "date", "stamp"})
SCALARS: Final = NUMBERS | {"string", "null"}
ELEMENTS: Final[dict[ValueType, ValueType]] = {
    "array(i32)": "int",
    "array(i64)": "int",
    "array(dbl)": "double",
    "array(string)": "string",
    "array(date)": "date",
}
"""The types of arrays, and those of their elements; fields can have the first three."""

_ARRAYS_OF: Final = {element: array for array, element in ELEMENTS.items()}
_TRUE: Final = frozenset({"true", "yes", "t", "y", "on"})


def type_of(field_type: str) -> ValueType:
    """Return the type that the values of a field of this type have."""
    if field_type in {"int32", "int64"}:
        return "int"
    return "double" if field_type in DOUBLES else field_type


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


def is_true(value: Any) -> int | None:
    """Return a value as a condition: a text is true as a number, or by a word such as `true`."""
    if not isinstance(value, str):
        return value if value is None else int(bool(value))
    number = double_from(value)
    return int(value.strip().lower() in _TRUE if number is None else bool(number))


def number_from(text: str | None) -> float | None:
    """Read a number without a loss: one that is whole stays so."""
    value = None if text is None else literals.whole_from(text.strip())
    return double_from(text) if value is None else value


_CASTS: Final[dict[tuple[ValueType, ValueType], Convert]] = {
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


def cast(type_: ValueType, wanted: ValueType) -> Convert:
    """Return the function that makes a value of the type `wanted` from one of `type_`; total.

    Raises:
        ExpressionError: there is no such conversion (arrays, blobs).
    """
    if type_ in {wanted, "null"}:
        return same
    if type_ in ELEMENTS and wanted in ELEMENTS:
        return _elements(cast(ELEMENTS[type_], ELEMENTS[wanted]), narrow=wanted == "array(i32)")
    if type_ not in SCALARS or wanted not in SCALARS:
        raise ExpressionError(f"{type_} cannot become {wanted}")
    special = _CASTS.get((type_, wanted))
    if special is not None:
        return special
    if wanted == "double":
        return _double
    return _truncated if type_ == "double" else same


def _elements(convert: Convert, *, narrow: bool) -> Convert:
    low, high = INTEGERS["int32"]

    def element(value: Any) -> Any:
        made = convert(value)
        return None if narrow and made is not None and not low <= made <= high else made

    return lambda array: None if array is None else tuple([element(each) for each in array])


def converter(type_: ValueType, field_type: str) -> Convert:
    """Return the function that makes a field's value from an expression's result.

    A double loses its fraction on the way to a whole number, a string is read as a number, a
    number is written as a string; what does not fit is null.

    Args:
        type_: of the expression.
        field_type: ESP type of the field.

    Raises:
        ExpressionError: an array or a blob, and the other side is something else.
    """
    wanted = type_of(field_type)
    try:
        convert = cast(type_, wanted)
    except ExpressionError:
        raise ExpressionError(f"the expression gives {type_}, the field is {field_type}") from None
    if field_type != "int32":
        return convert
    low, high = INTEGERS[field_type]

    def narrow(value: Any) -> Value:
        number = convert(value)
        return number if number is not None and low <= number <= high else None

    return narrow


def common(types: Iterable[ValueType]) -> ValueType:
    """Return the type that values of all `types` can be cast to.

    Raises:
        ExpressionError: there is none.
    """
    found = sorted({*types} - {"null"})
    if len(found) < 2:
        return found[0] if found else "null"
    if ELEMENTS.keys() >= set(found):
        elements = common(ELEMENTS[each] for each in found)
        return _ARRAYS_OF[elements]
    if not SCALARS.issuperset(found):
        raise ExpressionError(f"{' and '.join(found)} have no common type")
    for type_ in ("string", "double", "stamp", "date"):
        if type_ in found:
            return type_
    raise AssertionError(found)
