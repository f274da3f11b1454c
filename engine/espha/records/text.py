"""Events as lines of ESP's CSV."""

import re
from collections.abc import Callable, Sequence
from functools import cache

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


def split(text: str, delimiter: str = ",") -> list[str]:
    """Split one row into cells; blanks around a cell do not count unless they stand in quotes.

    A cell in quotes can hold the delimiter, line breaks, and a quote written twice.

    Raises:
        BadRecord: a quote is not closed, or something stands behind a closing quote.
    """
    if '"' not in text:
        return [cell.strip(_BLANKS) for cell in text.split(delimiter)]
    pattern, cells, start = _cell(delimiter), [], 0
    while True:
        match = pattern.match(text, start)
        if match is None:
            raise BadRecord(f"not a row of CSV: a quote at column {start + 1} is not closed well")
        inside, plain, end = match.groups()
        cells.append(plain.rstrip(_BLANKS) if inside is None else inside.replace('""', '"'))
        if not end:
            return cells
        start = match.end()


_BLANKS = "".join(map(chr, range(33)))
"""Everything up to the blank, as Catalyst has it."""


@cache
def _cell(delimiter: str) -> re.Pattern[str]:
    """One cell and the delimiter behind it; possessive, so that it never tries twice."""
    end = re.escape(delimiter)
    blank = f"(?:(?!{end})[\\x00-\\x20])*+"
    return re.compile(
        rf'{blank}(?:"((?:[^"]++|"")*+)"{blank}|((?!")[^{end}]*+))({end}|\Z)', re.DOTALL
    )


def parse_event(line: str, fields: Sequence[Field]) -> Event:
    """Read `opcode,flags,field,…`; see `split` and `decoder`.

    Raises:
        BadRecord: no CSV, other cells than the schema has fields, or a cell of another type.
    """
    cells = split(line.rstrip("\r\n"))
    if len(cells) != len(fields) + 2:
        raise BadRecord(
            f"{len(cells)} cells where the schema wants {len(fields) + 2} (opcode, flags, "
            f"{len(fields)} fields)"
        )
    return decoder(fields)(cells[0], cells[1], cells[2:])


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
    write_all = [formatter(field.type, date_format, precision) for field in fields]

    def line(event: Event) -> str:
        opcode, flags, values = event
        cells = [quoted(write(value)) for write, value in zip(write_all, values, strict=True)]
        return f"{opcode},{flags}, {','.join(cells)}"

    return line


def quoted(cell: str) -> str:
    """Put a cell in quotes if it would not read back without them."""
    # Blanks at the ends would be taken for layout; quotes keep them.
    if _LAYOUT.search(cell) and ("," in cell or '"' in cell or "\n" in cell or _edged(cell)):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def _edged(cell: str) -> bool:
    return cell != cell.strip(_BLANKS)


_LAYOUT = re.compile(r'[",\x00-\x20]')
"""What may need quotes."""
