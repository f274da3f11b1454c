"""Rows of files to the events of a source window."""

from collections.abc import Callable
from typing import Any, NamedTuple

from espha.model import Field, Window
from espha.model.columns import csv_reader, defaults
from espha.model.csv import read_flags, read_opcode
from espha.model.events import BadRecord, Event, Value
from espha.model.filesystem import Layout
from espha.model.types import checker, parser
from espha.offline.rows import Raw


class Arrival(NamedTuple):
    """One event on its way to a source window, or the reason why there is none.

    Attributes:
        window: "query/window" of the source.
        origin: the file or connector that it comes from, as a user knows it.
        line: its line there, from 1; 0: there are no lines.
        event: the event; None: there is none.
        reason: why there is none.
    """

    window: str
    origin: str
    line: int
    event: Event | None
    reason: str = ""


Read = Callable[[Raw], Event]
"""Makes an event of a row; raises BadRecord for a row that is none."""


def event_reader(window: Window, layout: Layout) -> Read:
    """Return the function that makes events of a file's rows, as `layout` says."""
    csv, json = csv_reader(window, layout), _json_reader(window.fields, layout)

    def read(raw: Raw) -> Event:
        if raw.reason:
            raise BadRecord(raw.reason)
        return json(raw.content) if isinstance(raw.content, dict) else csv(raw.content)

    return read


def _json_reader(fields: tuple[Field, ...], layout: Layout) -> Callable[[dict[str, Any]], Event]:
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
