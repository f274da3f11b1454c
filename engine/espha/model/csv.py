"""Events as lines of ESP's CSV."""

import csv
import re
from collections.abc import Callable, Sequence

from espha.model.events import BadRecord, Event
from espha.model.project import Field
from espha.model.types import formatter, parser

_OPCODES = {
    "I": "I", "INSERT": "I", "U": "U", "UPDATE": "U", "P": "P", "UPSERT": "P",
    "D": "D", "DELETE": "D", "SD": "SD", "SAFEDELETE": "SD",
}  # fmt: skip
_FLAGS = {
    "": "N", "N": "N", "NORMAL": "N", "P": "P", "PARTIALUPDATE": "P", "R": "R", "RETENTION": "R",
}  # fmt: skip

Decode = Callable[[str, str, Sequence[str]], Event]


def decoder(fields: Sequence[Field], date_format: str | None = None) -> Decode:
    """Return the function that makes an event of (opcode, flags, cells of the fields).

    Args:
        fields: the schema, one cell a field.
        date_format: see `espha.model.types.parser`.

    The function raises BadRecord: another number of cells, or one of another type.
    """
    parsers = [parser(field.type, date_format) for field in fields]

    def decode(opcode: str, flags: str, cells: Sequence[str]) -> Event:
        if len(cells) != len(parsers):
            raise BadRecord(f"{len(cells)} values where the schema has {len(parsers)} fields")
        try:
            values = tuple([parse(cell) for parse, cell in zip(parsers, cells, strict=True)])
        except ValueError:
            raise BadRecord(_reason(cells)) from None
        return Event(read_opcode(opcode), read_flags(flags), values)

    def _reason(cells: Sequence[str]) -> str:
        for field, parse, cell in zip(fields, parsers, cells, strict=True):
            try:
                parse(cell)
            except ValueError as error:
                return f"field {field.name}: {error}"
        raise AssertionError("no cell was refused")

    return decode


def read_opcode(text: str) -> str:
    """Return the opcode that `text` means, in any case, as a letter or a word.

    Raises:
        BadRecord: it means none.
    """
    opcode = _OPCODES.get(text) or _OPCODES.get(text.strip().upper())
    if opcode is None:
        raise BadRecord(f"unknown opcode {text[:20]!r}; known are I, U, P, D and SD")
    return opcode


def read_flags(text: str) -> str:
    """Return the flags that `text` means, in any case, as a letter or a word.

    Raises:
        BadRecord: it means none.
    """
    flags = _FLAGS.get(text) or _FLAGS.get(text.strip().upper())
    if flags is None:
        raise BadRecord(f"unknown flags {text[:20]!r}; known are N, P and R")
    return flags


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
    return decoder(fields)(cells[0], cells[1], cells[2:])


def _cells(line: str) -> list[str]:
    try:
        rows = list(csv.reader([line.rstrip("\r\n")], skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise BadRecord(f"not a line of CSV: {error}") from None
    return rows[0] if rows else []


def format_event(event: Event, fields: Sequence[Field]) -> str:
    """Write one event; see `line_formatter`."""
    return line_formatter(fields)(event)


def line_formatter(
    fields: Sequence[Field], date_format: str = "", precision: int = 6
) -> Callable[[Event], str]:
    """Return the function that writes `I,N, v1,v2` for an event: a space behind the flags.

    Args:
        fields: the schema.
        date_format: see `espha.model.types.formatter`.
        precision: decimals of doubles.
    """
    formatters = [formatter(field.type, date_format, precision) for field in fields]

    def line(event: Event) -> str:
        opcode, flags, values = event
        cells = [write(value) for write, value in zip(formatters, values, strict=True)]
        text = ",".join(cells)
        if text.count(",") >= len(cells) or _LAYOUT.search(text):
            text = ",".join(map(quoted, cells))
        return f"{opcode},{flags}, {text}"

    return line


def quoted(cell: str) -> str:
    """Put a cell in quotes if it would not read back without them."""
    # Blanks at the ends would be taken for layout; quotes keep them.
    if "," in cell or '"' in cell or "\n" in cell or "\r" in cell or cell != cell.strip():
        return '"' + cell.replace('"', '""') + '"'
    return cell


_LAYOUT = re.compile(r'["\s]')
"""What may need quotes, beside a comma."""
