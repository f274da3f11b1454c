"""Events as lines of ESP's CSV."""

import csv
from collections.abc import Sequence

from espha.model.events import BadRecord, Event, Value
from espha.model.project import Field
from espha.model.types import format_text, parse_text


def parse_event(line: str, fields: Sequence[Field]) -> Event:
    """Read `opcode,flags,field,…`; blanks behind a comma do not count, an empty cell is null.

    Raises:
        BadRecord: no CSV, other cells than the schema has fields, or a cell of another type.
    """
    cells = _cells(line)
    if len(cells) != len(fields) + 2:
        raise BadRecord(
            f"{len(cells)} cells where the schema wants {len(fields) + 2} (opcode, flags, "
            f"{len(fields)} fields)"
        )
    values = tuple([_value(field, cell) for field, cell in zip(fields, cells[2:], strict=True)])
    return Event(cells[0].strip().upper(), cells[1].strip().upper(), values)


def _cells(line: str) -> list[str]:
    try:
        rows = list(csv.reader([line.rstrip("\r\n")], skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise BadRecord(f"not a line of CSV: {error}") from None
    return rows[0] if rows else []


def _value(field: Field, cell: str) -> Value:
    try:
        return parse_text(field.type, cell)
    except ValueError as error:
        raise BadRecord(f"field {field.name}: {error}") from None


def format_event(event: Event, fields: Sequence[Field]) -> str:
    """Write `I,N, v1,v2`: a space behind the flags, doubles with six decimals, null empty."""
    cells = [
        _quoted(format_text(field.type, value))
        for field, value in zip(fields, event.values, strict=True)
    ]
    return f"{event.opcode},{event.flags}, {','.join(cells)}"


def _quoted(text: str) -> str:
    # Blanks at the ends would be taken for layout; quotes keep them.
    if text != text.strip() or any(letter in text for letter in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text
