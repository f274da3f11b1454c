"""ESP field types and their Python values.

int32, int64, date (seconds since 1970) and stamp (microseconds since 1970) are `int`, double and
money are `float`, string is `str`, blob is `bytes`, an array is a tuple of numbers, null is
`None`. NaN is the missing value, so it becomes null; an infinite number is refused. No NaN and no
infinity is ever in a model.
"""

import binascii
import math
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from espha.model.dates import date_reader, iso_date, plain, written
from espha.model.events import Value
from espha.model.literals import (
    INT32,
    INT64,
    MICROSECOND,
    MISSING,
    SECOND,
    double_from,
    moment_at,
    ticks_since_epoch,
    whole_from,
)

TypeName = Literal[
    "int32",
    "int64",
    "double",
    "string",
    "date",
    "stamp",
    "money",
    "blob",
    "array(i32)",
    "array(i64)",
    "array(dbl)",
]

INTEGERS: Final = {"int32": INT32, "int64": INT64, "date": INT64, "stamp": INT64}
"""Smallest and largest value of the types that are whole numbers."""

DOUBLES: Final = frozenset({"double", "money"})
ARRAYS: Final = {"array(i32)": "int32", "array(i64)": "int64", "array(dbl)": "double"}
"""The array types, and the type of their elements."""

TYPES: Final = frozenset({*INTEGERS, *DOUBLES, *ARRAYS, "string", "blob"})

_TICKS: Final = {"date": SECOND, "stamp": MICROSECOND}
_TRUTH: Final = {"true": 1, "false": 0}

Parser = Callable[[str], Value]
Formatter = Callable[[Any], str]


def parse_text(type_: str, text: str, date_format: str | None = None) -> Value:
    """Read one value from text, as written in a CSV file; see `parser`.

    Raises:
        ValueError: the text is not of this type; the message says so in a sentence.
    """
    return parser(type_, date_format)(text)


def parser(type_: str, date_format: str | None = None) -> Parser:
    """Return the function that reads values of one type from the text of a CSV file.

    Empty text is null, blanks around anything but a string do not count. A blob is base64, an
    array `[a;b;c]`.

    Args:
        type_: name of the ESP type.
        date_format: how `date` and `stamp` are written (strptime, UTC unless it has a zone), if
            not as a number of seconds or microseconds; None: `%Y-%m-%d %H:%M:%S`, or ISO 8601.

    The function raises ValueError, with a sentence, for text that is not of the type.
    """
    if type_ == "string":
        return _parse_string
    read = _reader(type_, date_format)

    def parse(text: str) -> Value:
        text = text.strip()
        return read(text) if text else None

    return parse


def _parse_string(text: str) -> Value:
    return text or None


def _reader(type_: str, date_format: str | None) -> Parser:
    if type_ in DOUBLES:
        return lambda text: _parse_double(type_, text)
    if type_ in ARRAYS:
        return _array_parser(type_)
    if type_ == "blob":
        return _parse_blob
    if type_ not in _TICKS:
        return _integer_parser(type_)
    check = checker(type_)
    digits_only = date_format is not None and only_digits(date_format)

    read_date = date_reader(date_format) if date_format else iso_date

    def read(text: str) -> Value:
        number = None if digits_only else _truncated(text)
        return _parse_time(type_, text, read_date, date_format) if number is None else check(number)

    return read


def _truncated(text: str) -> int | None:
    """Return the number of a text without its fraction; None for what is no number."""
    number = whole_from(text)
    if number is not None:
        return number
    double = double_from(text)
    return None if double is None or not math.isfinite(double) else int(double)


def only_digits(date_format: str) -> bool:
    """Say whether dates look like numbers in this format, such as `%Y%m%d`: they are none then."""
    return not re.sub("%[YmdHMSjf]", "", plain(date_format))


def _integer_parser(type_: str) -> Parser:
    check = checker(type_)

    def parse(text: str) -> Value:
        number = whole_from(text)
        if number is None:
            number = _whole_double(text)
        if number is None:
            raise ValueError(f"{_shown(text)} is not a whole number ({type_})")
        return check(number)

    return parse


def _whole_double(text: str) -> int | None:
    """Return the whole number that is written as `1.0`, `1e3` or `true`; None for another text."""
    number = double_from(text)
    if number is None:
        return _TRUTH.get(text.lower())
    return int(number) if number.is_integer() else None


def _parse_double(type_: str, text: str) -> Value:
    number = double_from(text)
    if number is not None:
        return _check_double(number)
    if text.lower() in MISSING:
        return None
    raise ValueError(f"{_shown(text)} is not a number ({type_})")


def _array_parser(type_: str) -> Parser:
    element = parser(ARRAYS[type_])

    def parse(text: str) -> Value:
        if not (text.startswith("[") and text.endswith("]")):
            raise ValueError(f"{_shown(text)} is not written as [a;b;c] ({type_})")
        inner = text[1:-1]
        if not inner.strip():
            return ()
        parts: tuple[Any, ...] = tuple([element(part) for part in inner.split(";")])
        return parts

    return parse


def _parse_blob(text: str) -> Value:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:  # binascii's own error, or letters that are not ASCII
        raise ValueError(f"{_shown(text)} is not base64 (blob)") from None


def _parse_time(
    type_: str, text: str, read: Callable[[str], datetime], date_format: str | None
) -> int:
    shown = date_format or "a whole number or %Y-%m-%d %H:%M:%S"
    try:
        return ticks_since_epoch(read(text), _TICKS[type_])
    except (ValueError, OverflowError):
        raise ValueError(f"{_shown(text)} is not a {type_} written as {shown}") from None


def format_text(type_: str, value: Value) -> str:
    """Write one value as text: doubles with six decimals, null empty; see `formatter`."""
    return formatter(type_)(value)


def formatter(type_: str, date_format: str = "", precision: int = 6) -> Formatter:
    """Return the function that writes values of one type as the text of a CSV file.

    Args:
        type_: name of the ESP type.
        date_format: how `date` and `stamp` are written (strftime, UTC); empty: as whole numbers.
            A stamp's seconds have their six decimals.
        precision: decimals of doubles, also within arrays; see `tiny`.
    """
    if type_ in DOUBLES:
        return _double_formatter(precision)
    if type_ in ARRAYS:
        element = formatter(ARRAYS[type_], "", precision)
        return lambda value: "" if value is None else f"[{';'.join(map(element, value))}]"
    if type_ == "blob":
        return lambda value: "" if value is None else binascii.b2a_base64(value)[:-1].decode()
    if date_format and type_ in _TICKS:
        tick, style = _TICKS[type_], written(date_format, stamp=type_ == "stamp")
        return lambda value: "" if value is None else _time_text(value, tick, style)
    return lambda value: "" if value is None else str(value)


def tiny(precision: int) -> float:
    """Return below what size a double is written with an exponent, `8.33163e-07`.

    It would not show among so many decimals. Whoever wants fewer than five gets zero there.
    """
    return 10.0**-precision if precision > 4 else 0.0


def _double_formatter(precision: int) -> Formatter:
    least, plain, exponent = tiny(precision), f".{precision}f", f".{precision}g"

    def write(value: Any) -> str:
        if value is None:
            return ""
        return format(value, exponent if value and -least < value < least else plain)

    return write


def _time_text(value: int, tick: timedelta, date_format: str) -> str:
    try:
        return moment_at(value, tick).strftime(date_format)
    except (OverflowError, ValueError):  # beyond the year 9999: better a number than nothing
        return str(value)


def checker(type_: str) -> Callable[[object], Value]:
    """Return the function that takes any Python value and gives a value of this type.

    The function raises ValueError, with a sentence, for what is not of the type.
    """
    if type_ in INTEGERS:
        return _integer_checker(type_, *INTEGERS[type_])
    if type_ in ARRAYS:
        return _array_checker(type_)
    if type_ == "blob":
        return _check_blob
    return _check_double if type_ in DOUBLES else _check_string


def _array_checker(type_: str) -> Callable[[object], Value]:
    element = checker(ARRAYS[type_])

    def check(value: object) -> Value:
        if value is None:
            return None
        if type(value) is not tuple and type(value) is not list:
            raise ValueError(f"{_shown(value)} is not an array ({type_})")
        parts: tuple[Any, ...] = tuple([element(part) for part in value])
        return parts

    return check


def _check_blob(value: object) -> Value:
    if value is None or type(value) is bytes:
        return value
    raise ValueError(f"{_shown(value)} is not bytes (blob)")


def _integer_checker(type_: str, low: int, high: int) -> Callable[[object], Value]:
    def check(value: object) -> Value:
        # type(), not isinstance: True is not a number here.
        if type(value) is int and low <= value <= high:
            return value
        if value is None:
            return None
        if type(value) is int:
            raise ValueError(f"{_shown(value)} is too large for {type_}")
        raise ValueError(f"{_shown(value)} is not a whole number ({type_})")

    return check


def _check_double(value: object) -> Value:
    if type(value) is float and -math.inf < value < math.inf:
        return value
    if value is None:
        return None
    if type(value) is float or type(value) is int:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
        if math.isnan(number):
            return None
    raise ValueError(f"{_shown(value)} is not a finite number (double)")


def _check_string(value: object) -> Value:
    if value is None:
        return None
    if type(value) is not str:
        raise ValueError(f"{_shown(value)} is not text (string)")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{_shown(value)} is not Unicode text (string)") from None
    return value


def _shown(value: object) -> str:
    # repr of an int of many digits raises, and a long text does not belong in a message.
    if type(value) is int and value.bit_length() > 128:
        return f"a number of {value.bit_length()} bits"
    shown = ascii(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
