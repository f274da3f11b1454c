"""The judge of the campaign against adapters sees what is lost, double, torn or out of order."""

import gzip
import json
import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from edges import judge, sinks
from edges.record import Result, keep
from edges.rotating import RotatedFile
from edges.sources import seen_by_tag
from espha.checker.damage import compare

HEADER = "opcode,flags,index_esp,Record_Counter,MemoryUsed,MemoryFree,epoch,sum20"


def test_every_way_to_damage_a_file_is_seen(tmp_path: Path) -> None:
    whole = [sinks.record(number) for number in range(20)]
    damaged = [*whole[:3], *whole[4:8], whole[6], whole[9], whole[8], *whole[10:19], whole[19][:9]]
    (tmp_path / "out-000000000000.csv").write_text("\n".join([HEADER, *damaged[:8]]) + "\n")
    (tmp_path / "out.csv").write_text("\n".join([HEADER, *damaged[8:]]) + "\n")
    damage = compare(sinks.rows(20), judge.csv_files(tmp_path, "out", header=True))
    assert (damage.lost, damage.double, damage.disorder, damage.foreign) == (2, 1, 1, 1)


def test_whole_files_have_no_damage(tmp_path: Path) -> None:
    whole = [sinks.record(number) for number in range(20)]
    (tmp_path / "out.csv").write_text("\n".join(whole) + "\n")
    assert compare(sinks.rows(20), judge.csv_files(tmp_path, "out", header=False)).none
    (tmp_path / "out.csv").write_text("\n".join(whole))
    assert compare(sinks.rows(20), judge.csv_files(tmp_path, "out", header=False)).foreign == 1


def test_other_values_are_torn_rows_in_each_form(tmp_path: Path) -> None:
    names = ("index_esp", "Record_Counter", "MemoryUsed", "MemoryFree", "epoch", "sum20")
    values = [(1, 1, 1, 2, 3, 0.5), (2, 2, 1, 2, 4, 0.5)]
    wanted = [(1, 1), judge.TORN]
    rows = [dict(zip(names, each, strict=True)) for each in values]
    (tmp_path / "out.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert judge.json_files(tmp_path, "out") == wanted
    with sqlite3.connect(tmp_path / "out.db") as connection:
        connection.execute(f"CREATE TABLE t ({', '.join(names)})")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", values)
    assert judge.sqlite(tmp_path / "out.db", "t", "index_esp") == wanted
    offsets = [{**row, "espha_offset": place} for place, row in enumerate(rows)]
    (tmp_path / "parts").mkdir()
    pq.write_table(pa.Table.from_pylist(offsets), tmp_path / "parts" / "one.parquet")
    assert judge.parquet(tmp_path / "parts") == wanted


def test_a_table_of_upserts_holds_the_newest_row_of_each_key() -> None:
    assert sinks.newest(10) == [
        (0, 0),
        (1, 1),
        (2, 2),
        (3, 3),
        (4, 4),
        (5, 9),
        (6, 6),
        (7, 7),
        (8, 8),
    ]


def test_rows_are_told_apart_by_their_source() -> None:
    published = ["I,N,,0,1,2,1", "I,N,,0,1,2,2", "I,N,,1,1,2,1", "I,N,,1,1", "U,N,,2,1,2,1"]
    assert seen_by_tag(published) == {1: [0, 1], 2: [0], -1: [-1, -1]}


def test_rotation_keeps_every_row(tmp_path: Path) -> None:
    file = RotatedFile(tmp_path / "in.csv", str, seed=3)
    for turn in range(9):
        file.send(10 * (turn + 1))
        file.rotate()
    file.close()
    texts = [path.read_bytes() for path in tmp_path.iterdir()]
    plain = [gzip.decompress(text) if text[:2] == b"\x1f\x8b" else text for text in texts]
    numbers = sorted(int(line) for text in plain for line in text.split())
    assert numbers == list(range(file.sent))
    assert len(texts) == 10


def test_results_of_other_kinds_are_kept(tmp_path: Path) -> None:
    one = Result.of("csv out", 200, 10, compare([1], [1]))
    keep([one], tmp_path)
    keep([Result.of("file in", 2, 10, compare([1], []))], tmp_path)
    keep([one.model_copy(update={"kills": 7})], tmp_path)
    page = (tmp_path / "edges.md").read_text()
    assert "| csv out | 7 |  | 10 | 0 | 0 | 0 | 0 |  |" in page
    assert "| file in | 2 |  | 10 | 1 | 0 | 0 | 0 |  |" in page
