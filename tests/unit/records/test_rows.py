"""Files to rows: every byte in one row, each bad row alone, whatever the pieces it is read in."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from espha.model.events import BadRecord, Event
from espha.reader import read_project
from espha.records import rows
from espha.records.layout import Layout
from espha.records.rows import Raw, RowFile
from espha.records.text import event_reader, quoted
from support.models import source, xml


def read(data: bytes, layout: Layout | None = None, chunk: int = 1 << 20) -> list[Raw]:
    """Return all rows of a file that is read in chunks."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / "file"
        path.write_bytes(data)
        patch.setattr(rows, "_CHUNK", chunk)
        file = RowFile(path, layout or Layout())
        found: list[Raw] = []
        while some := file.next(3, final=True):
            found += some
        file.close()
        return found


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"\n\r\n  \n", []),
        (b"a,b\r\nc", [(1, ["a", "b"]), (2, ["c"])]),
        (b'"a\n\nb",c\nd', [(1, ["a\n\nb", "c"]), (4, ["d"])]),
        (b'"a\nb\nc"d\n', [(1, None), (2, ["b"]), (3, ['c"d'])]),
        (b'"a\nb\n', [(1, None), (2, ["b"])]),
        (b"\xff\n", [(1, ["\udcff"])]),
        ("a\u2028b\x0bc\n".encode(), [(1, ["a\u2028b\x0bc"])]),
    ],
)
def test_rows_have_the_line_where_they_begin(
    data: bytes, expected: list[tuple[int, list[str] | None]]
) -> None:
    found = [(row.line, None if row.reason else row.content) for row in read(data)]
    assert found == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"a":1}\n{"a":2}', [(1, {"a": 1}), (2, {"a": 2})]),
        (b'[[{"a":1},\n{"a":\n2}],\n[{"a":3}]]', [(1, {"a": 1}), (2, {"a": 2}), (4, {"a": 3})]),
        (b'{"a"\n{"a":2}\nnull\n{', [(1, None), (2, {"a": 2}), (3, None), (4, None)]),
        (b"[" * 5000, []),
        (b'{"a":' + b"[" * 90_000, [(1, None)]),
        (b'{"a":' + b"9" * 5000 + b"}", [(1, None)]),
    ],
)
def test_objects_of_json(data: bytes, expected: list[tuple[int, dict[str, int] | None]]) -> None:
    found = [
        (row.line, None if row.reason else row.content) for row in read(data, Layout(format="json"))
    ]
    assert found == expected


def test_header_and_null_characters() -> None:
    layout = Layout(header_lines=2, strip_nulls=True)
    assert read(b'h"\nh\na\0b\n', layout) == [Raw(3, ["ab"])]
    assert read(b"only\n", layout) == []


def test_a_row_without_an_end_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MAX_RECORD", 50)
    found = read(b'"' + b"x\n" * 40 + b"y", chunk=16)
    assert found[0] == Raw(1, ['"x'], found[0].reason)
    assert found[0].reason
    assert [row.content for row in found[1:]] == [["x"]] * 39 + [["y"]]


def test_a_file_that_grows_is_read_on(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a\nb")
    file = RowFile(path, Layout())
    assert file.next(9, final=False) == [Raw(1, ["a"])]
    with path.open("ab") as more:
        more.write(b'c\n"d\n')
    assert file.next(9, final=False) == [Raw(2, ["bc"])]
    with path.open("ab") as more:
        more.write(b'"\n')
    assert file.next(9, final=False) == [Raw(3, ["d\n"])]
    file.close()


pieces = st.lists(
    st.sampled_from(['"', ",", "\n", "\r\n", "a", " ", "é", "{", "}", "[", ":", "1", "e"])
)


@given(pieces.map("".join), st.integers(1, 7), st.sampled_from(["csv", "json"]))
@example("11", 1, "json")
@example("1e1", 2, "json")
def test_pieces_change_nothing(text: str, chunk: int, form: str) -> None:
    layout = Layout(format=form)
    assert read(text.encode(), layout, chunk) == read(text.encode(), layout)


@given(st.lists(st.lists(st.text(), min_size=2), min_size=1), st.integers(1, 9))
def test_cells_come_back_as_they_were_written(table: list[list[str]], chunk: int) -> None:
    # The first line of such a row may be a row as well, and then it counts as one.
    assume(not any("\\" in row and "\n" in row for row in map("".join, table)))
    data = "".join(",".join(map(quoted, cells)) + "\n" for cells in table)
    written = [cells for cells in table if ",".join(cells).strip()]
    assert [row.content for row in read(data.encode(), chunk=chunk)] == written


SCHEMA = "id*:int64,d:double,s:string,b:blob,a:array(dbl),t:stamp"
WINDOW = read_project(xml(source(SCHEMA))).windows["q/in"]
words = st.text() | st.sampled_from(["I", "1", "x", "[1;2]", "AP8=", "", "2024-01-01 00:00:00"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner) | st.dictionaries(words, inner),
    max_leaves=5,
)
contents = st.lists(words) | st.dictionaries(
    st.sampled_from(["opcode", "flags", "id", "d", "s", "b", "a", "t", "event"]), json_values
)


@given(contents, st.booleans(), st.booleans())
def test_any_row_is_an_event_or_is_refused_with_a_reason(
    content: list[str] | dict[str, object], opcode: bool, flags: bool
) -> None:
    read_event = event_reader(WINDOW, Layout(opcode=opcode, flags=flags))
    try:
        event = read_event(content)
    except BadRecord as refusal:
        assert refusal.reason
    else:
        assert isinstance(event, Event)
        assert len(event.values) == 6
