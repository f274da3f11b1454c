"""A file that grows, is cut, or is replaced, and positions in it."""

import gzip
import hashlib
import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from backports import zstd

from espha.adapters.config import ConfigError, Held, Job
from espha.adapters.file_input.position import Position
from espha.adapters.file_input.run import _Rows
from espha.adapters.file_input.spec import InputFile
from espha.protocol.child_side import Control
from espha.protocol.states import Step
from support.files import Clock, append, opened, polled, told
from support.outputs import outbound


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "in.csv"


def test_a_growing_file_is_read_by_whole_lines(path: Path) -> None:
    source = opened(path, headerLines=2)
    assert polled(source) == []
    append(path, b"head\n")
    assert polled(source) == []
    append(path, b"er\n1,a\n2,")
    assert polled(source) == [["1", "a"]]
    assert polled(source) == []
    append(path, b"b\n")
    assert polled(source) == [["2", "b"]]
    place = source.position.place
    assert (place.line, place.offset, place.generation) == (4, path.stat().st_size, 1)


def test_a_pipe_is_no_file(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(ConfigError, match="pipe it into `espha adapter send`"):
        opened(path).poll()
    with pytest.raises(ConfigError, match="pipe it into `espha adapter send`"):
        opened(Path("/dev/null")).poll()


def test_the_last_line_of_a_file_that_does_not_grow_needs_no_newline(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbf1,a\n2,b")
    clock = Clock()
    source = opened(path, clock=clock, growing=False)
    assert polled(source) == [["1", "a"]]
    clock.settle()
    assert polled(source) == [["2", "b"]]


def test_a_file_that_is_still_copied_is_not_torn(path: Path) -> None:
    """With the default, too, a line counts only when the file has stood still (A1 c)."""
    path.write_bytes(b"1,alpha\n2,be")
    clock = Clock()
    source = opened(path, clock=clock, growing=False)
    found = polled(source, 3)
    append(path, b"ta\n3,gamma")
    found += polled(source, 3)
    clock.settle()
    assert found + polled(source) == [["1", "alpha"], ["2", "beta"], ["3", "gamma"]]


def test_a_file_that_goes_on_in_its_last_line_after_all_says_so(path: Path) -> None:
    path.write_bytes(b"1,a\n2,be")
    clock = Clock()
    source = opened(path, clock=clock, growing=False)
    polled(source)
    clock.settle()
    assert polled(source) == [["2", "be"]]
    append(path, b"ta\n3,c\n")
    source = opened(path, source.position, growing=False)
    ((rest, _),) = source.poll()
    assert (rest.columns, rest.line) == (["ta"], 2)
    assert "rest of a line" in rest.reason
    assert polled(source) == [["3", "c"]]


def test_another_process_goes_on_behind_any_row(path: Path) -> None:
    path.write_bytes(b"h\n1,a\n2,b\n3,c\n")
    rows = opened(path, headerLines=1).poll()
    for number, (_, position) in enumerate(rows, start=1):
        rest = opened(path, position, headerLines=1).poll()
        assert [row for row, _ in rest] == [row for row, _ in rows[number:]]


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(b"h\n9,z\n8,y\n7,x\n6,w\n"),
        lambda path: (path.rename(path.with_suffix(".old")), path.write_bytes(b"h\n9,z\n")),
    ],
    ids=["other content, longer", "renamed away"],
)
@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
def test_another_file_is_read_from_its_beginning(path: Path, change: object, restart: bool) -> None:
    assert callable(change)
    path.write_bytes(b"h\n1,a\n2,b\n")
    clock = Clock()
    source = opened(path, clock=clock, headerLines=1)
    assert len(source.poll()) == 2
    change(path)
    if restart:
        source = opened(path, source.position, clock, headerLines=1)
    polled(source)
    clock.settle()
    rest = [place for _ in range(3) for place in source.poll()]
    source = opened(path, source.position, clock, headerLines=1)
    assert source.position.place.generation == 2
    assert not rest or rest[0][0].columns == ["9", "z"]


def test_the_same_content_in_another_file_goes_on(path: Path) -> None:
    """An editor or a restored volume gives the file another inode, not other rows."""
    path.write_bytes(b"1,a\n2,b\n")
    source = opened(path)
    assert len(source.poll()) == 2
    copy = path.with_suffix(".copy")
    copy.write_bytes(b"1,a\n2,b\n3,c\n")
    copy.rename(path)
    assert polled(source, 3) == [["3", "c"]]
    assert source.position.place.generation == 1


def test_a_file_that_is_deleted_is_waited_for(path: Path) -> None:
    path.write_bytes(b"1,a\n")
    clock = Clock()
    source = opened(path, clock=clock)
    assert polled(source) == [["1", "a"]]
    path.unlink()
    assert polled(source) == []
    path.write_bytes(b"2,b\n")
    assert polled(source) == []
    clock.settle()
    assert polled(source, 2) == [["2", "b"]]


def test_a_folder_in_place_of_the_file_is_an_error_of_the_system(path: Path) -> None:
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        opened(path).poll()


@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
@pytest.mark.parametrize("kept", [0, 3, 40, 7_860])
def test_a_file_that_looks_shorter_is_held_and_never_published_twice(
    path: Path, restart: bool, kept: int
) -> None:
    """Another node of a shared volume may not see the last rows yet (A1 b)."""
    data = b"".join(b"%d,row\n" % number for number in range(1000))
    path.write_bytes(data)
    source = opened(path)
    assert len(polled(source, 3)) == 1000
    path.write_bytes(data[:kept])
    if restart:
        source = opened(path, source.position)
    with pytest.raises(Held, match="bytes were read"):
        source.poll()
    path.write_bytes(data + b"1000,row\n")
    assert polled(source, 3) == [["1000", "row"]]


def test_who_says_so_has_a_shorter_file_read_as_a_new_one(path: Path) -> None:
    path.write_bytes(b"1,up\n" * 200)
    source = opened(path, truncated="new")
    assert len(polled(source, 2)) == 200
    path.write_bytes(b"1,up\n" * 60)
    assert len(polled(source, 2)) == 60
    assert source.position.place.generation == 2


def test_a_file_with_like_ends_is_another_one_when_it_differs_between(path: Path) -> None:
    """Cut and written anew while nobody looked (A1 d): not only the ends are compared."""
    same, first, second = b"1,up\n" * 2000, b"2,down\n" * 99, b"3,left\n" * 99
    path.write_bytes(same + first + same)
    source = opened(path, truncated="new")
    assert len(polled(source, 2)) == 4099
    path.write_bytes(same + second + same + b"4,x\n")
    again = opened(path, source.position, truncated="new")
    assert len(polled(again, 2)) == 4100
    with pytest.raises(Held, match="was changed before byte"):
        opened(path, source.position).poll()


def test_positions_of_the_version_before_are_understood(path: Path) -> None:
    """They had one fingerprint, of the first and the last 256 bytes together."""
    path.write_bytes(b"1,a\n2,b\n3,c\n")
    old = {"adapter": "memory", "file": "x", "generation": 3, "line": 2, "offset": 8}
    mark = digest_of(b"1,a\n2,b\n" * 2)
    source = opened(path, Position.from_object({**old, "mark": mark}))
    assert polled(source) == [["3", "c"]]
    assert source.position.place.generation == 3
    path.write_bytes(b"1,a\n")
    with pytest.raises(Held):
        opened(path, Position.from_object({**old, "mark": mark})).poll()


def digest_of(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def test_a_line_of_fifty_megabytes_is_one_bad_row(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"1,a\n")
        for _ in range(50):
            file.write(b"1,1," * 262_144)
        file.write(b"\n2,b\n")
    source = opened(path)
    rows = [row for _ in range(4) for row, _ in source.poll()]
    assert [row.columns for row in rows if not row.reason] == [["1", "a"], ["2", "b"]]
    (bad,) = (row for row in rows if row.reason)
    assert bad.reason == "a line of 52428801 bytes; a row can have 131072"
    assert (bad.line, len(bad.columns[0])) == (2, 65_536)
    assert polled(opened(path, source.position)) == []


def test_a_long_line_is_waited_for_without_being_read_again(path: Path) -> None:
    path.write_bytes(b"x" * 300_000)
    source = opened(path)
    assert polled(source, 2) == []
    append(path, b"y" * 10 + b"\n1,a\n")
    rows = [row for _ in range(2) for row, _ in source.poll()]
    assert [bool(row.reason) for row in rows] == [True, False]
    kept = opened(path, source.position)
    append(path, b"2,b\n")
    assert polled(kept) == [["2", "b"]]


def test_bytes_of_code_zero_are_waited_for_and_then_taken(path: Path) -> None:
    """A network volume may show a file's length before its bytes."""
    path.write_bytes(b"1,a\n2,\0\0\n3,c\n")
    clock = Clock()
    source = opened(path, clock=clock)
    assert polled(source, 2) == [["1", "a"]]
    with path.open("r+b") as file:
        file.seek(6)
        file.write(b"bb")
    assert polled(source) == [["2", "bb"], ["3", "c"]]
    append(path, b"4,x\0y\n")
    assert polled(source, 2) == []
    clock.settle()
    assert polled(source) == [["4", "x\0y"]]


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
def test_what_is_compressed_is_expanded_and_read_on(path: Path, pack: object) -> None:
    assert callable(pack)
    rows = b"".join(b"%d,row\n" % number for number in range(100_000))
    data: bytes = pack(rows)
    path.write_bytes(data[:-200])
    clock = Clock()
    source = opened(path, clock=clock, growing=False)
    found = polled(source, 20)
    clock.settle()
    found += polled(source)  # an end that is missing is no end
    append(path, data[-200:])
    found += polled(source)
    kept = opened(path, source.position, clock, growing=False)
    clock.settle()
    found += polled(kept, 20)
    append(path, pack(b"x,more"))
    polled(kept)
    clock.settle()
    found += polled(kept, 3)
    assert found == [[str(number), "row"] for number in range(100_000)] + [["x", "more"]]


@pytest.mark.parametrize("pattern", ["", "*.csv"], ids=["file", "folder"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["as it is", "gzip"])
def test_whoever_waits_for_much_of_a_file_hears_that_it_gets_on(
    path: Path, pack: object, pattern: str
) -> None:
    """To come to a place in what is compressed takes as long as the file is large."""
    assert callable(pack)
    lines = [hashlib.sha256(b"%d" % number).hexdigest() for number in range(20_000)]
    path.write_bytes(pack("".join(f"1,{line}\n" for line in lines).encode()))
    where = {"path": str(path.parent if pattern else path), "pattern": pattern}
    file = InputFile.model_validate({**where, "growing": True})
    control = Control()
    job = Job("in", "", "x", outbound("id*:int32,name:string"), "x.I", "x.P", control)
    source = _Rows(job, file, None)
    while source.poll():
        behind = json.loads(source.position.to_header())
    with control.doing.within(Step.SOURCE):
        _Rows(job, file, behind).poll()
        said = control.doing.told()
    assert said is not None
    assert said.turn > path.stat().st_size // 262_144


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
def test_the_mark_of_utf_8_is_no_text_in_what_is_compressed_either(
    path: Path, pack: Callable[[bytes], bytes]
) -> None:
    path.write_bytes(pack(b"\xef\xbb\xbfid,name\n1,a\n2,b\n"))
    source = opened(path, headerLines=1)
    assert polled(source, 2) == [["1", "a"], ["2", "b"]]
    path.write_bytes(pack(b"\xef\xbb\xbf3,c\n"))
    clock = Clock()
    again = opened(path, clock=clock)
    assert polled(again, 2) == [["3", "c"]]


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
def test_a_row_without_its_end_waits_for_the_rest_of_what_is_compressed(
    path: Path, pack: Callable[[bytes], bytes]
) -> None:
    """Also where files need not stand still, and nothing of it was expanded before."""
    rows = [[str(number), hashlib.sha256(b"%d" % number).hexdigest()] for number in range(9)]
    packed = pack("\n".join(map(",".join, rows)).encode())
    for there in range(20, len(packed)):
        path.write_bytes(packed[:there])
        found = polled(opened(path, growing=False, settleS=0), 3)
        assert found == rows[: len(found)]


def test_a_file_and_its_folder_may_come_later(tmp_path: Path) -> None:
    path = tmp_path / "later" / "in.csv"
    clock = Clock()
    source, standby = opened(path, clock=clock), opened(path, clock=clock)
    for one in (source, standby):
        assert polled(one, 2) == []
        assert (one.position.place.offset, one.behind()) == (0, 0)
    path.parent.mkdir()
    assert polled(source) == []
    append(path, b"1,a\n2,b\n")
    ((_, first), _) = source.poll()
    standby.advance(told(first))
    clock.settle()
    assert polled(standby) == [["2", "b"]]


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("utf-8", bytes),
        ("utf-8", gzip.compress),
        ("latin-1", bytes),
        ("utf-16-le", bytes),
        ("latin-1", gzip.compress),
    ],
)
def test_memory_is_bounded_whatever_the_length_of_lines(
    path: Path, encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    """A line of 24 MB, then rows of 64 kB each."""
    lines = [b"x" * 24_000_000, *(b"%d," % number + b"y" * 65_000 for number in range(100))]
    data = b"".join(line + b"\n" for line in lines)
    path.write_bytes(pack(data.decode().encode(encoding)))
    del data, lines
    source = opened(path, encoding=encoding)
    tracemalloc.start()
    try:
        found = []
        for _ in range(60):
            found += [(row.columns[0][:5], row.reason) for row, _ in source.poll()]
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found[0] == ("xxxxx", "a line of 24000001 bytes; a row can have 131072")
    assert [row for row, _ in found[1:]] == [str(number) for number in range(100)]
    assert most < 4_000_000


def test_damaged_compressed_data_is_an_error_of_the_system(path: Path) -> None:
    path.write_bytes(gzip.compress(b"1,a\n")[:-8] + b"\xff" * 8)
    with pytest.raises(OSError, match="damaged"):
        polled(opened(path), 3)


def test_the_header_of_a_record_is_json_for_others(path: Path) -> None:
    path.write_bytes(b"1,a\n2,b\n")
    first, last = (json.loads(position.to_header()) for _, position in opened(path).poll())
    assert first == {
        "adapter": "memory", "file": str(path), "generation": 1, "line": 1, "offset": 4
    }  # fmt: skip
    assert last["marks"]["size"] == 8
