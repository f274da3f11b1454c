"""Times: whole seconds since 1970, in UTC, and the clock of the order record.

UTC and not the zone of a machine, because all engines have to find the same.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from espha.languages.functional.catalog import Function
from espha.languages.functional.errors import FunctionError
from espha.languages.functional.frame import Frame
from espha.languages.functional.values import seconds_of
from espha.model.literals import SECOND, moment_at, ticks_since_epoch

_STANDARD = "%Y-%m-%d %H:%M:%S"
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_KNOWN = frozenset("aAbBdefGHIjmMpSuUVwWyYzZ%")
_SHORT: Final = {
    "c": "%a %b %e %H:%M:%S %Y",
    "x": "%m/%d/%y",
    "X": "%H:%M:%S",
    "r": "%I:%M:%S %p",
    "D": "%m/%d/%y",
    "T": "%H:%M:%S",
    "F": "%Y-%m-%d",
    "R": "%H:%M",
    "h": "%b",
    "n": "\n",
    "t": "\t",
}
MAX_FORMAT = 200


def checked_format(format_: str) -> str:
    """Return the format with its short forms written out.

    Raises:
        FunctionError: it depends on the machine (its language or its zone), or is too long.
    """

    def known(match: re.Match[str]) -> str:
        letter = match[1]
        if letter in _SHORT:
            return _SHORT[letter]
        if letter in _KNOWN and letter:
            return match[0]
        there = " ".join(f"%{each}" for each in sorted(_KNOWN | set(_SHORT)))
        raise FunctionError(f"{match[0]!r} in the time format is not one of: {there}")

    if len(format_) > MAX_FORMAT:
        raise FunctionError(f"a time format has more than {MAX_FORMAT} characters")
    return _DIRECTIVE.sub(known, format_)


def checked_reading(format_: str) -> str:
    """Return the format as one for reading, where a day needs no blank in front of it.

    Raises:
        FunctionError: as above, or the format has the name of a zone.
    """
    written = checked_format(format_).replace("%e", "%d")
    if "%Z" in written:
        raise FunctionError("'%Z' cannot be read; write the zone as %z, such as +0100")
    return written


def _parse(value: str, format_: str | None = None) -> int | None:
    """Return the seconds since 1970 of a time that is written so; ISO 8601 without a format."""
    if format_ is None:
        found = seconds_of(value)
        return found[0] if found else None
    try:
        moment = datetime.strptime(value.strip(), checked_reading(format_))
        return ticks_since_epoch(moment, SECOND)
    except (ValueError, OverflowError, re.error):  # FunctionError is a ValueError
        return None


def _moment(seconds: int) -> datetime | None:
    try:
        return moment_at(seconds, SECOND)
    except OverflowError:
        return None


def _string(frame: Frame, seconds: Any = None, format_: str = _STANDARD) -> str | None:
    moment = _moment(_now(frame) if seconds is None else seconds)
    try:
        return None if moment is None else moment.strftime(checked_format(format_))
    except ValueError:
        return None


def _stamp(frame: Frame, seconds: int | None = None) -> str | None:
    """Return ISO 8601 with milliseconds."""
    if seconds is None:
        moment, millis = _moment(_now(frame)), frame.clock % 1000
    else:
        moment, millis = _moment(seconds), 0
    if moment is None:
        return None
    return f"{moment.isoformat().removesuffix('+00:00')}.{millis:03}Z"


def _now(frame: Frame) -> int:
    return frame.clock // 1000


def _part(read: Callable[[datetime], int]) -> Function:
    """Return a function of a time in seconds; of the clock when it is left out."""

    def run(frame: Frame, *given: int) -> int | None:
        moment = _moment(given[0] if given else _now(frame))
        return None if moment is None else read(moment)

    return Function("?i", run, framed=True)


def _rest(span: int, unit: int = 1) -> Function:
    """Return which `unit` of a span of seconds it is, from 0."""

    def run(frame: Frame, *given: int) -> int:
        return (given[0] if given else _now(frame)) % span // unit

    return Function("?i", run, framed=True)


_HOUR, _MINUTE, _SECOND = _rest(86_400, 3_600), _rest(3_600, 60), _rest(60)

FUNCTIONS: Final[Mapping[str, Function]] = {
    "timeParse": Function("s?r", _parse),
    "timeGmtToLocal": Function("i", lambda seconds: seconds),
    "timeLocalToGmt": Function("i", lambda seconds: seconds),
    "timeString": Function("?if", _string, framed=True),
    "timeGmtString": Function("?if", _string, framed=True),
    "timeStamp": Function("?i", _stamp, framed=True),
    "timeCurrent": Function("", _now, framed=True),
    "timeToday": Function("", lambda frame: _now(frame) // 86_400 * 86_400, framed=True),
    "systemMilli": Function("", lambda frame: frame.clock, framed=True),
    "systemMicro": Function("", lambda frame: frame.clock * 1000, framed=True),
    "timeSecondOfDay": _rest(86_400),
    "timeMinuteOfDay": _rest(86_400, 60),
    "timeSecondOfHour": _rest(3_600),
    "timeMinuteOfHour": _MINUTE,
    "timeSecondOfMinute": _SECOND,
    "timeHour": _HOUR,
    "timeHourOfDay": _HOUR,
    "timeMinute": _MINUTE,
    "timeSecond": _SECOND,
    "timeDayOfMonth": _part(lambda moment: moment.day),
    "timeDayOfWeek": _part(lambda moment: moment.isoweekday() % 7),
    "timeDayOfYear": _part(lambda moment: moment.timetuple().tm_yday),
    "timeMonth": _part(lambda moment: moment.month),
    "timeYear": _part(lambda moment: moment.year),
}
