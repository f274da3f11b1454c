"""Fields as columns, and events as rows."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC
from typing import Any, Final

from sqlalchemy import BigInteger, Column, DateTime, Double, Integer, LargeBinary, Text

from espha.adapters.config import ConfigError
from espha.model import Field, Window
from espha.model.events import BadRecord, Event
from espha.model.literals import MICROSECOND, SECOND, moment_at

OFFSET, OPCODE, FLAGS = "espha_offset", "opcode", "flags"
"""What a row for each event has before the fields."""

_KINDS: Final[dict[str, Any]] = {
    "int32": Integer, "int64": BigInteger, "double": Double, "money": Double,
    "date": DateTime, "stamp": DateTime, "blob": LargeBinary,
}  # fmt: skip
_TICKS: Final = {"date": SECOND, "stamp": MICROSECOND}

Row = dict[str, Any]


def columns(window: Window, mode: str, *, zones: bool) -> list[Column[Any]]:
    """Return the columns of a window's table.

    Args:
        window: whose fields they are.
        mode: `append` has the offset as its key, `upsert` the window's key.
        zones: moments of the database have a time zone.

    Raises:
        ConfigError: the window has no key, or a field with a name that is taken.
    """
    moment = DateTime(timezone=zones)
    kinds = [moment if field.type in _TICKS else _KINDS.get(field.type, Text) for field in
             window.fields]  # fmt: skip
    if mode == "upsert":
        if not any(field.key for field in window.fields):
            raise ConfigError(f"window {window.path!r} has no key: set the table's mode to append")
        return [
            Column(field.name, kind, primary_key=field.key, autoincrement=False)
            for field, kind in zip(window.fields, kinds, strict=True)
        ]
    taken = {OFFSET, OPCODE, FLAGS} & {field.name.lower() for field in window.fields}
    if taken:
        raise ConfigError(
            f"window {window.path!r} has a field {min(taken)!r}, which a table of mode append "
            "needs for itself; rename the field in the model"
        )
    return [
        Column(OFFSET, BigInteger, primary_key=True, autoincrement=False),
        Column(OPCODE, Text, nullable=False),
        Column(FLAGS, Text, nullable=False),
        *(Column(field.name, kind) for field, kind in zip(window.fields, kinds, strict=True)),
    ]


def row_writer(fields: Sequence[Field], *, zones: bool) -> Callable[[Event], Row]:
    """Return the function that makes the row of an event; see `columns`.

    The function raises BadRecord: a moment is not in the years 1 to 9999.
    """
    writers = [(field.name, _writer(field.type, zones)) for field in fields]

    def row(event: Event) -> Row:
        made = {}
        for (name, write), value in zip(writers, event.values, strict=True):
            try:
                made[name] = None if value is None else write(value)
            except OverflowError:
                raise BadRecord(f"field {name}: {value!r} is not in the years 1 to 9999") from None
        return made

    return row


def _writer(type_: str, zones: bool) -> Callable[[Any], Any]:
    if type_ in _TICKS:
        tick, zone = _TICKS[type_], UTC if zones else None
        return lambda value: moment_at(value, tick).replace(tzinfo=zone)
    if type_.startswith("array"):
        return lambda value: json.dumps(value, separators=(",", ":"))
    return lambda value: value
