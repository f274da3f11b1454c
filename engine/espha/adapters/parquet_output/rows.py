"""Events as columns of Arrow."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from espha.model import Field
from espha.model.events import BadRecord, Event
from espha.model.literals import MICROSECOND, SECOND, moment_at

_MOMENT: Final = pa.timestamp("us", tz="UTC")
_KINDS: Final = {
    "int32": pa.int32(), "int64": pa.int64(), "double": pa.float64(), "money": pa.float64(),
    "string": pa.string(), "date": _MOMENT, "stamp": _MOMENT, "blob": pa.binary(),
    "array(i32)": pa.list_(pa.int32()), "array(i64)": pa.list_(pa.int64()),
    "array(dbl)": pa.list_(pa.float64()),
}  # fmt: skip
_TICKS: Final = {"date": SECOND, "stamp": MICROSECOND}

Row = tuple[Any, ...]


def schema_of(fields: Sequence[Field]) -> Any:
    """Return the columns: offset, opcode and flags of the event, then the fields."""
    own = [("espha_offset", pa.int64()), ("opcode", pa.string()), ("flags", pa.string())]
    return pa.schema([*own, *((field.name, _KINDS[field.type]) for field in fields)])


def row_writer(fields: Sequence[Field]) -> Callable[[int, Event], Row]:
    """Return the function that makes the row of an offset and an event; see `schema_of`.

    The function raises BadRecord: a moment is not in the years 1 to 9999.
    """
    moments = [
        (place, field.name, _TICKS[field.type])
        for place, field in enumerate(fields)
        if field.type in _TICKS
    ]

    def row(offset: int, event: Event) -> Row:
        values: list[Any] = list(event.values)
        for place, name, tick in moments:
            value = values[place]
            if value is not None:
                try:
                    values[place] = moment_at(value, tick)
                except OverflowError:
                    sentence = f"field {name}: {value!r} is not in the years 1 to 9999"
                    raise BadRecord(sentence) from None
        return (offset, event.opcode, event.flags, *values)

    return row


def batch_of(rows: Sequence[Row], schema: Any) -> Any:
    """Return rows as a `pyarrow.RecordBatch`."""
    arrays = [
        pa.array(column, kind)
        for column, kind in zip(zip(*rows, strict=True), schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
