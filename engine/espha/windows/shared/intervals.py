"""Lengths of time in attributes, such as `5 seconds`."""

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from espha.windows.shared.spec import Reading

MIN_INTERVAL: Final = 100
"""Shortest interval, in milliseconds: each one makes an event for each input."""

MAX_INTERVAL: Final = 366 * 86_400_000
"""Longest interval, in milliseconds."""

_UNITS: Final = {
    "ms": 1, "msec": 1, "millisecond": 1, "milliseconds": 1,
    "": 1_000, "s": 1_000, "sec": 1_000, "second": 1_000, "seconds": 1_000,
    "m": 60_000, "min": 60_000, "minute": 60_000, "minutes": 60_000,
    "h": 3_600_000, "hour": 3_600_000, "hours": 3_600_000,
    "d": 86_400_000, "day": 86_400_000, "days": 86_400_000,
}  # fmt: skip
_INTERVAL = re.compile(r"([0-9]{1,12})\s*([A-Za-z]*)")


def interval_ms(text: str) -> int:
    """Return a length of time such as `5 seconds` in milliseconds.

    Raises:
        ValueError: it is none, or too short or too long; the text says so.
    """
    match = _INTERVAL.fullmatch(text)
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise ValueError(f"{text!r}; write a length of time, such as 5 seconds")
    milliseconds = int(match[1]) * unit
    if not MIN_INTERVAL <= milliseconds <= MAX_INTERVAL:
        raise ValueError(f"{text!r}; use 100 milliseconds to 366 days")
    return milliseconds


def read_interval(reading: "Reading", attribute: str) -> int | None:
    """Read an attribute such as `5 seconds` as milliseconds; None when it is not there."""
    text = reading.element.get(attribute, "").strip()
    if not text:
        return None
    try:
        return interval_ms(text)
    except ValueError as error:
        reading.refuse(f"{attribute} is {error}")
        return None
