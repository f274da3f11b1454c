"""Text to events and back: Catalyst does what `espha.records.text` does, its reference.

Hypothesis makes the rows; each layout and each style is one Spark job for all of its rows.

Catalyst takes some texts that the reference refuses; no writer makes them, and to refuse them would
cost every good record a check. They are left out here: digits of other scripts in whole numbers,
Java's endings of doubles (`1d`, `1f`, `0x1p3`), text behind a closing quote; of JSON, objects and
arrays for a string, and base64 with another one behind its end. It also drops characters of code
zero from CSV.
"""

import base64
import json
import string
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructType

from espha.model.events import BadRecord, Event
from espha.model.types import checker
from espha.pipeline.session import open_session
from espha.reader import read_project
from espha.records import catalyst
from espha.records.layout import Layout, Style
from espha.records.text import (
    decoder,
    event_writer,
    read_flags,
    read_opcode,
    record_reader,
    split,
)
from support.models import source, xml
from support.servers import JAR_CACHE

pytestmark = pytest.mark.component

SCHEMA = (
    "id*:int64,i:int32,d:double,m:money,s:string,t:date,u:stamp,b:blob,"
    "small:array(i32),large:array(i64),real:array(dbl)"
)
WINDOW = read_project(xml(source(SCHEMA))).windows["q/in"]
NUMBERED = read_project(xml(source(SCHEMA, 'insert-only="true" autogen-key="true"'))).windows[
    "q/in"
]
FIELDS = WINDOW.fields
T = TypeVar("T")
ROWS = 400
"""Rows of one job."""


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """An engine's session."""
    session = open_session("local[1]", JAR_CACHE / "engine")
    yield session
    session.stop()


def made(strategy: st.SearchStrategy[T], count: int = ROWS) -> list[T]:
    """Return examples of a strategy."""
    found: list[T] = []

    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def gather(example: T) -> None:
        found.append(example)

    gather()
    return found


# Cells: what fits, what nearly fits, and what stands around both.

blanks = st.sampled_from(["", "", "", " ", "\t", "  "])
int32s, int64s = (st.integers(-(2**bits), 2**bits - 1) for bits in (31, 63))
doubles = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6) | st.text(
    '",\n\r \t;[]a', max_size=6
)


def digits(values: st.SearchStrategy[int]) -> st.SearchStrategy[str]:
    written = st.tuples(st.sampled_from(["{}", "{}", "+{}", "00{}", "{}.0", "{}e2", "{}L"]), values)
    return written.map(lambda pair: pair[0].format(pair[1]))


numbers = st.one_of(
    doubles.map(repr),
    doubles.map(lambda value: f"{value:.3f}"),
    digits(st.integers(-1000, 1000)),
    st.sampled_from(
        ["nan", "NaN", ".", "inf", "Infinity", "-Infinity", "1.", ".5", "+.5",
         "1e999", "1E5", "1_0", "--1", "-", "e5", "0" * 40 + "1"]
    ),
)  # fmt: skip
dates = st.one_of(
    st.datetimes(min_value=datetime(1600, 1, 1)).map(str),
    digits(int64s),
    st.sampled_from(
        ["2024-02-30 00:00:00", "2024-01-01", "2024-01-01T00:00:00", "2024-1-1 0:0:0",
         "2024-01-01 24:00:00", "2024-01-01 00:00:60", "2024-01-01 00:00:00.1234567",
         "2024-01-01 00:00:00Z", "2024-01-01 00:00:00 UTC", "now", "epoch"]
    ),
)  # fmt: skip
json_blobs = st.one_of(
    st.binary(max_size=9).map(lambda value: base64.b64encode(value).decode()),
    st.sampled_from(["a", "ab", "ab=", "abc", "ab==", "ab=c", "a b=", "!", "aGk\n"]),
)
blobs = json_blobs | st.just("aGk=aGk=")


def arrays(cells: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    inner = st.lists(st.tuples(blanks, cells | st.just(""), blanks).map("".join), max_size=4)
    around = st.sampled_from(["[{}]", "[{}]", "[{}]", "[{}", "{}", "[{}]]", "[ {} ]"])
    return st.tuples(around, inner).map(lambda pair: pair[0].format(";".join(pair[1])))


CELLS: dict[str, st.SearchStrategy[str]] = {
    "int32": digits(int32s | int64s) | numbers,
    "int64": digits(int64s | st.integers()) | numbers,
    "double": numbers,
    "money": numbers,
    "string": texts,
    "date": dates,
    "stamp": dates,
    "blob": blobs,
    "array(i32)": arrays(digits(int32s)),
    "array(i64)": arrays(digits(int64s)),
    "array(dbl)": arrays(numbers),
}
FITTING: dict[str, st.SearchStrategy[str]] = {
    "int32": int32s.map(str),
    "int64": int64s.map(str),
    "double": doubles.map(repr),
    "money": doubles.map(repr),
    "string": texts,
    "date": int64s.map(str),
    "stamp": int64s.map(str),
    "blob": st.binary(max_size=9).map(lambda value: base64.b64encode(value).decode()),
    "array(i32)": st.lists(int32s.map(str), max_size=3).map(lambda one: f"[{';'.join(one)}]"),
    "array(i64)": st.lists(int64s.map(str), max_size=3).map(lambda one: f"[{';'.join(one)}]"),
    "array(dbl)": st.lists(doubles.map(repr), max_size=3).map(lambda one: f"[{';'.join(one)}]"),
}


STRANGE = st.sampled_from(range(-len(FIELDS) // 2, len(FIELDS)))
"""The place of the cell that is strange; none in a third of the rows."""


def in_quotes(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


@st.composite
def csv_texts(draw: st.DrawFn, layout: Layout, numbered: bool = False) -> str:
    """Draw a row of which at most one cell is strange, so that many rows fit."""
    written = FITTING
    if layout.date_format:
        moments = st.datetimes(datetime(1600, 1, 1), datetime(9000, 1, 1))
        date = moments.map(lambda moment: moment.strftime(layout.date_format))
        written = {**FITTING, "date": date, "stamp": date}
    strange = draw(STRANGE)
    cells = []
    if layout.opcode:
        cells.append(draw(st.sampled_from(["I", "I", "I", "u", "upsert", " D", "SD", "X", ""])))
    if layout.flags:
        cells.append(draw(st.sampled_from(["N", "N", "N", "p", "normal", "", "Z"])))
    for place, field in enumerate(FIELDS):
        if field.key and numbered and not layout.autogen_field:
            continue
        cell = draw(CELLS[field.type] if place == strange else written[field.type] | st.just(""))
        quote = layout.delimiter in cell or draw(st.integers(0, 9)) == 0
        quote = quote or (field.type == "string" and any(one in cell for one in '"\n'))
        cells.append(draw(blanks) + (in_quotes(cell) if quote else cell) + draw(blanks))
    if draw(st.integers(0, 29)) == 0:
        cells = cells[: draw(st.integers(0, len(cells)))] + ["x"] * draw(st.integers(0, 2))
    return layout.delimiter.join(cells)


LAYOUTS = {
    "plain": Layout(),
    "no opcode": Layout(opcode=False, flags=False),
    "flags alone": Layout(opcode=False),
    "opcode alone": Layout(flags=False, upsert=True, partial=True),
    "semicolons": Layout(delimiter="|", strip_nulls=True),
    "dates": Layout(date_format="%Y-%m-%d %H:%M:%S"),
    "digits": Layout(date_format="%Y%m%d%H%M%S"),
    "fractions": Layout(date_format="%d/%m/%Y %H:%M:%S.%f"),
    "numbered": Layout(autogen_field=False, opcode=False, flags=False),
}
READ_AGAIN = "read again"


@pytest.mark.parametrize("name", LAYOUTS)
def test_csv_is_read_alike(spark: SparkSession, name: str) -> None:
    numbered = name == "numbered"
    layout = LAYOUTS[name]
    rows = made(csv_texts(layout, numbered))
    check_reading(spark, rows, layout, numbered)


json_cells = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**20), 10**20), doubles, texts, st.just([1, None]),
    st.lists(st.integers(-9, 9) | doubles, max_size=3), st.just({"a": 1}), numbers, dates,
    json_blobs,
)  # fmt: skip
FITTING_JSON: dict[str, st.SearchStrategy[Any]] = {
    "int32": int32s, "int64": int64s, "double": doubles, "money": doubles, "string": texts,
    "date": int64s, "stamp": int64s, "blob": FITTING["blob"],
    "array(i32)": st.lists(int32s | st.none(), max_size=3),
    "array(i64)": st.lists(int64s | st.none(), max_size=3),
    "array(dbl)": st.lists(doubles | st.none(), max_size=3),
}  # fmt: skip


@st.composite
def json_texts(draw: st.DrawFn) -> str:
    strange = draw(STRANGE)
    content: dict[str, Any] = {}
    if draw(st.booleans()):
        content |= {"opcode": draw(st.sampled_from(["I", "u", "D", "X"])), "flags": "N"}
    for place, field in enumerate(FIELDS):
        fitting = FITTING_JSON[field.type] | st.none()
        odd = place == strange and field.type != "string"
        content[field.name] = draw(json_cells if odd else fitting)
    text = json.dumps(content)
    return text[:-1] if draw(st.integers(0, 29)) == 0 else text


def test_json_is_read_alike(spark: SparkSession) -> None:
    check_reading(spark, made(json_texts()), Layout(format="json"), numbered=False)


def check_reading(spark: SparkSession, rows: list[str], layout: Layout, numbered: bool) -> None:
    """Compare what Catalyst decodes with the reference; it may leave rows to the reference."""
    window = NUMBERED if numbered else WINDOW
    # Only text of valid Unicode gets to Catalyst.
    rows = [row.encode("utf-8", "replace").decode() for row in rows]
    parsed = catalyst.parse(window, layout, sf.col("value"))
    read = catalyst.read_dates(window, layout, sf.col("s"), sf.col("value"))
    frame = spark.createDataFrame([(row,) for row in rows], "value string")
    decoded = frame.select("value", parsed.alias("s")).select(read.alias("s")).collect()
    reference = record_reader(window, layout)
    again, differences = 0, []
    for text, (cells,) in zip(rows, decoded, strict=True):
        found = outcome(lambda cells=cells: by_catalyst(cells, layout))  # type: ignore[misc]
        if found == READ_AGAIN:
            again += 1
            continue
        expected = outcome(lambda text=text: reference(text))  # type: ignore[misc]
        if found != expected:
            differences.append((text, expected, found))
    report(differences)
    assert again < len(rows) * 3 // 4, "Catalyst decodes what fits"


def by_catalyst(cells: Sequence[Any] | None, layout: Layout) -> Event | str:
    """Return the event of a decoded struct, as a worker makes it."""
    opcode, flags, *values, bad = cells or (None, None, "")
    if bad is not None or (opcode is None and layout.format == "csv"):
        return READ_AGAIN
    default_opcode, default_flags = layout.defaults()
    head = read_opcode(opcode or default_opcode), read_flags(flags or default_flags)
    return Event(*head, tuple(values))


def outcome(read: Callable[[], Event | str]) -> object:
    """Return what the source window makes of an event, or that it is a bad record."""
    try:
        event = read()
        if isinstance(event, str):
            return event
        values = [
            checker(field.type)(bytes(value) if isinstance(value, bytearray) else value)
            for field, value in zip(FIELDS, event.values, strict=True)
        ]
    except (BadRecord, ValueError):
        return "bad"
    return event.opcode, event.flags, repr(values)


def report(differences: Sequence[tuple[object, object, object]]) -> None:
    shortest = sorted(differences, key=lambda one: len(repr(one[0])))[:8]
    told = [
        f"{text!r}\n  text.py:  {ours}\n  Catalyst: {theirs}" for text, ours, theirs in shortest
    ]
    assert not differences, f"{len(differences)} differ, such as:\n" + "\n".join(told)


# Writing.

letters = st.text(string.ascii_letters + " \",\n\r\t;#\\'é😀\u2028\x85\0\x0b", max_size=6)
# Java 17 does not always find the shortest digits of a double: the 17th can differ, and those of
# doubles with fewer digits (subnormal ones) do.
decimals = (
    st.floats(-1e8, 1e8)
    | st.floats(-1e-5, 1e-5)
    | st.integers(-(10**9), 10**9).map(lambda whole: whole / 2e6)
).filter(lambda value: not value or abs(value) > 1e-300)
far = st.sampled_from([-(2**63), 2**63 - 1]) | st.integers(253_402_300_800_000_000, 2**63 - 1)
"""Times behind the year 9999, in any unit."""
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int32": int32s,
    "int64": int64s,
    "double": decimals,
    "money": decimals,
    "string": (letters | st.text(max_size=6)).map(lambda text: text or None),
    "date": st.integers(-10_000_000_000, 253_402_300_799) | far,
    "stamp": st.integers(-10_000_000_000_000_000, 253_402_300_799_999_999) | far,
    "blob": st.binary(max_size=9),
    "array(i32)": st.lists(int32s | st.none(), max_size=3).map(tuple),
    "array(i64)": st.lists(int64s | st.none(), max_size=3).map(tuple),
    "array(dbl)": st.lists(decimals | st.none(), max_size=3).map(tuple),
}
events = st.builds(
    Event,
    st.sampled_from(["I", "U", "D"]),
    st.sampled_from(["N", "R"]),
    st.tuples(*(VALUES[field.type] | st.none() for field in FIELDS)),
)
STYLES = {
    "six": Style(),
    "two": Style(precision=2),
    "none": Style(precision=0),
    "exact": Style(precision=None),
    "dates": Style(date_format="%Y-%m-%dT%H:%M:%S.%f"),
    "short dates": Style(date_format="%d.%m.%y %j"),
    "json": Style(format="json", precision=None),
    "json dates": Style(format="json", date_format="%Y/%m/%d %H", precision=None),
}


@pytest.mark.parametrize("name", STYLES)
def test_events_are_written_alike(spark: SparkSession, name: str) -> None:
    style = STYLES[name]
    rows = [event for event in made(events) if is_unicode(event)]
    struct = StructType().add("opcode", StringType()).add("flags", StringType())
    for place, field in enumerate(FIELDS):
        struct.add(f"f{place}", catalyst.KINDS[field.type])
    frame = spark.createDataFrame(
        [((event.opcode, event.flags, *event.values),) for event in rows],
        StructType().add("w", struct),
    )
    written = frame.select(catalyst.encode(FIELDS, style, sf.col("w"))).collect()
    write = event_writer(FIELDS, style)
    same = comparable(style)
    differences = [
        (event, write(event), text)
        for event, (text,) in zip(rows, written, strict=True)
        if same(write(event)) != same(text)
    ]
    report(differences)


def is_unicode(event: Event) -> bool:
    return "\\ud" not in ascii(event.values)


def comparable(style: Style) -> Callable[[str], object]:
    """Return what makes text comparable: Java and Python write exact doubles differently."""
    if style.format == "json":
        return lambda text: {**json.loads(text), "flags": None}
    if style.precision is None:
        decode = decoder(FIELDS)
        return lambda text: repr(decode("I", "N", split(text)[2:])) + repr(split(text)[:2])
    return lambda text: text
