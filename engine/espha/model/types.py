"""ESP field types and their Python values.

int32, int64, date (seconds since 1970) and stamp (microseconds since 1970) are `int`, double and
money are `float`, string is `str`, null is `None`. NaN is the missing value, so it becomes null;
an infinite number is refused. No NaN and no infinity is ever in a model.
"""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, Literal

from espha.model.events import Value

TypeName = Literal["int32", "int64", "double", "string", "date", "stamp", "money"]

INTEGERS: Final = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "date": (-(2**63), 2**63 - 1),
    "stamp": (-(2**63), 2**63 - 1),
}
"""Smallest and largest value of the types that are whole numbers."""

DOUBLES: Final = frozenset({"double", "money"})
TYPES: Final = frozenset({*INTEGERS, *DOUBLES, "string"})

_INTEGER = re.compile(r"[+-]?0*[0-9]{1,19}")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TICKS: Final = {"date": 1, "stamp": 1_000_000}


def parse_text(type_: str, text: str, date_format: str | None = None) -> Value:
    """Read one value from text, as it stands in a CSV file.

    Args:
        type_: name of the ESP type.
        text: the text; empty is null, blanks around a number do not count.
        date_format: how `date` and `stamp` are written (strptime, UTC unless it has a zone);
            None: as whole seconds and microseconds.

    Raises:
        ValueError: the text is not of this type; the message says so in a sentence.
    """
    if type_ == "string":
        return text or None
    text = text.strip()
    if not text:
        return None
    if type_ in DOUBLES:
        return _parse_double(type_, text)
    if date_format and type_ in _TICKS:
        return _parse_time(type_, text, date_format)
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"{_shown(text)} is not a whole number ({type_})")
    return checker(type_)(int(text))


def _parse_double(type_: str, text: str) -> Value:
    if text.lower() in {"nan", "."}:
        return None
    if not _DOUBLE.fullmatch(text):
        raise ValueError(f"{_shown(text)} is not a number ({type_})")
    return checker(type_)(float(text))


def _parse_time(type_: str, text: str, date_format: str) -> int:
    try:
        moment = datetime.strptime(text, date_format)
    except ValueError:
        raise ValueError(f"{_shown(text)} is not a {type_} written as {date_format}") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    # Whole microseconds: a float of seconds would lose the last of them.
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return micros * _TICKS[type_] // 1_000_000


def format_text(type_: str, value: Value) -> str:
    """Write one value as text: doubles with six decimals, null empty."""
    if value is None:
        return ""
    return f"{value:.6f}" if type_ in DOUBLES else str(value)


def checker(type_: str) -> Callable[[object], Value]:
    """Return the function that takes any Python value and gives a value of this type.

    The function raises ValueError, with a sentence, for what is not of the type.
    """
    if type_ in INTEGERS:
        return _integer_checker(type_, *INTEGERS[type_])
    return _check_double if type_ in DOUBLES else _check_string


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
