"""Counter windows: how many events come, and how fast."""

import re
from typing import Final, Literal

from espha.model.project import Field, Window
from espha.windows.shared.spec import Reading, WindowType

FIELDS: Final = (
    Field("input", "string", True),
    Field("totalCount", "int64"),
    Field("totalSeconds", "double"),
    Field("totalRate", "double"),
    Field("intervalCount", "int64"),
    Field("intervalSeconds", "double"),
    Field("intervalRate", "double"),
)
"""The schema of every counter window."""

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


class CounterWindow(Window):
    """Counts the events of each input.

    Attributes:
        inputs: names of the windows that feed it, by port.
        count_interval: milliseconds between two reports; None: a report for each event.
        clear_interval: milliseconds without an event after which an input starts anew; None: never.
    """

    kind: Literal["counter"] = "counter"
    inputs: tuple[str, ...]
    count_interval: int | None = None
    clear_interval: int | None = None


def read_interval(reading: Reading, attribute: str) -> int | None:
    """Read an attribute such as `5 seconds` as milliseconds; None when it is not there."""
    text = reading.element.get(attribute, "").strip()
    if not text:
        return None
    match = _INTERVAL.fullmatch(text)
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        reading.refuse(f"{attribute} is {text!r}; write a length of time, such as 5 seconds")
        return None
    milliseconds = int(match[1]) * unit
    if not MIN_INTERVAL <= milliseconds <= MAX_INTERVAL:
        reading.refuse(f"{attribute} is {text!r}; it is 100 milliseconds at least, a year at most")
    return milliseconds


def _read(reading: Reading) -> CounterWindow | None:
    before = len(reading.findings.problems)
    count = read_interval(reading, "count-interval")
    clear = read_interval(reading, "clear-interval")
    if len(reading.findings.problems) > before:
        return None
    return CounterWindow(
        **{**reading.common, "fields": FIELDS},
        inputs=tuple(feed.path.partition("/")[2] for feed in reading.feeds),
        count_interval=count,
        clear_interval=clear,
    )


WINDOW = WindowType(
    "counter",
    _read,
    attributes=frozenset({"count-interval", "clear-interval"}),
    inputs=(1, None),
)
