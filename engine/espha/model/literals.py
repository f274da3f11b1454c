"""Numbers, dates and null as text: one grammar for records, for models and for both languages.

The grammars are regular expressions that Python, Java (so Catalyst) and RE2 read in the same way:
`[0-9]` instead of classes that differ between them, and no two neighbours that could share the
same digits, because a text of a million digits and a letter would then take the square of its
length. They are not anchored, and blanks around a literal are the caller's matter.

What differs on purpose:
- `DATE` is how ESP writes dates in records; it is exact, since a record that is almost right is a
  bad record. `LOOSE_DATE` is what casts of EEL read, which give null instead of a bad record and so
  can be generous. The functional language reads ISO 8601 (`datetime.fromisoformat`), which its
  `timeParse` promises.
- `MISSING` is for the doubles of records only: SAS writes a missing value as a dot. In both
  languages such a text is not a number, and so null as well.
- A text without characters is null in a record. In both languages it is a string of no characters,
  which is not a number.
"""

import re
import sys
from datetime import UTC, datetime, timedelta
from typing import Final

INT32: Final = (-(2**31), 2**31 - 1)
"""Smallest and largest whole number of 32 bits."""
INT64: Final = (-(2**63), 2**63 - 1)
"""Smallest and largest whole number of 64 bits."""
LARGEST: Final = sys.float_info.max
"""Largest double that is finite."""

WHOLE: Final = r"[+-]?0*[0-9]{1,19}"
"""A whole number. No number of 64 bits has more digits; a larger one can still be a `NUMBER`."""
NUMBER: Final = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
"""A number with or without a fraction and an exponent."""
MISSING: Final = frozenset({"nan", "."})
"""What stands for a missing double in a record, in small letters."""
DATE: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
"""A date of a record without a format of its own; a fraction of a second may follow."""
LOOSE_DATE: Final = (
    r"(?P<year>[0-9]{4})[-/](?P<month>[0-9]{1,2})[-/](?P<day>[0-9]{1,2})"
    r"(?:[T ](?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}))?Z?)?"
)
"""A date as a person may type it; the time of day and its seconds may be left out."""

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
SECOND: Final = timedelta(seconds=1)
MILLISECOND: Final = timedelta(milliseconds=1)
MICROSECOND: Final = timedelta(microseconds=1)
MICROS: Final = 1_000_000
"""How many microseconds a second has."""

_WHOLE = re.compile(r"([+-]?)0*([0-9]{1,19})")
_NUMBER = re.compile(NUMBER)
_EXACT: Final = 1e15
"""Below it the whole part of a double is written digit by digit."""


def whole_from(text: str) -> int | None:
    """Return the number of a text that is `WHOLE`, of up to 19 digits; None for another text."""
    match = _WHOLE.fullmatch(text)
    # Without its zeros: Python refuses to read a number of thousands of digits.
    return None if match is None else int(match[1] + match[2])


def double_from(text: str) -> float | None:
    """Return the double of a text that is `NUMBER`, maybe infinite; None for another text."""
    return float(text) if _NUMBER.fullmatch(text) else None


def whole(value: int) -> int | None:
    """Return `value`, or None when it has no place in 64 bits."""
    return value if INT64[0] <= value <= INT64[1] else None


def finite(value: float) -> float | None:
    """Return `value`, or None when it is infinite or not a number."""
    return value if -LARGEST <= value <= LARGEST else None


def number_text(value: float) -> str:
    """Write a number as short as it reads back; a double without a fraction has no point."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < _EXACT else repr(value)
    return str(value)


def ticks_since_epoch(moment: datetime, tick: timedelta) -> int:
    """Return the whole ticks from 1970 to a moment, rounded down; without a zone it is in UTC.

    Whole ticks, because a float of seconds would lose the last microseconds.

    Raises:
        OverflowError: the zone moves it out of the years 1 to 9999.
    """
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - EPOCH) // tick


def moment_at(ticks: int, tick: timedelta) -> datetime:
    """Return the moment that is so many ticks after 1970, in UTC.

    Raises:
        OverflowError: it is not in the years 1 to 9999.
    """
    return EPOCH + ticks * tick
