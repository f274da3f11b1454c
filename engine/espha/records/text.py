"""Events to CSV and JSON text and back, in Python: what `espha.records.catalyst` has to match."""

import json
import re
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import cache
from typing import Any, Final

from espha.model.events import BadRecord, Event, Value
from espha.model.project import Field, Window
from espha.model.types import ARRAYS, DOUBLES, INTEGERS, checker, formatter, parser, tiny
from espha.records.layout import CsvLayout, Layout, Style
from espha.records.quotes import BLANKS, MAY_NEED_MORE_QUOTES, MAY_NEED_QUOTES, NEEDS_QUOTES
from espha.windows.source.spec import SourceWindow

OPCODE_WORDS: Final = {
    "I": "I", "INSERT": "I", "U": "U", "UPDATE": "U", "P": "P", "UPSERT": "P",
    "D": "D", "DELETE": "D", "SD": "SD", "SAFEDELETE": "SD",
}  # fmt: skip
FLAG_WORDS: Final = {
    "": "N", "N": "N", "NORMAL": "N", "P": "P", "PARTIALUPDATE": "P", "R": "R", "RETENTION": "R",
}  # fmt: skip
"""What opcodes and flags mean, in capitals."""

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
    opcode = OPCODE_WORDS.get(text) or OPCODE_WORDS.get(text.strip().upper())
    if opcode is None:
        raise BadRecord(f"unknown opcode {text[:20]!r}; known are I, U, P, D and SD")
    return opcode


def read_flags(text: str) -> str:
    """Return the flags that `text` means, in any case, as a letter or a word.

    Raises:
        BadRecord: it means none.
    """
    flags = FLAG_WORDS.get(text) or FLAG_WORDS.get(text.strip().upper())
    if flags is None:
        raise BadRecord(f"unknown flags {text[:20]!r}; known are N, P and R")
    return flags


def split(text: str, delimiter: str = ",") -> list[str]:
    """Split one row into cells; blanks around a cell do not count unless they stand in quotes.

    A cell in quotes can hold the delimiter, line breaks, and a quote written twice or behind a
    backslash. Without quotes, a delimiter behind a backslash belongs to the cell.

    Raises:
        BadRecord: a quote is not closed, or something stands behind a closing quote.
    """
    if '"' not in text and f"\\{delimiter}" not in text:
        if text.isprintable() and " " not in text:  # most often there is nothing to strip
            return text.split(delimiter)
        return [cell.strip(BLANKS) for cell in text.split(delimiter)]
    try:
        return _cells(text, delimiter, backslashes=False)
    except BadRecord:
        # A cell may end in a backslash, so that one stands for a quote only where it must.
        if '\\"' not in text:
            raise
        return _cells(text, delimiter, backslashes=True)


def _cells(text: str, delimiter: str, *, backslashes: bool) -> list[str]:
    pattern, cells, start = _cell(delimiter, backslashes), [], 0
    while True:
        match = pattern.match(text, start)
        if match is None:
            raise BadRecord(f"not a row of CSV: a quote at column {start + 1} is not closed well")
        inside, bare, end = match.groups()
        if inside is None:
            cells.append(bare.rstrip(BLANKS).replace(f"\\{delimiter}", delimiter))
        else:
            inside = inside.replace('""', '"')
            cells.append(inside.replace('\\"', '"') if backslashes else inside)
        if not end:
            return cells
        start = match.end()


@cache
def _cell(delimiter: str, backslashes: bool) -> re.Pattern[str]:
    """One cell and the delimiter behind it; possessive, so that it never tries twice."""
    end = re.escape(delimiter)
    blank = f"(?:(?!{end})[\\x00-\\x20])*+"
    inside = r'(?:[^"\\]++|""|\\"|\\)*+' if backslashes else r'(?:[^"]++|"")*+'
    bare = rf'(?!")(?:[^{end}\\]++|\\{end}|\\)*+'
    return re.compile(rf'{blank}(?:"({inside})"{blank}|({bare}))({end}|\Z)', re.DOTALL)


def left_out(window: Window, layout: CsvLayout) -> int | None:
    """Return the place of the key field that has no column; None: all fields have one."""
    autogen = isinstance(window, SourceWindow) and window.autogen_key
    if not autogen or layout.autogen_field:
        return None
    return next(place for place, field in enumerate(window.fields) if field.key)


def widths(window: Window, layout: CsvLayout) -> frozenset[int]:
    """Return how many cells a row can have that lacks nothing and has no more than it needs."""
    width = len(window.fields) - (left_out(window, layout) is not None)
    if layout.opcode:
        return frozenset({width + 1 + layout.flags})
    return frozenset({width, width + layout.flags})


Place = Callable[[Sequence[str]], tuple[str, str, list[str]]]


def placer(window: Window, layout: CsvLayout) -> Place:
    """Return the function that makes (opcode, flags, cells of the fields) of a row's cells.

    Cells that are missing at the end are empty, and cells behind the last field are dropped.
    """
    missing = left_out(window, layout)
    width = len(window.fields) - (missing is not None)
    default_opcode, default_flags = layout.defaults()

    def place(cells: Sequence[str]) -> tuple[str, str, list[str]]:
        opcode, flags, rest = default_opcode, default_flags, list(cells)
        if layout.opcode and rest:
            opcode = rest.pop(0) or default_opcode
        # A file without opcodes seldom has flags, though nobody said so.
        if layout.flags and rest and (layout.opcode or len(rest) != width):
            flags = rest.pop(0)
        rest = rest[:width] + [""] * (width - len(rest))
        if missing is not None:
            rest.insert(missing, "")
        return opcode, flags, rest

    return place


def event_reader(window: Window, layout: Layout) -> Callable[[list[str] | dict[str, Any]], Event]:
    """Return the function that makes events of rows: cells of CSV, or objects of JSON.

    The function raises BadRecord: other columns than the layout says, or a cell of another type.
    """
    place = placer(window, layout)
    decode = decoder(window.fields, layout.date_format or None)
    read_object = json_reader(window.fields, layout)

    def read(content: list[str] | dict[str, Any]) -> Event:
        return read_object(content) if isinstance(content, dict) else decode(*place(content))

    return read


def record_reader(window: Window, layout: Layout) -> Callable[[str], Event]:
    """Return the function that makes an event of the text of one record.

    The function raises BadRecord: not a record of this window; the text says why.
    """
    read = event_reader(window, layout)

    def read_text(text: str) -> Event:
        if layout.strip_nulls:
            text = text.replace("\0", "")
        if not text.strip():
            raise BadRecord("the record is empty")
        if layout.format == "csv":
            return read(split(text.rstrip("\r\n"), layout.delimiter))
        return read(json_object(text))

    return read_text


def json_object(text: str) -> dict[str, Any]:
    """Read an object of JSON.

    Raises:
        BadRecord: it is something else.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise BadRecord(NOT_AN_OBJECT) from None
    if not isinstance(content, dict):
        raise BadRecord(NOT_AN_OBJECT)
    return content


NOT_AN_OBJECT = "not a JSON object"


def json_reader(fields: Sequence[Field], layout: Layout) -> Callable[[dict[str, Any]], Event]:
    """Return the function that makes events of JSON objects, with a BadRecord for others."""
    default = layout.defaults()
    readers = [(field.name, _from_json(field, layout.date_format)) for field in fields]

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


def _from_json(field: Field, date_format: str) -> Callable[[Any], Value]:
    check, parse = checker(field.type), parser(field.type, date_format or None)
    to_text, whole = field.type == "string", field.type in INTEGERS

    def convert(value: Any) -> Value:
        if isinstance(value, str):
            return parse(value)
        if to_text and value is not None:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        if isinstance(value, bool):
            return check(int(value))
        if whole and isinstance(value, float):
            return parse(repr(value))
        return check(value)

    return convert


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
    fields: Sequence[Field], date_format: str = "", precision: int | None = 6
) -> Callable[[Event], str]:
    """Return the function that writes `I,N, v1,v2` for an event: a space behind the flags.

    Args:
        fields: the schema.
        date_format: see `espha.model.types.formatter`.
        precision: decimals of doubles; None: all the digits that they need.
    """
    write_all = [_formatter(field.type, date_format, precision) for field in fields]

    def line(event: Event) -> str:
        opcode, flags, values = event
        cells = [quoted(write(value)) for write, value in zip(write_all, values, strict=True)]
        return f"{opcode},{flags}, {','.join(cells)}"

    return line


def event_writer(fields: Sequence[Field], style: Style) -> Callable[[Event], str]:
    """Return the function that writes an event as a line of CSV or an object of JSON."""
    if style.format == "csv":
        return line_formatter(fields, style.date_format, style.precision)
    writers = [(field.name, _to_json(field.type, style)) for field in fields]

    def line(event: Event) -> str:
        content: dict[str, Any] = {"opcode": event.opcode, "flags": event.flags}
        for (name, write), value in zip(writers, event.values, strict=True):
            content[name] = None if value is None else write(value)
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"))

    return line


def _to_json(type_: str, style: Style) -> Callable[[Any], Any]:
    precision = style.precision
    if type_ in DOUBLES and precision is not None:
        return lambda value: round(value, precision)
    if type_ == "blob" or (style.date_format and type_ in {"date", "stamp"}):
        return formatter(type_, style.date_format)
    return lambda value: value


def canonical_writer(window: Window, layout: CsvLayout) -> Callable[[Sequence[str]], str]:
    """Return the function that writes a row's cells as `opcode,flags,field,…` with whole dates.

    What does not fit (number of cells, type, date) is passed on as it is: the engine decides what
    a bad record is, and puts it into the dead-letter topic.
    """
    place = placer(window, layout)
    dates = {
        number: parser(field.type, layout.date_format)
        for number, field in enumerate(window.fields)
        if layout.date_format and field.type in {"date", "stamp"}
    }

    def write(cells: Sequence[str]) -> str:
        opcode, flags, rest = place(cells)
        for number, parse in dates.items():
            if number < len(rest):
                rest[number] = _ticks(rest[number], parse)
        return quoted_row([opcode, flags, *rest])

    return write


def _ticks(text: str, parse: Callable[[str], Value]) -> str:
    try:
        value = parse(text)
    except ValueError:
        return text
    return "" if value is None else str(value)


def _formatter(type_: str, date_format: str, precision: int | None) -> Callable[[Any], str]:
    if type_ in DOUBLES:
        if precision is None:
            return lambda value: "" if value is None else repr(value)
        return _rounder(precision)
    if type_ in ARRAYS:
        one = _formatter(ARRAYS[type_], "", precision)
        return lambda value: "" if value is None else f"[{';'.join(map(one, value))}]"
    return formatter(type_, date_format)


def _rounder(precision: int) -> Callable[[Any], str]:
    """Return what writes doubles with so many decimals, as Java: the shortest digits, half up."""
    layout, scale, least = f".{precision}f", 10.0**precision, tiny(precision)

    def write(value: float | None) -> str:
        if value is None:
            return ""
        if value and -least < value < least:
            return _digits(value, precision)
        # Python rounds the exact value. That differs where it is long, or near a half.
        if -_LONG < value < _LONG and not 0.499 < abs(value) * scale % 1.0 < 0.501:
            return format(value, layout)
        return _half_up(value, precision)

    return write


def _digits(value: float, count: int) -> str:
    """Write a small double with so many digits and an exponent, without zeros at their end."""
    with localcontext() as context:
        context.prec, context.rounding = count, ROUND_HALF_UP
        digits, exponent = f"{(+Decimal(repr(value))).normalize():e}".split("e-")
    return f"{digits}e-{exponent:0>2}"


def _half_up(value: float, precision: int) -> str:
    with localcontext() as context:
        context.prec = 400
        return f"{Decimal(repr(value)).quantize(Decimal(1).scaleb(-precision), ROUND_HALF_UP):f}"


_LONG = 1e8


def quoted_row(cells: Sequence[str]) -> str:
    """Return cells as a row, in quotes where they need them."""
    row = ",".join(cells)
    # Most rows have nothing that needs quotes, which is soon seen.
    if row.count(",") == len(cells) - 1 and not MAY_NEED_MORE_QUOTES.search(row):
        return row
    return ",".join(map(quoted, cells))


def quoted(cell: str) -> str:
    """Put a cell in quotes if it would not read back without them."""
    # Most cells have none of these, which is soon seen.
    if MAY_NEED_QUOTES.search(cell) and NEEDS_QUOTES.search(cell):
        return '"' + cell.replace('"', '""') + '"'
    return cell
