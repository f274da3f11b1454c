"""How values that are made of a few others are written, and made again."""

import base64
import collections
import datetime
import decimal
import fractions
import itertools
import random
import re
import struct
import sys
import types
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from espha.scripts.process.given import Date, Datetime, Random
from espha.scripts.process.sets import Frozen, Ordered

FACTORIES: Final = {
    factory.__name__: factory
    for factory in (int, float, str, bool, list, dict, tuple, collections.deque, Ordered,
                    collections.Counter, collections.OrderedDict)
}  # fmt: skip
"""What a defaultdict can make, apart from what the script has defined."""


class Kind(NamedTuple):
    """One type whose values cannot change.

    Attributes:
        parts: returns what a value is made of.
        make: makes the value of its parts.
    """

    parts: Callable[[Any], list[Any]]
    make: Callable[..., Any]


def _date_parts(value: Any) -> list[Any]:
    return [value.year, value.month, value.day]


def _moment_parts(value: Any) -> list[Any]:
    return [*_date_parts(value), *_time_parts(value)]


def _time_parts(value: datetime.time) -> list[Any]:
    return [value.hour, value.minute, value.second, value.microsecond, value.tzinfo, value.fold]


def _timed(class_: Any) -> Callable[..., Any]:
    return lambda *parts: class_(*parts[:-1], fold=parts[-1])


def _generator(class_: type[random.Random]) -> Callable[..., random.Random]:
    def make(*state: Any) -> random.Random:
        made = class_(0)
        made.setstate(state)
        return made

    return make


def _reduced(value: Any) -> list[Any]:
    _, parts = value.__reduce__()
    return list(parts)


KINDS: Final[dict[str, tuple[type, Kind]]] = {
    "bytes": (bytes, Kind(lambda v: [base64.b64encode(v).decode()], base64.b64decode)),
    "complex": (complex, Kind(lambda v: [v.real, v.imag], complex)),
    "Decimal": (decimal.Decimal, Kind(lambda v: [str(v)], decimal.Decimal)),
    "Fraction": (
        fractions.Fraction, Kind(lambda v: [v.numerator, v.denominator], fractions.Fraction)
    ),
    "datetime": (datetime.datetime, Kind(_moment_parts, _timed(datetime.datetime))),
    "Datetime": (Datetime, Kind(_moment_parts, _timed(Datetime))),
    "date": (datetime.date, Kind(_date_parts, datetime.date)),
    "Date": (Date, Kind(_date_parts, Date)),
    "time": (datetime.time, Kind(_time_parts, _timed(datetime.time))),
    "timedelta": (
        datetime.timedelta,
        Kind(lambda v: [v.days, v.seconds, v.microseconds], datetime.timedelta),
    ),
    "timezone": (datetime.timezone, Kind(lambda v: [v.utcoffset(None)], datetime.timezone)),
    "Struct": (struct.Struct, Kind(lambda v: [v.format], struct.Struct)),
    "Pattern": (re.Pattern, Kind(lambda v: [v.pattern, v.flags], re.compile)),
    "range": (range, Kind(lambda v: [v.start, v.stop, v.step], range)),
    "slice": (slice, Kind(lambda v: [v.start, v.stop, v.step], slice)),
    "Random": (Random, Kind(lambda v: list(v.getstate()), _generator(Random))),
    "count": (itertools.count, Kind(_reduced, itertools.count)),
    "frozenset": (Frozen, Kind(lambda v: [list(v)], Frozen)),
}  # fmt: skip
"""Values made of others, by the name of the kind."""

UNCHANGING: Final = frozenset(
    type_ for name, (type_, _) in KINDS.items() if name not in ("Random", "count", "frozenset")
)
"""Types whose values can never change, nor anything in them."""

LIMITS: Final = tuple(
    getattr(type_, name)
    for type_ in (datetime.datetime, datetime.date, datetime.time, datetime.timedelta)
    for name in ("min", "max", "resolution")
)
"""Values that are there in each process, as one object."""

_NAMES: Final = {type_: name for name, (type_, _) in KINDS.items()}

SEQUENCES: Final[dict[type, Callable[[], Any]]] = {
    list: list, Ordered: Ordered, bytearray: bytearray,
}  # fmt: skip
MAPPINGS: Final[dict[type, Callable[[], Any]]] = {
    dict: dict, collections.OrderedDict: collections.OrderedDict,
    collections.Counter: collections.Counter, types.SimpleNamespace: types.SimpleNamespace,
}  # fmt: skip

BASES: Final[dict[str, Any]] = {
    base.__name__: base for base in (dict, list, tuple, str, int, float, bytes)
}
"""What a script's classes can be derived from so that their objects are kept."""


def kind_of(value: Any) -> tuple[str, Kind] | None:
    """Return the kind of a value and its name; None: it is of none."""
    name = _NAMES.get(type(value))
    if name is not None:
        return name, KINDS[name][1]
    return _loaded_kind(value)


def make(name: str, parts: list[Any]) -> Any:
    """Make a value of its parts."""
    kind = KINDS[name][1] if name in KINDS else _LOADED[name][1]
    return kind.make(*parts)


def _numpy_array(dtype: str, shape: list[int], content: str) -> Any:
    numpy = sys.modules["numpy"]
    flat = numpy.frombuffer(base64.b64decode(content), dtype=dtype)
    return flat.reshape(shape).copy()


def _array_parts(value: Any) -> list[Any]:
    return [value.dtype.str, list(value.shape), base64.b64encode(value.tobytes()).decode()]


def _uuid(text: str) -> Any:
    return sys.modules["uuid"].UUID(text)


_LOADED: Final[dict[str, tuple[str, Kind]]] = {
    "UUID": ("uuid", Kind(lambda v: [str(v)], _uuid)),
    "ndarray": ("numpy", Kind(_array_parts, _numpy_array)),
    "generic": ("numpy", Kind(_array_parts, lambda *parts: _numpy_array(*parts)[()])),
}
"""Kinds of modules that are there only if the script imports them."""


def _of_objects(value: Any) -> bool:
    return bool(getattr(getattr(value, "dtype", None), "hasobject", False))


def _loaded_kind(value: Any) -> tuple[str, Kind] | None:
    for name, (module, kind) in _LOADED.items():
        type_ = getattr(sys.modules.get(module), name, None)
        if type_ and isinstance(value, type_) and not _of_objects(value):
            return name, kind
    return None
