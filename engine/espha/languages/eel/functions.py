"""The functions of the language, by name.

All of them are total: they raise for no value, and give null where there is no result. What needs
more than values (the clock, the types of its arguments) is in `espha.languages.eel.expressions`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from espha.languages.eel import dates, numbers, strings

Cost = Callable[..., int]
"""How many steps a function takes for certain values."""


@dataclass(frozen=True, slots=True)
class Function:
    """One function.

    Attributes:
        takes: one letter an argument: n number, s string, d date, v any value.
        gives: the type of its result; "same" is that of the first argument, "common" that which
            all arguments can be cast to.
        apply: computes it.
        needed: how many arguments must be there.
        more: whether the last may be repeated.
        nulls: whether it sees nulls; else a null makes the result null.
        cost: how many steps it takes, for those whose work grows with the values. None: not
            worth counting.
    """

    takes: str
    gives: str
    apply: Callable[..., Any]
    needed: int
    more: bool = False
    nulls: bool = False
    cost: Cost | None = None


def _one(
    takes: str,
    gives: str,
    apply: Callable[..., Any],
    *,
    nulls: bool = False,
    cost: Cost | None = None,
) -> Function:
    return Function(takes, gives, apply, len(takes), nulls=nulls, cost=cost)


def by_length(*values: Any) -> int:
    """Return the steps of a function that goes through its first argument."""
    return len(values[0]) // 1000 if isinstance(values[0], str) else 0


def _by_character(*values: Any) -> int:
    return 1 + len(values[0]) // 100


def _by_product(one: str, two: str) -> int:
    return 1 + len(one) * len(two) // 50


def _number(function: Callable[[float], float]) -> Function:
    return _one("n", "double", numbers.total(function))


def _part(name: str) -> Function:
    return _one("d", "int", lambda seconds: dates.part_of(name, seconds))


_ROUND: Final = Function("nn", "same", numbers.round_half_away, 1)
_UPPER: Final = _one("s", "string", lambda text: strings.bounded(text.upper()))
_LOWER: Final = _one("s", "string", lambda text: strings.bounded(text.lower()))
_REPLACE: Final = Function("sssn", "string", strings.replace, 3, cost=_by_character)
_LENGTH: Final = _one("s", "int", len)
_POWER: Final = _one("nn", "double", numbers.power)
_MID: Final = Function("snn", "string", strings.middle, 2)

FUNCTIONS: Final[dict[str, Function]] = {
    "abs": _one("n", "same", numbers.absolute),
    "ceil": _one("n", "same", numbers.ceiling),
    "floor": _one("n", "same", numbers.floor),
    "round": _ROUND,
    "trunc": _one("n", "same", numbers.truncated),
    "power": _POWER,
    "pow": _POWER,
    "sqrt": _number(math.sqrt),
    "exp": _number(math.exp),
    "log": Function("nn", "double", numbers.logarithm, 1),
    "log10": _number(math.log10),
    "sin": _number(math.sin),
    "cos": _number(math.cos),
    "tan": _number(math.tan),
    "asin": _number(math.asin),
    "acos": _number(math.acos),
    "atan": _number(math.atan),
    "sign": _one("n", "int", numbers.sign),
    "min": Function("n", "common", numbers.smallest, 1, more=True, nulls=True),
    "max": Function("n", "common", numbers.largest, 1, more=True, nulls=True),
    "isnull": _one("v", "int", lambda value: int(value is None), nulls=True),
    "isblank": _one("v", "int", strings.is_blank, nulls=True),
    "isnumber": _one("v", "int", strings.is_number, nulls=True),
    "isalpha": _one("s", "int", strings.is_alpha, cost=_by_character),
    "match_string": _one("ss", "int", strings.match_string, cost=_by_product),
    "left": _one("sn", "string", strings.left),
    "right": _one("sn", "string", strings.right),
    "mid": _MID,
    "substr": _MID,
    "upper": _UPPER,
    "toupper": _UPPER,
    "lower": _LOWER,
    "tolower": _LOWER,
    "trim": _one("s", "string", str.strip),
    "ltrim": _one("s", "string", str.lstrip),
    "rtrim": _one("s", "string", str.rstrip),
    "instr": Function("ssn", "int", strings.place_of, 2, cost=_by_character),
    "length": _LENGTH,
    "len": _LENGTH,
    "replace": _REPLACE,
    "repeat": _one("sn", "string", strings.repeat),
    "reverse": _one("s", "string", lambda text: text[::-1]),
    "edit_distance": _one("ss", "int", strings.edit_distance, cost=_by_product),
    "compare": Function("ssn", "int", strings.compare, 2),
    "has_control_chars": _one("s", "int", strings.has_control_chars, cost=_by_character),
    "pattern": _one("s", "string", strings.shape, cost=_by_character),
    "proper": _one("s", "string", strings.proper, cost=_by_character),
    "sort": Function("snn", "string", strings.sort, 1, cost=_by_character),
    "sort_words": Function("snn", "string", strings.sort_words, 1, cost=_by_character),
    "soundex": _one("s", "string", strings.soundex, cost=_by_character),
    "determine_type": _one("s", "string", strings.kind_of),
    "locale": Function("s", "string", lambda *_: "en_US", 0),
    "chr": _one("n", "string", strings.character),
    "asc": _one("s", "int", strings.code_of),
    "formatdate": _one("ds", "string", dates.format_date),
    "year": _part("year"),
    "month": _part("month"),
    "day": _part("day"),
    "hour": _part("hour"),
    "minute": _part("minute"),
    "second": _part("second"),
}

CASTS: Final = {
    "tointeger": "int",
    "todouble": "double",
    "toreal": "double",
    "tostring": "string",
}
"""Functions that turn a value of any type into another type."""

NAMES_OF_TYPES: Final = {
    "int": "integer",
    "double": "real",
    "string": "string",
    "date": "date",
    "stamp": "timestamp",
    "null": "null",
}
"""What typeof() says."""

_ROWS: Final = "an expression gives one value for one event"
_OUTSIDE: Final = "an expression has no files, databases and devices; use a connector"
_QUALITY: Final = "the data quality functions of SAS are not run; use window-python"
_DISTANCE: Final = "use window-geofence, window-lua or window-python"
REFUSED: Final = {
    **dict.fromkeys(("pushrow", "seteof", "readrow", "rowestimate", "setoutputslot"), _ROWS),
    **dict.fromkeys(("fieldcount", "fieldname", "fieldtype", "fieldvalue"), _ROWS),
    **dict.fromkeys(("setfieldvalue", "is_preview_mode"), _ROWS),
    **dict.fromkeys(("dbconnect", "dbdatasources", "dbcursor", "execute", "dir_exists"), _OUTSIDE),
    **dict.fromkeys(("copyfile", "deletefile", "filedate", "filesize", "movefile"), _OUTSIDE),
    **dict.fromkeys(("mkdir", "normsize", "username", "environ", "getvar", "setvar"), _OUTSIDE),
    **dict.fromkeys(("dq_gender", "dq_identify", "dq_match", "dq_parse"), _QUALITY),
    **dict.fromkeys(("dq_standardize", "dq_case", "dq_pattern", "dq_token"), _QUALITY),
    **dict.fromkeys(("geodistance_cosine", "geodistance_haversine"), _DISTANCE),
    "randseed": "its result would differ between engines",
    "vareval": "it would run text as an expression",
    "rand": "its result would differ between engines",
    "random": "its result would differ between engines",
    "guid": "its result would differ between engines",
    "sleep": "an engine does not wait",
}
"""Functions that there are elsewhere and will not be here."""
