"""Rows of a CSV file and their canonical text."""

import csv
import io
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espha.reader import read_project
from espha.records.layout import CsvLayout
from espha.records.rows import MAX_RECORD, csv_rows
from espha.records.text import canonical_writer, quoted
from support.models import source, xml

SCHEMA = "id*:int64,name:string,at:date,exact:stamp"


def columns(data: bytes, final: bool = False) -> list[list[str]]:
    return [row.content for row in csv_rows(data, CsvLayout(), final=final)]


@pytest.mark.parametrize(
    ("data", "final", "expected"),
    [
        (b"1,2\n3,4\n", False, [["1", "2"], ["3", "4"]]),
        (b"1,2\n3,", False, [["1", "2"]]),
        (b"1,2\n3,", True, [["1", "2"], ["3", ""]]),
        (b"1,2\r\n3,4\r\n", False, [["1", "2"], ["3", "4"]]),
        (b'"a,b","c ""d"""\n', False, [["a,b", 'c "d"']]),
        (b'1,"two\nlines"\n2,x\n', False, [["1", "two\nlines"], ["2", "x"]]),
        (b'1,"not yet\n', False, []),
        (b'1,"never\n2,x\n', True, [['1,"never'], ["2", "x"]]),
        (b'5" pipe,2\n3,4\n', False, [['5" pipe', "2"], ["3", "4"]]),
        (b"\n\n1,2\n", False, [[], [], ["1", "2"]]),
        (b"", True, []),
    ],
    ids=["plain", "half line waits", "half line at the end", "crlf", "quotes", "newline in quotes",
         "open quote waits", "quote that never closes", "stray quote", "blank lines", "empty"],
)  # fmt: skip
def test_rows(data: bytes, final: bool, expected: list[list[str]]) -> None:
    assert columns(data, final) == expected


def test_a_quote_that_never_closes_does_not_hold_up_a_growing_file() -> None:
    """After 128 kB the line with the quote is handed over alone, and the rest is read."""
    data = b'1,"open\n' + b"2,x\n" * (MAX_RECORD // 4)
    found = columns(data)
    assert found[0] == ['1,"open']
    assert found[1] == ["2", "x"]


def test_a_line_without_end_is_cut() -> None:
    found = list(csv_rows(b"x" * (MAX_RECORD + 10), CsvLayout(), final=False))
    assert [row.size for row in found] == [MAX_RECORD]


texts = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=8)


@given(
    st.lists(st.lists(texts, min_size=2, max_size=4), max_size=6),
    st.integers(0, 400),
    st.booleans(),
)
def test_any_split_in_two_reads_gives_the_same_rows(
    table: list[list[str]], cut: int, all_quoted: bool
) -> None:
    """What a first read finds, and a second one behind it, is what one read finds."""
    out = io.StringIO()
    if all_quoted:
        csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(table)
    else:
        # The csv module leaves blanks at the ends without quotes, where they do not count.
        table = [cells for cells in table if ",".join(cells).strip()]
        out.writelines(",".join(map(quoted, cells)) + "\n" for cells in table)
    data = out.getvalue().encode()
    first = list(csv_rows(data[:cut], CsvLayout(), final=False))
    rest = list(csv_rows(data[sum(row.size for row in first) :], CsvLayout(), final=True))
    assert [row.content for row in first + rest] == table
    assert sum(row.size for row in first + rest) == len(data)
    assert sum(row.lines for row in first + rest) == data.count(b"\n")


def canonical(autogen: bool = False, **options: object) -> Callable[[list[str]], bytes]:
    attributes = 'insert-only="true" autogen-key="true"' if autogen else ""
    window = read_project(xml(source(SCHEMA, attributes))).windows["q/in"]
    write = canonical_writer(window, CsvLayout.model_validate(options))
    return lambda cells: write(cells).encode("utf-8", "surrogateescape")


@pytest.mark.parametrize(
    ("options", "row", "expected"),
    [
        ({}, ["i", "n", "1", "x", "2", "3"], b"i,n,1,x,2,3"),
        ({"opcode": False, "flags": False}, ["1", "x", "2", "3"], b"I,N,1,x,2,3"),
        ({"flags": False}, ["D", "1", "x", "2", "3"], b"D,N,1,x,2,3"),
        (
            {"opcode": False, "flags": False, "autogenField": False, "autogen": True},
            ["x", "2", "3"],
            b"I,N,,x,2,3",
        ),
        ({"opcode": False, "flags": False}, ["many", "x"], b"I,N,many,x,,"),
        ({}, ["i", "n", "1", "x", "2", "3", "more"], b"i,n,1,x,2,3"),
        ({"opcode": False, "flags": False}, ["a,b", 'c"d', "", ""], b'I,N,"a,b","c""d",,'),
    ],
    ids=["as it is", "both added", "flags added", "key added", "short row", "long row", "quoting"],
)
def test_canonical(options: dict[str, Any], row: list[str], expected: bytes) -> None:
    assert canonical(**options)(row) == expected


def test_dates_become_seconds_and_stamps_microseconds() -> None:
    dates = canonical(opcode=False, flags=False, dateFormat="%Y-%m-%d %H:%M:%S")
    moment = "1970-01-02 00:00:01"
    assert dates(["1", "x", moment, moment]) == b"I,N,1,x,86401,86401000000"
    assert dates(["1", "x", "yesterday", ""]) == b"I,N,1,x,yesterday,"


def test_bytes_that_are_not_utf8_come_through() -> None:
    row = columns(b"\xff,x\n")[0]
    assert canonical(opcode=False, flags=False)(row) == b"I,N,\xff,x,,"
