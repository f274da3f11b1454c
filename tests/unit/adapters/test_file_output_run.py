"""What stands in the lines of a result file, and when the next file begins."""

import json
from pathlib import Path

from espha.adapters.copying import Taken
from espha.adapters.file_output.run import Output
from espha.adapters.file_output.spec import OutputFile
from espha.adapters.file_output.target import TargetFile
from espha.model import Window
from support.outputs import outbound


def output(path: Path, window: Window, **options: object) -> Output:
    file = OutputFile.model_validate({"path": str(path), **options})
    return Output(file, window, TargetFile(path, "topic", "id"))


def test_records_are_written_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    made = output(path, outbound(), header="full")
    made.append([Taken(0, b"I,N, 1,a,0.5"), Taken(4, b"\xff")], 5)
    made.settle()
    assert path.read_bytes() == b"opcode,flags,id,name,value\nI,N, 1,a,0.5\n\xff\n"
    assert made.offset == 5


def test_json_lines_have_the_fields_and_bad_records_stand_among_them(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    made = output(path, outbound(), format="json")
    records = [b'U,N, 1,"a ""b"",\nc",0.500000', b"I,N, x,,", b"\xff", b"D,R, 2,,"]
    made.append([Taken(at, value) for at, value in enumerate(records)], 4)
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"opcode": "U", "flags": "N", "id": 1, "name": 'a "b",\nc', "value": 0.5},
        {
            "rejected": "field id: 'x' is not a whole number (int64)",
            "offset": 1,
            "record": "I,N, x,,",
        },
        {"rejected": "the record is not text in UTF-8", "offset": 2, "record": "\ufffd"},
        {"opcode": "D", "flags": "R", "id": 2, "name": None, "value": None},
    ]
    assert made.progress(4).rejected == 2


def test_a_file_is_full_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    made = output(path, outbound(), header="true", rotateBytes=41)
    for offset in range(6):
        made.append([Taken(offset, b"I,N, 1,abc,0")], offset + 1)
        made.settle()
    files = sorted(tmp_path.glob("out-*.csv"))
    assert [file.name for file in files] == ["out-000000000000.csv", "out-000000000003.csv"]
    assert [len(file.read_bytes().splitlines()) for file in files] == [4, 4]
    made.settle()
    assert path.read_bytes() == b""
