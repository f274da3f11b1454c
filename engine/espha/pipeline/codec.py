"""Catalyst expressions that decode input records and encode output records."""

from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sf

from espha.model import Field, Window

SQL_TYPES = {
    "int32": "int",
    "int64": "bigint",
    "double": "double",
    "money": "double",
    "string": "string",
    "date": "bigint",
    "stamp": "bigint",
}
"""Catalyst's type for each ESP type; dates are seconds, stamps microseconds since 1970."""

_BAD = "bad"
_CSV_READ = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _BAD,
    "escape": '"',
    "ignoreLeadingWhiteSpace": "true",
    "ignoreTrailingWhiteSpace": "true",
}
_CSV_WRITE = {
    "escape": '"',
    "nullValue": "",
    "emptyValue": "",
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
}
_JSON_READ = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BAD}
_PATTERN_LETTERS = {
    "Y": "yyyy", "y": "yy", "m": "MM", "d": "dd", "H": "HH", "M": "mm", "S": "ss",
    "f": "SSSSSS", "j": "DDD", "b": "MMM", "B": "MMMM", "%": "'%'",
}  # fmt: skip


class CodecError(ValueError):
    """A connector asks for a format that cannot be read or written; the text names it."""


def record_format(window: Window, direction: str) -> str:
    """Return `csv` or `json`: the text format of a window's topic; `direction` is pub or sub."""
    kind = _property(window, direction, "kafkatype") or "csv"
    if kind not in ("binary", "csv", "json"):
        raise CodecError(f"window {window.name!r}: kafkatype {kind!r} is none of csv, json, binary")
    # Binary event blocks are SAS's own format; what failover needs of them is in our headers.
    return "json" if kind == "json" else "csv"


def parse(window: Window, value: Column) -> Column:
    """Return the struct `opcode, flags, <fields>, bad` of an input record's text.

    Dates that the connector's dateformat describes are still text: `read_dates` comes next, on
    the column that this one became, so that the text is parsed once and not once a field.
    """
    date_format = _property(window, "pub", "dateformat")
    columns = [("opcode", "string"), ("flags", "string")]
    columns += [(field.name, _read_type(field, date_format)) for field in window.fields]
    if record_format(window, "pub") == "json":
        return sf.from_json(value, _ddl(columns), _JSON_READ)
    # By place: a field may have the name of one of our own columns.
    columns = [(f"c{place}", kind) for place, (_, kind) in enumerate(columns)]
    return sf.from_csv(value, _ddl(columns), _CSV_READ)


def read_dates(window: Window, parsed: Column, value: Column) -> Column:
    """Turn the text of dates into numbers; one that is no date makes the record bad."""
    date_format = _property(window, "pub", "dateformat")
    if not any(_is_date(field, date_format) for field in window.fields):
        return parsed
    json = record_format(window, "pub") == "json"
    names = [field.name if json else f"c{place + 2}" for place, field in enumerate(window.fields)]
    cells, lost = [], sf.lit(False)
    for name, field in zip(names, window.fields, strict=True):
        cell = _read_date(parsed[name], field, date_format)
        cells.append(cell.alias(name))
        if _is_date(field, date_format):
            lost = lost | (parsed[name].isNotNull() & cell.isNull())
    first, second = ("opcode", "flags") if json else ("c0", "c1")
    return sf.struct(
        parsed[first].alias("opcode"),
        parsed[second].alias("flags"),
        *cells,
        sf.coalesce(parsed[_BAD], sf.when(lost, value)).alias(_BAD),
    )


def _ddl(columns: list[tuple[str, str]]) -> str:
    quoted = [f"`{name.replace('`', '``')}` {kind}" for name, kind in columns]
    return ", ".join([*quoted, f"{_BAD} string"])


def encode(window: Window, event: Column) -> Column:
    """Return the text of an output record from the struct `opcode, flags, f0 …`."""
    date_format = _property(window, "sub", "dateformat")
    cells = [
        _write_date(event[f"f{place}"], field, date_format)
        for place, field in enumerate(window.fields)
    ]
    if record_format(window, "sub") == "json":
        named = [cell.alias(field.name) for cell, field in zip(cells, window.fields, strict=True)]
        return sf.to_json(
            sf.struct(event["opcode"].alias("opcode"), *named), {"ignoreNullFields": "false"}
        )
    texts = [
        sf.format_string("%.6f", cell) if field.type in ("double", "money") else cell.cast("string")
        for cell, field in zip(cells, window.fields, strict=True)
    ]
    # format_string writes a null as the word; a null is an empty cell.
    present = [
        sf.when(event[f"f{place}"].isNotNull(), text).alias(f"f{place}")
        for place, text in enumerate(texts)
    ]
    line = sf.to_csv(sf.struct(*present), _CSV_WRITE)
    return sf.concat(event["opcode"], sf.lit(","), event["flags"], sf.lit(", "), line)


def java_pattern(strptime_format: str) -> str:
    """Translate `%Y-%m-%d` into the pattern that Catalyst wants, `yyyy-MM-dd`.

    Raises:
        CodecError: a directive has no counterpart.
    """
    pattern, letters = "", iter(strptime_format)
    for letter in letters:
        if letter == "%":
            directive = next(letters, "")
            if directive not in _PATTERN_LETTERS:
                raise CodecError(f"dateformat {strptime_format!r}: %{directive} is not supported")
            pattern += _PATTERN_LETTERS[directive]
        else:
            pattern += f"'{letter}'" if letter.isalpha() else letter.replace("'", "''")
    return pattern


def _property(window: Window, direction: str, name: str) -> str:
    for connector in window.connectors:
        if connector.class_ == "kafka" and connector.type == direction:
            return str(connector.properties.get(name, "")).strip()
    return ""


def _is_date(field: Field, date_format: str) -> bool:
    return bool(date_format) and field.type in ("date", "stamp")


def _read_type(field: Field, date_format: str) -> str:
    return "string" if _is_date(field, date_format) else SQL_TYPES[field.type]


def _read_date(cell: Column, field: Field, date_format: str) -> Column:
    """Read a date as a number where it is one, else by the connector's dateformat."""
    if not _is_date(field, date_format):
        return cell
    time = sf.try_to_timestamp(cell, sf.lit(java_pattern(date_format)))
    parsed = sf.unix_seconds(time) if field.type == "date" else sf.unix_micros(time)
    return sf.coalesce(cell.try_cast("bigint"), parsed)


def _write_date(cell: Column, field: Field, date_format: str) -> Column:
    if not _is_date(field, date_format):
        return cell
    time: Any = sf.timestamp_seconds(cell) if field.type == "date" else sf.timestamp_micros(cell)
    return sf.date_format(time, java_pattern(date_format))
