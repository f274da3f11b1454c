"""Files with lines of JSON, as records."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from espha.adapters.config import Job
from espha.adapters.file_input.run import _Rows
from espha.adapters.file_input.spec import InputFile
from espha.adapters.formats.refused import read_not_a_row
from espha.protocol.child_side import Control
from espha.records.rows import MAX_RECORD
from support.files import append
from support.outputs import outbound


def rows(path: Path, **options: object) -> _Rows:
    file = InputFile.model_validate(
        {"path": str(path), "format": "json", "growing": True, **options}
    )
    job = Job("in", "", "x", outbound(), "x.I", "x.P", Control())
    return _Rows(job, file, None)


def test_lines_of_json_are_records(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    source = rows(path, upsert=True)
    append(path, b'{"id": 1, "name": "a\\nb"}\n\n[{"id": 2}, {"id": 3, "opcode": "D"}]\n{"id"')
    found: list[Any] = source.poll()
    assert [record for record, _ in found] == [b'P,N, 1,"a\nb",', b"P,N, 2,,", b"D,N, 3,,"]
    # Both objects of a line stand before the position behind it.
    places = [position.progress(0).offset for _, position in found]
    assert places[1] == places[2] != places[0]
    assert source.poll() == []
    append(path, b": 4}\r\n")
    assert [record for record, _ in source.poll()] == [b"P,N, 4,,"]


def test_what_is_no_object_says_its_line(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    source = rows(path)
    append(path, b'{"id": 1}\nnothing\n' + b"x" * (MAX_RECORD + 5) + b'\n{"id": 2}\n')
    found = [record for _ in range(3) for record, _ in source.poll()]
    assert (found[0], found[-1]) == (b"I,N, 1,,", b"I,N, 2,,")
    reasons = [unread.reason for one in found if (unread := read_not_a_row(one))]
    assert reasons == [
        f"line 2 of {path}: not a JSON object",
        f"line 3 of {path}: a line of {MAX_RECORD + 6} bytes; a row can have {MAX_RECORD}",
    ]


def test_columns_are_for_csv() -> None:
    with pytest.raises(ValidationError, match="opcode is for format csv, not for json"):
        InputFile.model_validate({"path": "x", "format": "json", "opcode": False})
