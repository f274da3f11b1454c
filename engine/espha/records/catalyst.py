"""CSV and JSON text to events and back, as Catalyst expressions; see `espha.records.text`."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from pyspark import SparkContext
from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.classic.column import Column as ClassicColumn
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from espha.model import Field, Window
from espha.model.dates import plain, written
from espha.model.literals import DATE, NUMBER, WHOLE
from espha.model.types import ARRAYS, only_digits, tiny
from espha.records.layout import Layout, Style
from espha.records.quotes import QUOTES_PATTERN
from espha.records.text import left_out

KINDS: Final[Mapping[str, DataType]] = {
    "int32": IntegerType(),
    "int64": LongType(),
    "double": DoubleType(),
    "money": DoubleType(),
    "string": StringType(),
    "date": LongType(),
    "stamp": LongType(),
    "blob": BinaryType(),
    "array(i32)": ArrayType(IntegerType()),
    "array(i64)": ArrayType(LongType()),
    "array(dbl)": ArrayType(DoubleType()),
}
"""Catalyst's type for each ESP type; dates are seconds, stamps microseconds since 1970."""

_TEXT = StringType()
_BAD = "bad"
_CSV_READ = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _BAD,
    "escape": '"',
    "ignoreLeadingWhiteSpace": "true",
    "ignoreTrailingWhiteSpace": "true",
}
# Java calls the very end \z; its \Z stands before a last line break, too.
_QUOTES = QUOTES_PATTERN.replace(r"\Z", r"\z")
_JSON_READ = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BAD}
_PATTERN_LETTERS = {
    "Y": "yyyy", "y": "yy", "m": "MM", "d": "dd", "H": "HH", "M": "mm", "S": "ss",
    "f": "SSSSSS", "j": "DDD", "b": "MMM", "B": "MMMM", "I": "hh", "p": "a", "a": "EEE",
    "A": "EEEE", "%": "'%'",
}  # fmt: skip
_MOST_CELLS = 20_000
"""Spark's parser of CSV takes 20,480."""
_FIRST_S, _LAST_S = -62_135_596_800, 253_402_300_799
"""Seconds since 1970 of the first and the last moment with a year from 1 to 9999."""
_READ_BY_PYTHON = frozenset("yIpaA")
"""Directives that Java reads otherwise than C: its century is another one, for example."""
_SHORT = {"MM": "M", "dd": "d", "HH": "H", "mm": "m", "ss": "s", "DDD": "D"}
# Java's $ also stands before a last line break.
_DATE = rf"\A(?:{DATE})\z"
_WHOLE = rf"\A(?:{WHOLE})\z"
_BASE64 = r"\A(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\z"
_NUMBER = rf"\A(?:{NUMBER})\z"


class CodecError(ValueError):
    """A connector asks for a format that cannot be read or written; the text names it."""


def parse(window: Window, how: Layout, value: Column) -> Column:
    """Return a struct of an input record's text, with a column `bad` at the end.

    Dates, and what CSV has no type for, are still text: `read_dates` comes next, on the column
    that this one became, so that the text is parsed once and not once a field.
    """
    json = how.format == "json"
    columns: list[tuple[str, DataType]] = [("opcode", _TEXT), ("flags", _TEXT)]
    for field in window.fields:
        still_text = _is_text(field, how.date_format, json)
        columns.append((field.name, _TEXT if still_text else KINDS[field.type]))
    if json:
        return _parsed("json", value, columns, _JSON_READ)
    # By place: a field may have the name of one of our own columns.
    columns = [(f"c{place}", kind) for place, (_, kind) in enumerate(columns)]
    missing = left_out(window, how)
    if missing is not None:
        del columns[missing + 2]
    first, *others = [
        _parsed("csv", text, columns, {**_CSV_READ, "sep": how.delimiter})
        for text in _completed(value, how)
    ]
    return sf.when(first[_BAD].isNull(), first).otherwise(*others) if others else first


def _completed(value: Column, how: Layout) -> list[Column]:
    """Return the text with the columns before the fields; a second way if they can lack in two."""
    if how.strip_nulls:
        value = sf.translate(value, "\0", "")
    opcode, flags = how.defaults()
    sep = how.delimiter
    # What a backslash hides is for Python: an empty record is read again there.
    hidden = value.contains('\\"') | value.contains(f"\\{sep}")
    # So is what has more cells than Spark's parser takes: it would end the job.
    cells = sf.length(value) - sf.length(sf.replace(value, sf.lit(sep), sf.lit("")))
    wide = (sf.octet_length(value) > _MOST_CELLS) & (cells > _MOST_CELLS * len(sep))
    value = sf.when(hidden | wide, "").otherwise(value)
    if how.opcode and how.flags:
        return [value]
    if how.opcode:
        at = sf.instr(value, sep)
        rest = value.substr(at + 1, sf.length(value))
        whole = sf.concat(value.substr(sf.lit(1), at), sf.lit(f"{flags}{sep}"), rest)
        return [sf.when(at > 0, whole).otherwise(value)]
    heads = [f"{opcode}{sep}{flags}{sep}"]
    if how.flags:
        # A topic without opcodes seldom has flags, though nobody said so.
        heads.insert(0, f"{opcode}{sep}")
    # An empty record stays one.
    return [
        sf.when(sf.trim(value) == "", value).otherwise(sf.concat(sf.lit(head), value))
        for head in heads
    ]


def read_dates(window: Window, how: Layout, parsed: Column, value: Column) -> Column:
    """Return the struct `opcode, flags, <fields>, bad` of what `parse` gave.

    What it left as text becomes values; text of no value makes the record bad.
    """
    json = how.format == "json"
    missing = None if json else left_out(window, how)
    texts = [_is_text(field, how.date_format, json) for field in window.fields]
    empty = [json and field.type in {"string", "blob"} for field in window.fields]
    if missing is None and not any(texts) and not any(empty):
        return parsed
    cells, lost = [], sf.lit(False)
    for place, field in enumerate(window.fields):
        name = field.name if json else f"c{place + 2}"
        if place == missing:
            cell = sf.lit(None).cast(KINDS[field.type])
        elif texts[place]:
            cell = _value(parsed[name], field, how.date_format)
            lost = lost | (parsed[name].isNotNull() & cell.isNull())
        elif empty[place]:
            # Text without characters is null, as it is in CSV.
            cell = sf.when(sf.length(parsed[name]) > 0, parsed[name])
        else:
            cell = parsed[name]
        cells.append(cell.alias(name))
    first, second = ("opcode", "flags") if json else ("c0", "c1")
    return sf.struct(
        parsed[first].alias("opcode"),
        parsed[second].alias("flags"),
        *cells,
        sf.coalesce(parsed[_BAD], sf.when(lost, value)).alias(_BAD),
    )


def _parsed(
    format: str, text: Column, columns: list[tuple[str, DataType]], options: Mapping[str, str]
) -> Column:
    """Return what Spark's from_csv or from_json would; see Parsed.java."""
    fields = [StructField(name, kind) for name, kind in (*columns, (_BAD, _TEXT))]
    jvm, own = cast("Any", SparkContext._jvm), cast("Any", text)
    read = getattr(jvm.dev.espha.Parsed, format)
    return ClassicColumn(read(own._jc, StructType(fields).json(), dict(options)))


def encode(fields: Sequence[Field], style: Style, event: Column) -> Column:
    """Return the text of an output record from the struct `opcode, flags, f0 …`."""
    cells = [
        _write_date(event[f"f{place}"], field, style.date_format)
        for place, field in enumerate(fields)
    ]
    if style.format == "json":
        named = [cell.alias(field.name) for cell, field in zip(cells, fields, strict=True)]
        return sf.to_json(
            sf.struct(event["opcode"].alias("opcode"), *named), {"ignoreNullFields": "false"}
        )
    texts = [_text(cell, field, style.precision) for cell, field in zip(cells, fields, strict=True)]
    # format_string writes a null as the word; a null is an empty cell.
    present = [
        sf.when(event[f"f{place}"].isNotNull(), text).otherwise("")
        for place, text in enumerate(texts)
    ]
    line = sf.concat_ws(",", *present)
    return sf.concat(event["opcode"], sf.lit(","), event["flags"], sf.lit(", "), line)


def _text(cell: Column, field: Field, precision: int | None) -> Column:
    """Write one value; see `espha.model.types.formatter`. Without precision: with all digits."""

    def number(value: Column) -> Column:
        double = "dbl" in field.type or field.type in ("double", "money")
        if precision is None or not double:
            return value.cast(_TEXT)
        plain = sf.format_string(f"%.{precision}f", value)
        if not tiny(precision):
            return plain
        digits = sf.format_string(f"%.{precision - 1}e", value)
        small = (sf.abs(value) < tiny(precision)) & (value != 0)
        return sf.when(small, sf.regexp_replace(digits, r"\.?0+e", "e")).otherwise(plain)

    if field.type == "blob":
        return sf.base64(cell)
    if field.type in ARRAYS:
        # A null is written as the word unless it is left out first.
        parts = sf.transform(cell, lambda value: sf.when(value.isNotNull(), number(value)))
        return sf.concat(sf.lit("["), sf.array_join(parts, ";", ""), sf.lit("]"))
    return _quoted(cell) if field.type in ("string", "date", "stamp") else number(cell)


def _quoted(cell: Column) -> Column:
    """Quote text where `espha.records.text.quoted` does; `to_csv` forgets blanks at ends."""
    text = cell.cast(_TEXT)
    inside = sf.replace(text, sf.lit('"'), sf.lit('""'))
    return sf.when(text.rlike(_QUOTES), sf.concat(sf.lit('"'), inside, sf.lit('"'))).otherwise(text)


def java_pattern(strptime_format: str, *, reading: bool = False) -> str:
    """Translate `%Y-%m-%d` into the pattern that Catalyst wants, `yyyy-MM-dd`.

    Args:
        strptime_format: the format.
        reading: one digit may stand where two are written, as `strptime` has it, if it is clear
            where the number ends.

    Raises:
        CodecError: a directive has no counterpart.
    """
    pieces: list[tuple[bool, str]] = []
    letters = iter(plain(strptime_format))
    for letter in letters:
        if letter == "%":
            directive = next(letters, "")
            if directive not in _PATTERN_LETTERS or (reading and directive in _READ_BY_PYTHON):
                raise CodecError(f"dateformat {strptime_format!r}: %{directive} is not supported")
            pieces.append((True, _PATTERN_LETTERS[directive]))
        else:
            pieces.append((False, f"'{letter}'" if letter.isalpha() else letter.replace("'", "''")))
    pattern = ""
    for place, (is_directive, piece) in enumerate(pieces):
        beside = [
            near for near, _ in (*pieces[max(0, place - 1) : place], *pieces[place + 1 : place + 2])
        ]
        short = reading and is_directive and not any(beside)
        pattern += _SHORT.get(piece, piece) if short else piece
    return pattern


def _is_text(field: Field, date_format: str, json: bool) -> bool:
    """Say whether a field is read as text first."""
    if field.type in ("date", "stamp"):
        return not json or bool(date_format)
    return not json and (field.type == "blob" or field.type in ARRAYS)


def _value(cell: Column, field: Field, date_format: str) -> Column:
    """Read a value from text as `espha.model.types.parser` does; null if it is none."""
    if field.type == "blob":
        # Catalyst alone would take base64 that lacks its end.
        return sf.when(cell.rlike(_BASE64), sf.try_to_binary(cell, sf.lit("base64")))
    if field.type in ARRAYS:
        return _read_array(cell, field)
    if not date_format:
        time = sf.when(cell.rlike(_DATE), sf.try_to_timestamp(cell))
    else:
        time = _read_time(cell, date_format)
    ticks = sf.unix_seconds(time) if field.type == "date" else sf.unix_micros(time)
    if date_format and only_digits(date_format):
        return ticks
    return sf.coalesce(sf.when(cell.rlike(_WHOLE), cell.try_cast(LongType())), ticks)


def _read_time(cell: Column, date_format: str) -> Column:
    """Read a time in a format; what Java has no pattern for is left to Python, as null."""
    try:
        pattern = java_pattern(date_format, reading=True)
    except CodecError:
        return sf.lit(None).cast(TimestampType())
    return sf.try_to_timestamp(cell, sf.lit(pattern))


def _read_array(cell: Column, field: Field) -> Column:
    whole = KINDS[field.type]
    kind = cast("ArrayType", whole).elementType
    inner = sf.substring(cell, 2, sf.length(cell) - 2)
    texts = sf.split(inner, ";")
    pattern = _NUMBER if kind == DoubleType() else _WHOLE

    def good(text: Column) -> Column:
        empty = sf.trim(text) == ""
        return empty | (sf.trim(text).rlike(pattern) & sf.trim(text).try_cast(kind).isNotNull())

    values = sf.when(sf.trim(inner) == "", sf.array().cast(whole)).otherwise(
        sf.transform(texts, lambda text: sf.trim(text).try_cast(kind))
    )
    fine = sf.forall(texts, good) & cell.startswith("[") & cell.endswith("]")
    return sf.when(fine & (sf.length(cell) >= 2), values)


def _write_date(cell: Column, field: Field, date_format: str) -> Column:
    if not date_format or field.type not in ("date", "stamp"):
        return cell
    stamp = field.type == "stamp"
    ticks = 1_000_000 if stamp else 1
    # Others are written as numbers, as Python does it; Spark would end the job for some.
    fits = sf.when(cell.between(_FIRST_S * ticks, (_LAST_S + 1) * ticks - 1), cell)
    time: Any = sf.timestamp_micros(fits) if stamp else sf.timestamp_seconds(fits)
    text = sf.date_format(time, java_pattern(written(date_format, stamp=stamp)))
    return sf.coalesce(text, cell.cast(_TEXT))
