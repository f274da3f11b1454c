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


def decode(window: Window, value: Column) -> Column:
    """Return the struct `opcode, flags, f0 …, bad` of an input record's text."""
    date_format = _property(window, "pub", "dateformat")
    json = record_format(window, "pub") == "json"
    names = [field.name if json else f"f{place}" for place, field in enumerate(window.fields)]
    types = [_read_type(field, date_format) for field in window.fields]
    columns = [("opcode", "string"), ("flags", "string"), *zip(names, types, strict=True)]
    schema = ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in columns)
    schema += f", {_BAD} string"
    raw = sf.from_json(value, schema, _JSON_READ) if json else sf.from_csv(value, schema, _CSV_READ)
    cells = [
        _read_date(raw[name], field, date_format)
        for name, field in zip(names, window.fields, strict=True)
    ]
    # A CSV line without any cell decodes to nulls; a JSON object may leave the opcode out.
    lost = sf.lit(False) if json else raw["opcode"].isNull()
    for name, cell in zip(names, cells, strict=True):
        lost = lost | (raw[name].isNotNull() & cell.isNull())
    return sf.struct(
        raw["opcode"].alias("opcode"),
        raw["flags"].alias("flags"),
        *(cell.alias(f"f{place}") for place, cell in enumerate(cells)),
        sf.coalesce(raw[_BAD], sf.when(raw.isNull() | lost, value)).alias(_BAD),
    )


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
