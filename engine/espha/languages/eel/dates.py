"""Dates: seconds since 1970 in UTC, their parts, their text and back. Total functions."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from espha.languages.eel.errors import MAX_TEXT
from espha.model.literals import LOOSE_DATE, MICROS, SECOND, moment_at, ticks_since_epoch

_FIRST, _LAST = -62_135_596_800, 253_402_300_799  # the years 1 to 9999
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July",
    "August", "September", "October", "November", "December",
)  # fmt: skip
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

# code: (how it is written, how it is read, the part that it gives)
_Write = Callable[[datetime], str]
_CODES: Final[dict[str, tuple[_Write, str, str]]] = {
    "YYYY": (lambda t: f"{t.year:04}", "[0-9]{4}", "year"),
    "YY": (lambda t: f"{t.year % 100:02}", "[0-9]{2}", "year2"),
    "MMMM": (lambda t: _MONTHS[t.month - 1], "[A-Za-z]{3,9}", "name"),
    "MMM": (lambda t: _MONTHS[t.month - 1][:3], "[A-Za-z]{3}", "name"),
    "MM": (lambda t: f"{t.month:02}", "[0-9]{1,2}", "month"),
    "DDDD": (lambda t: _DAYS[t.weekday()], "[A-Za-z]{6,9}", ""),
    "DDD": (lambda t: _DAYS[t.weekday()][:3], "[A-Za-z]{3}", ""),
    "DD": (lambda t: f"{t.day:02}", "[0-9]{1,2}", "day"),
    "hh": (lambda t: f"{t.hour:02}", "[0-9]{1,2}", "hour"),
    "mm": (lambda t: f"{t.minute:02}", "[0-9]{1,2}", "minute"),
    "ss": (lambda t: f"{t.second:02}", "[0-9]{1,2}", "second"),
    "ms": (lambda t: f"{t.microsecond // 1000:03}", "[0-9]{1,3}", ""),
}
_SAME: Final = {
    "HH": "hh", "%Y": "YYYY", "%y": "YY", "%B": "MMMM", "%b": "MMM", "%m": "MM", "%A": "DDDD",
    "%a": "DDD", "%d": "DD", "%H": "hh", "%M": "mm", "%S": "ss",
}  # fmt: skip
_TOKEN = re.compile("|".join(sorted([*_CODES, *_SAME], key=len, reverse=True)))
_LOOSE = re.compile(rf"\s*{LOOSE_DATE}\s*")
_PARTS: Final[dict[str, Callable[[datetime], int]]] = {
    "year": lambda t: t.year,
    "quarter": lambda t: (t.month + 2) // 3,
    "month": lambda t: t.month,
    "day": lambda t: t.day,
    "weekday": lambda t: t.isoweekday() % 7 + 1,
    "yearday": lambda t: t.timetuple().tm_yday,
    "hour": lambda t: t.hour,
    "minute": lambda t: t.minute,
    "second": lambda t: t.second,
}
_PART_NAMES: Final = {
    "yyyy": "year", "yy": "year", "y": "year", "q": "quarter", "mm": "month", "m": "month",
    "dd": "day", "d": "day", "hh": "hour", "h": "hour", "mi": "minute", "n": "minute",
    "ss": "second", "s": "second",
} | {part: part for part in _PARTS}  # fmt: skip


def moment(seconds: int) -> datetime | None:
    """Return the moment, or null outside the years 1 to 9999."""
    if not _FIRST <= seconds <= _LAST:
        return None
    return moment_at(int(seconds), SECOND)


def part_of(part: str, seconds: int) -> int | None:
    """Return year, month, … of a date; null for a part that there is not."""
    pick = _PARTS.get(_PART_NAMES.get(part.strip().lower(), ""))
    time = moment(seconds)
    return None if pick is None or time is None else pick(time)


def format_date(seconds: int, pattern: str) -> str | None:
    """Write a date; codes are YYYY YY MMMM MMM MM DDDD DDD DD hh mm ss, the rest stays."""
    time = moment(seconds)
    if time is None or len(pattern) > MAX_TEXT // 9:
        return None
    return _TOKEN.sub(lambda code: _code(code[0])[0](time), pattern)


def read_date(text: str, pattern: str | None = None) -> int | None:
    """Read a date.

    Without a pattern it is YYYY-MM-DD, with or without hh:mm:ss, MM/DD/YYYY or DD-MMM-YYYY.
    """
    expressions = _ANY if pattern is None else (_reader(pattern),)
    matches = [found for each in expressions if each and (found := each.fullmatch(text))]
    if not matches:
        return None
    return _seconds({part: given for part, given in matches[0].groupdict().items() if given})


def text_of_date(seconds: int | None) -> str | None:
    """Write a date as YYYY-MM-DD hh:mm:ss."""
    return None if seconds is None else format_date(seconds, "YYYY-MM-DD hh:mm:ss")


def text_of_stamp(micros: int | None) -> str | None:
    """Write a stamp as YYYY-MM-DD hh:mm:ss.ffffff."""
    if micros is None:
        return None
    text = text_of_date(micros // MICROS)
    return None if text is None else f"{text}.{micros % MICROS:06}"


def _code(word: str) -> tuple[_Write, str, str]:
    return _CODES[_SAME.get(word, word)]


@lru_cache(maxsize=256)
def _reader(pattern: str) -> re.Pattern[str] | None:
    if len(pattern) > 100:
        return None
    parts, end, seen = [r"\s*"], 0, set()
    for code in _TOKEN.finditer(pattern):
        _, shape, part = _code(code[0])
        parts.append(re.escape(pattern[end : code.start()]))
        parts.append(f"(?P<{part}>{shape})" if part and part not in seen else shape)
        seen.add(part)
        end = code.end()
    return re.compile("".join([*parts, re.escape(pattern[end:]), r"\s*"]))


def _seconds(parts: dict[str, str]) -> int | None:
    numbers = {part: int(text) for part, text in parts.items() if part != "name"}
    if "year2" in numbers:
        short = numbers.pop("year2")
        numbers["year"] = short + (2000 if short < 70 else 1900)
    if "name" in parts:
        start = parts["name"].lower()[:3]
        known = [month.lower()[:3] for month in _MONTHS]
        numbers["month"] = known.index(start) + 1 if start in known else 0
    try:
        time = datetime(**{"year": 1970, "month": 1, "day": 1, **numbers}, tzinfo=UTC)
    except ValueError:
        return None
    return ticks_since_epoch(time, SECOND)


def _first_reading() -> tuple[re.Pattern[str] | None, ...]:
    days = ("MM/DD/YYYY", "DD-MMMM-YYYY", "DD-MMM-YYYY", "DD MMMM YYYY", "DD MMM YYYY")
    return (_LOOSE, *(_reader(f"{day}{time}") for day in days for time in ("", " hh:mm:ss")))


_ANY: Final = _first_reading()
