"""Values: text to Python and back."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espha.model.events import BadRecord, Event
from espha.model.literals import MICROSECOND
from espha.model.project import Field
from espha.model.types import INTEGERS, checker, format_text, formatter, parse_text
from espha.records.text import decoder, format_event, line_formatter, parse_event, quoted, split

FIELDS = (
    Field("id", "int64", True),
    Field("small", "int32"),
    Field("name", "string"),
    Field("moment", "stamp"),
)


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("int32", "-2147483648", -(2**31)),
        ("int64", " +0009 ", 9),
        ("int64", "", None),
        ("int32", "1.0", 1),
        ("int64", "1e3", 1000),
        ("int32", "True", 1),
        ("double", "1e3", 1000.0),
        ("double", ".5", 0.5),
        ("double", "NaN", None),
        ("money", "7", 7.0),
        ("string", "", None),
        ("string", " x ", " x "),
        ("date", "1700000000", 1_700_000_000),
        ("date", "1970-01-02 00:00:01", 86_401),
        ("date", "1970-01-02 00:00:01.9", 86_401),
        ("stamp", "1970-01-01 00:00:01.5", 1_500_000),
        ("stamp", "1969-12-31 23:59:59", -1_000_000),
        ("date", "1970-01-02", 86_400),
        ("date", "1970/1/2 0:1", 86_460),
        ("stamp", "1970-01-01T00:00:01.25Z", 1_250_000),
        ("date", "1970-01-01 01:00:00+01:00", 0),
        ("date", "86400.75", 86_400),
        ("blob", "AP8=", b"\x00\xff"),
        ("blob", "", None),
        ("array(i32)", "[1;-2;3]", (1, -2, 3)),
        ("array(dbl)", "[1.5;;2]", (1.5, None, 2.0)),
        ("array(i64)", "[]", ()),
        ("array(i64)", "", None),
    ],
)
def test_text_becomes_a_value(type_: str, text: str, value: object) -> None:
    found = parse_text(type_, text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("type_", "text", "reason"),
    [
        ("int32", "2147483648", "too large for int32"),
        ("int64", "9223372036854775808", "too large for int64"),
        ("int64", "9" * 5000, "not a whole number"),
        ("int64", "1_000", "not a whole number"),
        ("int64", "1.5", "not a whole number"),
        ("int32", "1e10", "too large for int32"),
        ("int64", "٣", "not a whole number"),
        ("double", "inf", "not a number"),
        ("double", "1e999", "not a finite number"),
        ("double", "1,5", "not a number"),
        ("date", "yesterday", "not a date written as a whole number or %Y-%m-%d %H:%M:%S"),
        ("stamp", "2024-02-30 00:00:00", "not a stamp written as"),
        ("stamp", "٢٠٢٤-01-01 00:00:00", "not a stamp written as"),
        ("blob", "a", "not base64"),
        ("blob", "é", "not base64"),
        ("array(i32)", "1;2", r"not written as \[a;b;c\]"),
        ("array(i32)", "[1;x]", "'x' is not a whole number"),
        ("array(i32)", "[2147483648]", "too large"),
    ],
)
def test_other_text_is_refused_with_a_sentence(type_: str, text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_text(type_, text)


@pytest.mark.parametrize(
    ("type_", "text", "format_", "value"),
    [
        ("date", "2024-01-02 00:00:01", "%Y-%m-%d %H:%M:%S", 1_704_153_601),
        ("stamp", "1970-01-01 00:00:00.000001", "%Y-%m-%d %H:%M:%S.%f", 1),
        ("date", "1970-01-01 01:00 +0100", "%Y-%m-%d %H:%M %z", 0),
        ("date", "1969-12-31", "%Y-%m-%d", -86_400),
        ("date", "60", "%Y-%m-%d", 60),
        ("date", "19700102", "%Y%m%d", 86_400),
        ("stamp", "1970-01-01 00:00:01.000002", "%Y-%m-%d %H:%M:%S", 1_000_002),
        ("date", "1970-01-01 00:00:01:13", "%Y-%m-%d %H:%M:%S", 1),
        ("date", "1970-01-02", "%Y-%m-%d %H:%M:%S", 86_400),
        ("date", "1970-01-02T01", "%Y-%m-%d %H:%M:%S", 90_000),
        ("date", "1970-01-02 12:30:00", "%Y-%m-%d", 86_400),
        ("date", "1970-01-02 00:00:01", "'%Y-%m-%d %H:%M:%S", 86_401),
        ("date", "19700102", "%Y%m%d%H%M%S", 86_400),
        ("stamp", "02JAN1970:00:00:01.5", "%d%b%Y:%H:%M:%S", 86_401_500_000),
        ("date", "Friday, January 2 1970 1:00:05 PM", "%A, %B %e %Y %I:%M:%S %p", 133_205),
        ("date", "01/02/69 EST", "%D %Z", -31_449_600),
        ("date", "1/2/70 12:00:00 am", "%m/%d/%y %r", 86_400),
        ("date", "086400", "%s", 86_400),
        ("date", "1970-033", "%Y-%j", 32 * 86_400),
    ],
)
def test_dates_are_read_as_utc(type_: str, text: str, format_: str, value: int) -> None:
    assert parse_text(type_, text, format_) == value


@pytest.mark.parametrize(
    ("text", "format_"),
    [
        ("1970-02-30", "%Y-%m-%d"),
        ("1970-01-02 x", "%Y-%m-%d"),
        ("02.01.1970", "%Y-%m-%d"),
        ("1970-01-02 00:00:01 and more", "%Y-%m-%d %H:%M:%S"),
        ("9999-12-31 24:00:00", "%Y-%m-%d %H:%M:%S"),
    ],
)
def test_dates_of_another_format_are_refused(text: str, format_: str) -> None:
    with pytest.raises(ValueError, match="not a stamp written as"):
        parse_text("stamp", text, format_)


@given(st.datetimes(datetime(1969, 1, 1), datetime(2068, 12, 31)))
@pytest.mark.parametrize(
    "format_",
    ["%Y-%m-%dT%H:%M:%S.%f", "%d%b%y:%H:%M:%S.%f", "%A %d %B %Y %I-%M-%S,%f %p", "%Y%j%H%M%S%f"],
)
def test_dates_read_as_python_writes_them(format_: str, moment: datetime) -> None:
    text = moment.strftime(format_)
    assert parse_text("stamp", text, format_) == (moment - datetime(1970, 1, 1)) // MICROSECOND


@pytest.mark.parametrize(
    "value", [True, 1.0, "1", 2**31, -(2**31) - 1, pytest.param(10**5000, id="huge")]
)
def test_a_checker_takes_only_its_own_type(value: object) -> None:
    with pytest.raises(ValueError, match="int32"):
        checker("int32")(value)


@pytest.mark.parametrize("value", [float("inf"), pytest.param(10**400, id="huge"), "1", True])
def test_a_double_is_finite(value: object) -> None:
    with pytest.raises(ValueError, match="finite"):
        checker("double")(value)


def test_nan_is_null_and_half_a_character_is_no_text() -> None:
    assert checker("double")(float("nan")) is None
    with pytest.raises(ValueError, match="Unicode"):
        checker("string")("\ud800")


def test_output_is_written_as_esp_writes_it() -> None:
    fields = (Field("k", "int64", True), Field("d", "double"), Field("s", "string"))
    assert format_event(Event("I", "N", (1, 2.5, None)), fields) == "I,N, 1,2.500000,"
    assert format_event(Event("D", "R", (1, None, 'a,"b')), fields) == 'D,R, 1,,"a,""b"'
    assert format_text("double", 1 / 3) == "0.333333"
    assert format_text("double", 8.331627647204558e-07) == "8.33163e-07"
    assert format_text("double", -1.1451e-07) == "-1.1451e-07"
    assert [format_text("double", x) for x in (1e-6, 0.0, 1e-300)] == [
        "0.000001",
        "0.000000",
        "1e-300",
    ]
    assert formatter("double", "", 4)(8e-7) == "0.0000"
    assert format_text("array(dbl)", (1.5, None, 2.0)) == "[1.500000;;2.000000]"
    assert format_text("array(i32)", ()) == "[]"
    assert format_text("blob", b"\x00\xff") == "AP8="


def test_output_can_have_another_format() -> None:
    fields = (Field("k", "int64", True), Field("d", "double"), Field("t", "stamp"))
    line = line_formatter(fields, date_format="%Y-%m-%d %H:%M:%S.%f", precision=2)
    assert line(Event("I", "N", (1, 2.5, 1_500_000))) == "I,N, 1,2.50,1970-01-01 00:00:01.500000"
    assert line(Event("I", "N", (1, None, 2**62))) == f"I,N, 1,,{2**62}"


@pytest.mark.parametrize(
    ("opcode", "flags"),
    [("i", "n"), ("Insert", "Normal"), (" I ", ""), ("INSERT", " N")],
)
def test_opcodes_and_flags_are_letters_or_words(opcode: str, flags: str) -> None:
    assert decoder(FIELDS[:1])(opcode, flags, ["7"]) == Event("I", "N", (7,))


@given(
    st.tuples(
        st.integers(*INTEGERS["int64"]) | st.none(),
        st.integers(*INTEGERS["int32"]) | st.none(),
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1) | st.none(),
        st.integers(*INTEGERS["stamp"]) | st.none(),
    ),
    st.sampled_from(["I", "U", "P", "D", "SD"]),
    st.sampled_from(["N", "P", "R"]),
)
def test_a_line_reads_back_as_the_event_it_was(
    values: tuple[object, ...], opcode: str, flags: str
) -> None:
    event = Event(opcode, flags, values)  # type: ignore[arg-type]
    assert parse_event(format_event(event, FIELDS), FIELDS) == event


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("X,N,1,2,x,3", "unknown opcode 'X'"),
        ("I,Z,1,2,x,3", "unknown flags 'Z'"),
        ("", "1 cells where the schema wants 6"),
        ("I,N,1,2,x", "5 cells"),
        ("I,N,1,x,y,2", "field small: 'x' is not a whole number"),
        ('I,N,1,2,"open,3', "not a row of CSV"),
    ],
)
def test_a_bad_line_is_refused(line: str, reason: str) -> None:
    with pytest.raises(BadRecord, match=reason):
        parse_event(line, FIELDS)


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        ("", [""]),
        (" a ,b b,\tc ", ["a", "b b", "c"]),
        (' " a " ,"b,""c""",', [" a ", 'b,"c"', ""]),
        (r"a\,b,c\d,e", ["a,b", r"c\d", "e"]),
        (r'"{\"a\": [1, 2]}",b', ['{"a": [1, 2]}', "b"]),
        (r'"C:\dir\",b', ["C:\\dir\\", "b"]),
        ('"a\nb",c"d', ["a\nb", 'c"d']),
        ('"","', None),
        ('"a"b,c', None),
        pytest.param('"' + "a" * 100_000, None, id="long and open"),
    ],
)
def test_a_row_is_split_into_cells(line: str, cells: list[str] | None) -> None:
    if cells is None:
        with pytest.raises(BadRecord, match="not closed well"):
            split(line)
    else:
        assert split(line) == cells
        assert split(line.replace(",", ";"), ";") == [cell.replace(",", ";") for cell in cells]


@given(st.lists(st.text(), min_size=1))
def test_cells_read_back_as_they_were_written(cells: list[str]) -> None:
    assert split(",".join(map(quoted, cells))) == cells


@given(st.text())
def test_any_line_reads_or_is_refused(line: str) -> None:
    try:
        event = parse_event(line, FIELDS)
    except BadRecord:
        return
    assert len(event.values) == len(FIELDS)
