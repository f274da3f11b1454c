"""Texts of other encodings, and bytes that are no text."""

import gzip
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from espha.adapters.config import Job
from espha.adapters.file_input.content import open_content
from espha.adapters.file_input.run import _Rows
from espha.adapters.file_input.spec import InputFile
from espha.adapters.formats.encodings import Transcoder
from espha.adapters.formats.incoming import incoming
from espha.adapters.formats.refused import read_not_a_row
from espha.adapters.formats.spec import InputFormat, LinesIn
from espha.adapters.socket_input.spec import InputSocket
from espha.protocol.child_side import Control
from support.files import Clock, append, opened, polled
from support.outputs import outbound

WINDOW = outbound()
PLAIN = {"opcode": False, "flags": False}
WIDE = ["utf-16", "utf-16-le", "utf-16-be", "utf-32"]
TEXT = {"cp1251": "Привет", "shift_jis": "日本語", "gb18030": "日本語𝄞", "big5": "中文"}


def records(payload: bytes, **options: object) -> list[bytes]:
    return incoming(WINDOW, InputFormat.model_validate(options)).records(payload, "here")


def refusal(record: bytes) -> tuple[str, bytes]:
    found = read_not_a_row(record)
    assert found is not None
    return found.reason, found.payload


def test_a_row_that_is_no_text_is_a_dead_letter_and_its_neighbours_are_rows() -> None:
    found = records(b'1,"M\xfcller",2\n2,b,3\n', **PLAIN)
    assert refusal(found[0]) == (
        "here, row 1: not text in UTF-8 (byte 0xFC in column 2)",
        b'1,"M\xfcller",2',
    )
    assert found[1:] == [b"I,N,2,b,3"]


@pytest.mark.parametrize(
    "payload, reason",
    [
        (b'{"id": 1, "name": "M\xfcller"}', "not text in UTF-8 (byte 0xFC, at place 20)"),
        (b'{"id": 1, "name": "\\ud800"}', "a text has half of a surrogate pair"),
        (b'[{"id": 1, "name": "\\udbff"}]', "a text has half of a surrogate pair"),
        (b'[{"id": 1, "name": "\xfc"}]', "not text in UTF-8 (byte 0xFC, at place 19)"),
    ],
)
def test_an_object_that_is_no_text_is_a_dead_letter(payload: bytes, reason: str) -> None:
    (found,) = records(payload, type="json")
    assert refusal(found)[0] == f"here: {reason}"


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", *WIDE])
@pytest.mark.parametrize("kind", ["csv", "json"])
def test_messages_of_another_encoding(encoding: str, kind: str) -> None:
    text = '1,"Müller",2' if kind == "csv" else '{"id": 1, "name": "Müller", "value": 2}'
    columns = PLAIN if kind == "csv" else {}
    (found,) = records(text.encode(encoding), type=kind, encoding=encoding, **columns)
    assert found.decode().replace(" ", "") in ("I,N,1,Müller,2", "I,N,1,Müller,2.0")


def test_what_is_no_text_in_another_encoding_is_a_dead_letter_too() -> None:
    payload = "1,a\n2,".encode("utf-16-le") + b"\x00\xdc" + "b\n3,c\n".encode("utf-16-le")
    found = records(payload, encoding="utf-16", **PLAIN)
    assert [found[0], found[2]] == [b"I,N,1,a,", b"I,N,3,c,"]
    assert refusal(found[1])[0] == "here, row 2: not text in utf-16 (column 2)"
    (found_1252,) = records(b"1,\x81,2", encoding="cp1252", **PLAIN)
    assert refusal(found_1252)[0] == "here: not text in cp1252 (column 2)"


def test_encodings_are_of_texts() -> None:
    with pytest.raises(ValidationError, match="encoding is for types csv and json"):
        InputFormat.model_validate(
            {"type": "avro", "avro": {"definition": "x"}, "encoding": "latin-1"}
        )
    with pytest.raises(ValidationError, match="'utf-16' is for files and messages"):
        InputSocket(port=5000, format=LinesIn(encoding="utf-16"))
    InputSocket(port=5000, format=LinesIn(encoding="latin-1"))


@pytest.mark.parametrize("encoding", ["latin-1", *WIDE, *TEXT])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_file_of_another_encoding_is_read_on_from_any_row(
    tmp_path: Path, encoding: str, pack: type[bytes]
) -> None:
    path = tmp_path / "in.csv"
    word = TEXT.get(encoding, "Müller")
    expected = [[str(number), word * 20] for number in range(3000)]
    path.write_bytes(pack("".join(f"{','.join(row)}\n" for row in expected).encode(encoding)))
    clock = Clock()
    source = opened(path, clock=clock, growing=False, encoding=encoding)
    found = []
    for _ in range(20):
        rows = source.poll()
        found += [row.columns for row, _ in rows]
        if rows:
            source = opened(path, rows[-1][1], clock, growing=False, encoding=encoding)
    assert found == expected
    clock.settle()
    polled(source)
    assert source.behind() == 0


def test_a_growing_file_of_utf_16_waits_for_whole_characters(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    data = "1,ä\n2,𝄞\n3,c\n".encode("utf-16")
    source = opened(path, encoding="utf-16")
    found = []
    for byte in data:
        append(path, bytes([byte]))
        found += polled(source)
    assert found == [["1", "ä"], ["2", "𝄞"], ["3", "c"]]
    assert source.behind() == 0


def test_a_file_is_whole_unless_its_last_character_is_not(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes("a𝄞𝄞𝄞𝄞".encode("utf-16-le"))
    content = open_content(path, "utf-16-le")
    assert content is not None
    for offset in (0, 1, 5, 9, 13, 17):
        content.at(offset, 1)
        assert content.whole()
    append(path, b"\x34")
    assert not content.at(17, 1)
    assert not content.whole()
    content.close()


def test_a_copied_and_truncated_file_of_another_encoding_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    source = opened(path, encoding="latin-1", truncated="new")
    append(path, "1,ä\n2,ö\n".encode("latin-1"))
    assert polled(source) == [["1", "ä"], ["2", "ö"]]
    path.write_bytes("7,ü\n8,ß\n9,é\n".encode("latin-1"))
    assert polled(source) == [["7", "ü"], ["8", "ß"], ["9", "é"]]


def test_a_line_that_is_no_text_has_its_own_bytes(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(b"1,\xfc\n2,b\n")
    assert polled(opened(path)) == [["1", "\udcfc"], ["2", "b"]]


@settings(max_examples=200)
@given(
    text=st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
    encoding=st.sampled_from([*WIDE, "gb18030"]),
    cuts=st.lists(st.integers(0, 200), max_size=6),
)
def test_pieces_of_any_size_are_the_whole_text(text: str, encoding: str, cuts: list[int]) -> None:
    data = text.encode(encoding)
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    transcoder = Transcoder(encoding)
    pieces = [transcoder.feed(data[start:end]) for start, end in pairwise(places)]
    if not transcoder.waiting:
        assert b"".join(pieces).decode().removeprefix("\ufeff") == text.removeprefix("\ufeff")


@settings(max_examples=100)
@given(data=st.binary(max_size=300), encoding=st.sampled_from([*WIDE, "cp1252", "shift_jis"]))
def test_any_bytes_can_be_read_from_any_place(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, encoding: str
) -> None:
    path = tmp_path_factory.mktemp("any") / "in.csv"
    path.write_bytes(b"12" + data)
    content = open_content(path, encoding)
    assert content is not None
    whole = content.at(0, 10_000)
    for offset in range(len(whole)):
        assert content.at(offset, 7) == whole[offset : offset + 7]
    assert content.needs(len(whole)) <= path.stat().st_size < content.needs(len(whole) + 1)
    content.close()


def test_a_row_of_a_file_that_is_no_text_says_its_line(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(b"I;N;1;M\xfcller\nI;N;2;b\n")
    file = InputFile.model_validate({"path": str(path), "growing": True, "delimiter": ";"})
    job = Job("in", "", "x", WINDOW, "x.I", "x.P", Control())
    bad, good = (record for record, _ in _Rows(job, file, None).poll())
    assert refusal(bad) == (
        f"line 1 of {path}: not text in UTF-8 (byte 0xFC in column 4)",
        b"I;N;1;M\xfcller",
    )
    assert good == b"I,N,2,b,"
