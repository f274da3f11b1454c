"""Random events of a window's schema."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from espha.model import Field
from espha.model.events import FLAGS, OPCODES, Event

EVERY = (
    "id*:int64,small:int32,name:string,ratio:double,price:money,at:date,exact:stamp,raw:blob,"
    "few:array(i32),many:array(i64),parts:array(dbl)"
)
"""A schema with a field of each type."""

_INT32 = st.integers(-(2**31), 2**31 - 1)
_INT64 = st.integers(-(2**63), 2**63 - 1)
_DOUBLE = st.floats(allow_nan=False, allow_infinity=False)
_DAY = 86_400
_SECONDS = st.integers(-50_000 * _DAY, 100_000 * _DAY)


def _array(element: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    # An array of one null is written as one of nothing.
    return st.lists(st.none() | element).map(tuple).filter(lambda found: found != (None,))


# An empty text and empty bytes are null on a topic of CSV.
_KINDS: dict[str, st.SearchStrategy[Any]] = {
    "int32": _INT32,
    "int64": _INT64,
    "double": _DOUBLE,
    "money": _DOUBLE,
    "string": st.text(st.characters(codec="utf-8"), min_size=1),
    "date": _SECONDS,
    "stamp": st.integers(-50_000 * _DAY * 10**6, 100_000 * _DAY * 10**6),
    "blob": st.binary(min_size=1),
    "array(i32)": _array(_INT32),
    "array(i64)": _array(_INT64),
    "array(dbl)": _array(_DOUBLE),
}


def events(fields: Sequence[Field]) -> st.SearchStrategy[Event]:
    """Return a strategy for events with these fields; keys are never null."""
    values = (
        _KINDS[field.type] if field.key else st.none() | _KINDS[field.type] for field in fields
    )
    return st.builds(Event, st.sampled_from(OPCODES), st.sampled_from(FLAGS), st.tuples(*values))
