"""A row of CSV, or an object of JSON, to an event, as a layout says."""

from collections.abc import Callable, Sequence
from typing import Any

from espha.model.events import BadRecord, Event, Value
from espha.model.project import Field, Window
from espha.model.types import checker, parser
from espha.records.layout import Layout
from espha.records.text import decoder, read_flags, read_opcode
from espha.windows.source.spec import SourceWindow


def defaults(layout: Layout) -> tuple[str, str]:
    """Return opcode and flags of rows that have none."""
    return ("P" if layout.upsert else "I", "P" if layout.partial else "N")


def left_out(window: Window, layout: Layout) -> int | None:
    """Return the place of the key field that has no column; None: all fields have one."""
    autogen = isinstance(window, SourceWindow) and window.autogen_key
    if not autogen or layout.autogen_field:
        return None
    return next(place for place, field in enumerate(window.fields) if field.key)


def csv_reader(window: Window, layout: Layout) -> Callable[[Sequence[str]], Event]:
    """Return the function that makes events of rows.

    Args:
        window: the source window.
        layout: which columns the rows have.

    The function raises BadRecord: another number of columns, or one of another type.
    """
    decode = decoder(window.fields, layout.date_format or None)
    width = len(window.fields) - (0 if layout.autogen_field else 1)
    missing = left_out(window, layout)

    def read(columns: Sequence[str]) -> Event:
        opcode, flags = defaults(layout)
        columns = list(columns)
        if layout.opcode and columns:
            opcode = columns.pop(0)
        # A file without opcodes seldom has flags, though nobody said so.
        if layout.flags and columns and (layout.opcode or len(columns) != width):
            flags = columns.pop(0)
        if missing is not None:
            columns.insert(missing, "")
        return decode(opcode, flags, columns)

    return read


def json_reader(fields: Sequence[Field], layout: Layout) -> Callable[[dict[str, Any]], Event]:
    """Return the function that makes events of JSON objects, with a BadRecord for others."""
    default = defaults(layout)
    readers = [(field.name, _json_value(field, layout.date_format)) for field in fields]

    def read(content: dict[str, Any]) -> Event:
        inner = content.get("event")
        if len(content) == 1 and isinstance(inner, dict):
            content = inner
        opcode, flags = (
            str(content.get(name) or other)
            for name, other in zip(("opcode", "flags"), default, strict=True)
        )
        values = []
        for name, convert in readers:
            try:
                values.append(convert(content.get(name)))
            except ValueError as error:
                raise BadRecord(f"field {name}: {error}") from None
        return Event(read_opcode(opcode), read_flags(flags), tuple(values))

    return read


def _json_value(field: Field, date_format: str) -> Callable[[Any], Value]:
    check, parse = checker(field.type), parser(field.type, date_format or None)

    def convert(value: Any) -> Value:
        if isinstance(value, bool):
            value = str(value).lower() if field.type == "string" else int(value)
        if isinstance(value, str):
            return parse(value)
        if field.type == "string" and isinstance(value, int | float):
            return str(value)
        return check(value)

    return convert
