"""The files of a folder."""

import gzip
from pathlib import Path

import pytest
from backports import zstd
from structlog.testing import capture_logs

from espha.adapters.config import Held
from espha.adapters.file_input.folder import SourceFolder
from espha.adapters.file_input.position import Position, RowPosition, source_position
from espha.adapters.file_input.spec import InputFile
from support.files import Clock, append, told


def opened(
    folder: Path, clock: Clock, position: Position | RowPosition | None = None
) -> SourceFolder:
    options = {"path": str(folder), "pattern": "*.csv*", "headerLines": 1}
    begin = told(position) if position else source_position("memory", folder)
    return SourceFolder(InputFile.model_validate(options), begin, clock)


def polled(source: SourceFolder, clock: Clock) -> list[str]:
    """Let files settle until nothing comes any more."""
    found = []
    for _ in range(12):
        found += [row.columns[0] for row, _ in source.poll()]
        clock.settle()
    return found


def test_files_are_read_once_each_in_the_order_of_their_names(tmp_path: Path) -> None:
    clock = Clock()
    source = opened(tmp_path / "later", clock)
    assert polled(source, clock) == []
    folder = tmp_path / "later"
    folder.mkdir()
    (folder / "b.csv").write_bytes(b"head\n3,x\n4,y")
    (folder / "a.csv.gz").write_bytes(gzip.compress(b"head\n1,x\n2,y\n"))
    (folder / "c.txt").write_bytes(b"head\n9,x\n")
    assert polled(source, clock) == ["1", "2", "3", "4"]
    append(folder / "c.csv", b"head\n5,x\n")
    assert polled(source, clock) == ["5"]
    assert source.position.place.generation == 3


def test_another_process_goes_on_behind_any_row(tmp_path: Path) -> None:
    clock = Clock()
    for number in range(3):
        append(tmp_path / f"{number}.csv", b"head\n%d0,x\n%d1,x\n" % (number, number))
    whole, rows = opened(tmp_path, clock), []
    for _ in range(12):
        rows += whole.poll()
        clock.settle()
    for number, (_, position) in enumerate(rows, start=1):
        again = opened(tmp_path, clock, position)
        assert polled(again, clock) == [row.columns[0] for row, _ in rows[number:]]
    standby = opened(tmp_path, clock)
    standby.advance(told(rows[3][1]))
    assert polled(standby, clock) == ["20", "21"]


def test_a_file_that_was_read_may_be_removed_and_one_that_was_not_is_waited_for(
    tmp_path: Path,
) -> None:
    clock = Clock()
    append(tmp_path / "a.csv", b"head\n1,x\n")
    source = opened(tmp_path, clock)
    ((_, done),) = source.poll()
    (tmp_path / "a.csv").unlink()
    append(tmp_path / "b.csv", b"head\n2,x\n3,y")
    assert polled(opened(tmp_path, clock, done), clock) == ["2", "3"]
    source = opened(tmp_path, clock, done)
    ((_, half),) = source.poll()
    (tmp_path / "b.csv").unlink()
    with pytest.raises(Held, match=r"b\.csv is gone"):
        opened(tmp_path, clock, half).poll()
    append(tmp_path / "b.csv", b"head\n2,x\n3,y")
    assert polled(opened(tmp_path, clock, half), clock) == ["3"]
    (tmp_path / "b.csv").write_bytes(b"head\n7,x\n8,y\n")
    with pytest.raises(Held, match="is not what was read"):
        opened(tmp_path, clock, half).poll()


def test_a_file_that_comes_too_late_is_named(tmp_path: Path) -> None:
    clock = Clock()
    append(tmp_path / "b.csv", b"head\n2,x\n")
    source = opened(tmp_path, clock)
    assert polled(source, clock) == ["2"]
    append(tmp_path / "a.csv", b"head\n1,x\n")
    with capture_logs() as logs:
        assert polled(source, clock) == []
    assert [log["files"] for log in logs] == [["a.csv"]]


def test_empty_files_that_stand_still_hold_up_nothing(tmp_path: Path) -> None:
    clock = Clock()
    append(tmp_path / "a.csv", b"head\n1,x\n")
    for empty in ("b1.csv", "b2.csv"):
        append(tmp_path / empty, b"")
    append(tmp_path / "c.csv", b"head\n3,x\n")
    source = opened(tmp_path, clock)
    ((_, done),) = source.poll()
    with capture_logs() as logs:
        assert polled(source, clock) == ["3"]
    assert [log["files"] for log in logs if "files" in log] == [["b1.csv", "b2.csv"]]
    assert polled(opened(tmp_path, clock, done), clock) == ["3"]


def test_an_empty_file_may_get_its_rows_until_the_next_one_is_read(tmp_path: Path) -> None:
    clock = Clock()
    append(tmp_path / "a.csv", b"")
    source = opened(tmp_path, clock)
    assert polled(source, clock) == []
    append(tmp_path / "a.csv", b"head\n1,x\n")
    assert polled(source, clock) == ["1"]
    append(tmp_path / "b.csv", b"")
    append(tmp_path / "c.csv", b"head\n3,x\n")
    clock.settle()
    assert source.poll() == []
    append(tmp_path / "b.csv", b"head\n2,x\n")
    with capture_logs() as logs:
        assert polled(source, clock) == ["2", "3"]
    assert not [log for log in logs if "files" in log]


PACKED = {
    "gzip": gzip.compress(b"head\n1,x\n2,y\n", mtime=0),
    "zstd": zstd.compress(b"head\n1,x\n2,y\n"),
}


@pytest.mark.parametrize("there", [2, 14, -1])
@pytest.mark.parametrize("kind", PACKED)
def test_a_compressed_file_without_its_end_is_waited_for_with_a_word(
    tmp_path: Path, kind: str, there: int
) -> None:
    clock = Clock()
    packed = PACKED[kind]
    append(tmp_path / "a.csv", packed[:there])
    append(tmp_path / "b.csv", b"head\n3,x\n")
    source = opened(tmp_path, clock)
    rows = [row.columns[0] for row, _ in source.poll()]
    clock.settle()
    for _ in range(2):
        with pytest.raises(Held, match=r"a\.csv stands still, and is not complete"):
            rows += polled(source, clock)
    append(tmp_path / "a.csv", packed[there:])
    assert rows + polled(source, clock) == ["1", "2", "3"]


@pytest.mark.parametrize("removed", [False, True])
def test_a_file_without_its_end_can_be_replaced_by_the_whole_one(
    tmp_path: Path, removed: bool
) -> None:
    clock = Clock()
    packed = gzip.compress(b"head\n1,x\n2,y\n", mtime=0)
    append(tmp_path / "a.csv", packed[:-1])
    append(tmp_path / "b.csv", b"head\n3,x\n")
    source = opened(tmp_path, clock)
    rows = [row.columns[0] for row, _ in source.poll()]
    clock.settle()
    with pytest.raises(Held, match="is not complete"):
        source.poll()
    if removed:
        (tmp_path / "a.csv").unlink()
        with pytest.raises(Held, match=r"a\.csv is gone"):
            polled(source, clock)
    append(tmp_path / "new", packed)
    (tmp_path / "new").replace(tmp_path / "a.csv")
    assert rows + polled(source, clock) == ["1", "2", "3"]


def test_what_waits_is_the_rest_of_the_file_and_those_behind_it(tmp_path: Path) -> None:
    clock = Clock()
    append(tmp_path / "a.csv", b"head\n1,x\n")
    append(tmp_path / "b.csv", b"head\n2,x\n")
    source = opened(tmp_path, clock)
    assert source.behind() == 18
    source.poll()
    append(tmp_path / "a.csv", b"3,")
    assert source.behind() == 2 + 9
