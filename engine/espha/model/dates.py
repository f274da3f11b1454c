"""Dates as text, by a format of `strptime`: what the C function and SAS's parser take.

A format is read once into a regular expression. Beyond `strptime`:
- a fraction of a second may follow `%S`; a stamp keeps its microseconds;
- a text may end where only the time of day is missing;
- what stands behind the end of the format is not read, if it goes on with the time: `:00`, `Z`,
  ` 12:00`;
- quotes around a format do not count.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from typing import Final

from espha.model.literals import EPOCH

MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

Reader = Callable[[str], datetime]


def _names(names: tuple[str, ...]) -> str:
    return "|".join(rf"{name[:3]}(?:{name[3:]})?" for name in names)


_SHORTHANDS: Final = {
    "D": "%m/%d/%y", "F": "%Y-%m-%d", "R": "%H:%M", "T": "%H:%M:%S", "r": "%I:%M:%S %p",
    "h": "%b", "e": "%d", "k": "%H", "l": "%I", "n": "\n", "t": "\t",
    "c": "%a %b %d %H:%M:%S %Y", "x": "%m/%d/%y", "X": "%H:%M:%S",
}  # fmt: skip
_PIECES: Final = {
    "Y": r"(?P<Y>[0-9]{4})",
    "y": r"(?P<y>[0-9]{2})",
    "m": r"(?P<m>1[0-2]|0[1-9]|[1-9])",
    "d": r"(?P<d>3[01]|[12][0-9]|0[1-9]|[1-9]| [1-9])",
    "H": r"(?P<H>2[0-4]|[01][0-9]|[0-9]| [0-9])",
    "I": r"(?P<I>1[0-2]|0[1-9]|[1-9]| [1-9])",
    "M": r"(?P<M>[0-5][0-9]|[0-9])",
    "S": r"(?P<S>6[01]|[0-5][0-9]|[0-9])(?:[.,](?P<fraction>[0-9]{1,9}))?",
    "f": r"(?P<f>[0-9]{1,9})",
    "j": r"(?P<j>36[0-6]|3[0-5][0-9]|[12][0-9]{2}|0[1-9][0-9]|00[1-9]|[1-9][0-9]|0[1-9]|[1-9])",
    "p": r"(?P<p>[ap]\.?m\.?)",
    "b": rf"(?P<b>{_names(MONTHS)})",
    "a": rf"(?:{_names(DAYS)})",
    "z": r"(?P<z>Z|[+-][0-9]{2}:?[0-9]{2}(?::?[0-9]{2})?)",
    "Z": r"(?:[A-Za-z]{1,8})",
    "s": r"(?P<s>-?[0-9]{1,12})",
    "u": "[0-7]", "w": "[0-7]", "U": "[0-9]{1,2}", "W": "[0-9]{1,2}", "V": "[0-9]{1,2}",
    "%": "%",
}  # fmt: skip
_SAME: Final = {"B": "b", "A": "a", "P": "p"}
"""Directives that read what another one reads."""
_TIME_OF_DAY: Final = frozenset("HIMSfpzZ")
_ZONE: Final = r"\s*(?:Z|UTC|GMT)?"
_REST_OF_DATE: Final = rf"(?:[:T ]\s*[0-9][0-9:.,]*)?{_ZONE}"
_REST_OF_TIME: Final = rf"(?::[0-9]+(?:\.[0-9]+)?)?{_ZONE}"
_ISO: Final = re.compile(
    r"(?P<Y>[0-9]{4})([-/])(?P<m>[0-9]{1,2})\2(?P<d>[0-9]{1,2})"
    r"(?:[T ]\s*(?P<H>[0-9]{1,2}):(?P<M>[0-9]{1,2})"
    r"(?::(?P<S>[0-9]{1,2})(?:[.,:](?P<fraction>[0-9]{1,9}))?)?)?"
    r"\s*(?P<z>Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2})?",
    re.IGNORECASE | re.ASCII,
)
_LONGEST: Final = 100


def plain(date_format: str) -> str:
    """Return a format without quotes around it, and with its short forms written out."""
    text = date_format.strip().strip("'\"")
    return re.sub(
        r"%([EO]?)(.)", lambda match: _SHORTHANDS.get(match[2], f"%{match[2]}"), text, flags=re.S
    )


def written(date_format: str, *, stamp: bool) -> str:
    """Return the format for `strftime`; a stamp's seconds are written with their fraction."""
    text = plain(date_format)
    return text.replace("%S", "%S.%f") if stamp and "%f" not in text else text


def check_date_format(date_format: str) -> str:
    """Return a format that can be read.

    Raises:
        ValueError: it has a directive that is not known; the text names it.
    """
    _pattern(plain(date_format))
    return date_format


@cache
def date_reader(date_format: str) -> Reader:
    """Return the function that reads dates of this format; without a zone they are in UTC.

    The function raises ValueError for another text, and OverflowError beyond the year 9999.
    """
    pattern = _pattern(plain(date_format))

    def read(text: str) -> datetime:
        match = pattern.fullmatch(text) if len(text) <= _LONGEST else None
        if match is None:
            raise ValueError(text)
        return _moment({name: part for name, part in match.groupdict().items() if part})

    return read


def iso_date(text: str) -> datetime:
    """Read a date as people write it without a format: `2024-01-31`, `2024/1/31T12:00:00.5Z`.

    Raises:
        ValueError: it is none.
    """
    match = _ISO.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise ValueError(text)
    return _moment({name: part for name, part in match.groupdict().items() if part})


def _pattern(date_format: str) -> re.Pattern[str]:
    """Write a format as a regular expression; a text may end within the time of day."""
    pieces = re.findall(r"%.|\s+|[^%\s]+|%", date_format, flags=re.S)
    codes = [_SAME.get(piece[1:], piece[1:]) if piece[0] == "%" else "" for piece in pieces]
    days = [at for at, code in enumerate(codes) if code and code not in _TIME_OF_DAY]
    time_begins = days[-1] + 1 if days else len(pieces)
    seen: set[str] = set()
    text, optional = "", 0
    for at, (piece, code) in enumerate(zip(pieces, codes, strict=True)):
        if at == time_begins or (at > time_begins and codes[at - 1]):
            text += "(?:"
            optional += 1
        # ISO 8601 writes a T where most write a blank.
        text += r"(?:T|\s*)" if at == time_begins and piece.isspace() else _piece(piece, code, seen)
    timed = optional or not days
    rest = _REST_OF_TIME if timed else _REST_OF_DATE
    return re.compile(text + ")?" * optional + rest, re.IGNORECASE | re.ASCII)


def _piece(piece: str, code: str, seen: set[str]) -> str:
    if piece[0] != "%":
        return r"\s*" if piece.isspace() else re.escape(piece)
    if code not in _PIECES:
        raise ValueError(f"dateformat {piece!r} is not known; use those of strptime")
    found = _PIECES[code]
    if code in seen:
        # A directive that stands twice counts where it stands first.
        return re.sub(r"\(\?P<\w+>", "(?:", found)
    seen.add(code)
    return found


def _moment(parts: dict[str, str]) -> datetime:
    if "s" in parts:
        return EPOCH + timedelta(seconds=int(parts["s"]))
    year = int(parts["Y"]) if "Y" in parts else _century(parts.get("y"))
    fraction = parts.get("fraction") or parts.get("f") or "0"
    moment = datetime(year, _month(parts), int(parts.get("d", "1")), tzinfo=_zone(parts.get("z")))
    if "j" in parts and "d" not in parts:
        moment += timedelta(days=int(parts["j"]) - 1)
    return moment + timedelta(
        hours=_hour(parts),
        minutes=int(parts.get("M", "0")),
        seconds=int(parts.get("S", "0")),
        microseconds=int(fraction[:6].ljust(6, "0")),
    )


def _century(year: str | None) -> int:
    """Return the year of two digits as C has it: 69 and later are of the last century."""
    if year is None:
        return 1970
    return int(year) + (1900 if int(year) >= 69 else 2000)


def _month(parts: dict[str, str]) -> int:
    if "m" in parts:
        return int(parts["m"])
    if "b" not in parts:
        return 1
    start = parts["b"][:3].lower()
    return next(number for number, name in enumerate(MONTHS, 1) if name.startswith(start))


def _hour(parts: dict[str, str]) -> int:
    if "I" not in parts:
        return int(parts.get("H", "0"))
    afternoon = parts.get("p", "am")[0].lower() == "p"
    return int(parts["I"]) % 12 + (12 if afternoon else 0)


def _zone(text: str | None) -> timezone:
    if text is None or text.upper() in {"Z", "UTC", "GMT"}:
        return UTC
    digits = text[1:].replace(":", "")
    hours, minutes, seconds = (int(digits[at : at + 2] or 0) for at in (0, 2, 4))
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return timezone(-offset if text[0] == "-" else offset)
