"""Properties of timer connectors, and when they tick."""

import calendar
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from espha.model.dates import date_reader
from espha.model.events import Event, Value
from espha.model.literals import MILLISECOND, moment_at, ticks_since_epoch
from espha.model.project import Field, Part, Window
from espha.windows.source.spec import SourceWindow

TIMER_PROPERTIES: Final = frozenset(
    {"interval", "unit", "label", "basetime", "timeformat", "maxevents", "transactional"}
)
"""What is known."""

_TIME_FORMAT = "%Y-%m-%d %H:%M:%S"
_MILLISECONDS: Final = {
    "millisecond": 1,
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
}
_UNITS: Final = {**_MILLISECONDS, "ms": 1, "sec": 1_000, "": 1_000, "min": 60_000}
"""Units of an interval."""
_MONTHS: Final = {"month": 1, "year": 12}


class Timer(Part):
    """When a timer ticks: at `base`, and each interval later.

    Attributes:
        base: milliseconds since 1970; None: the moment of the start.
        step: the interval in milliseconds; 0 when it is one of months.
        months: the interval in months.
        label: text that goes into the events.
    """

    base: int | None
    step: int
    months: int
    label: str

    def first(self, now: int) -> int:
        """Return the number of the first tick at or after `now` (ms since 1970)."""
        base = now if self.base is None else self.base
        if now <= base:
            return 0
        if self.step:
            return -((base - now) // self.step)
        start, end = _date(base), _date(now)
        months = (end.year - start.year) * 12 + end.month - start.month
        number = months // self.months
        while self.tick(number, now) < now:
            number += 1
        return number

    def tick(self, number: int, started: int) -> int:
        """Return when the tick `number` is, in ms since 1970; `started`: when the timer began."""
        base = started if self.base is None else self.base
        if self.step:
            return base + number * self.step
        start = _date(base)
        year, month = divmod(start.year * 12 + start.month - 1 + number * self.months, 12)
        last = calendar.monthrange(year, month + 1)[1]
        moment = start.replace(year=year, month=month + 1, day=min(start.day, last))
        return ticks_since_epoch(moment, MILLISECOND)


def timer(properties: Mapping[str, str], name: str = "") -> Timer:
    """Read the properties of a timer connector; `name` is its label when it has none.

    Raises:
        ValueError: a property has a value that it cannot have; the text says which.
    """
    unit = (properties.get("unit", "").strip().lower() or "second").removesuffix("s")
    interval = properties.get("interval", "").strip()
    if unit not in _MILLISECONDS and unit not in _MONTHS:
        raise ValueError(
            f"property 'unit' is {unit!r}; use {', '.join([*_MILLISECONDS, *_MONTHS])}"
        )
    most = 1_200 if unit in _MONTHS else 99_999_999
    if not (interval.isascii() and interval.isdigit() and 0 < int(interval[:9]) <= most):
        raise ValueError(
            f"property 'interval' is {interval!r}; give a whole number from 1 to {most}"
        )
    base = properties.get("basetime", "").strip()
    return Timer(
        base=_base(base, properties.get("timeformat", "")) if base else None,
        step=int(interval) * _MILLISECONDS.get(unit, 0),
        months=int(interval) * _MONTHS.get(unit, 0),
        label=properties.get("label", "") or name,
    )


def tick_event(window: Window, label: str) -> Callable[[int, int], Event]:
    """Return the function that makes the event of a tick, of its number and its time (ms)."""
    fields = window.fields
    number_at, time_at, label_at = _places(window)

    def event(number: int, time: int) -> Event:
        values: list[Value] = [None] * len(fields)
        if number_at is not None:
            values[number_at] = str(number) if fields[number_at].type == "string" else number
        if time_at is not None:
            in_seconds = fields[time_at].type == "date"
            values[time_at] = time // 1000 if in_seconds else time * 1000
        if label_at is not None:
            values[label_at] = label
        return Event("I", "N", tuple(values))

    return event


def _places(window: Window) -> tuple[int | None, int | None, int | None]:
    """Say which fields take the number, the time and the label: by name, else by their type."""
    fields = window.fields
    key = next(place for place, field in enumerate(fields) if field.key)
    others = [place for place in range(len(fields)) if place != key]
    moment = _first(fields, others, "time", ("stamp", "date", "int64"))
    label = _first(fields, [place for place in others if place != moment], "label", ("string",))
    numbered = isinstance(window, SourceWindow) and window.autogen_key
    return None if numbered else key, moment, label


def _first(
    fields: tuple[Field, ...], places: list[int], name: str, types: tuple[str, ...]
) -> int | None:
    fitting = [place for place in places if fields[place].type in types]
    named = [place for place in fitting if fields[place].name.lower() == name]
    by_type = sorted(fitting, key=lambda place: types.index(fields[place].type))
    return next(iter(named + by_type), None)


def interval(text: str) -> int:
    """Return the milliseconds of `2 seconds`, `500 milliseconds` or `10`, which are seconds.

    Raises:
        ValueError: it is something else; the text says so.
    """
    number, _, unit = text.strip().partition(" ")
    unit = unit.strip().lower()
    unit = unit if unit in _UNITS else unit.removesuffix("s")
    if not number:
        return 0
    if number.isascii() and number.isdigit() and len(number) < 9 and unit in _UNITS:
        return int(number) * _UNITS[unit]
    raise ValueError(f"property 'interval' is {text!r}; write it as `2 seconds`")


def _base(text: str, time_format: str) -> int:
    try:
        moment = date_reader(time_format or _TIME_FORMAT)(text)
    except ValueError:
        shown = time_format or _TIME_FORMAT
        raise ValueError(f"property 'basetime' is {text!r}, not written as {shown}") from None
    return ticks_since_epoch(moment, MILLISECOND)


def _date(milliseconds: int) -> datetime:
    return moment_at(milliseconds, MILLISECOND)
