"""A file that grows, is cut, or is replaced, and positions in it."""

from pathlib import Path

import pytest

from espha.adapters.file_input.source import Position, SourceFile, source_position
from espha.adapters.file_input.spec import InputFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "in.csv"


def opened(path: Path, position: Position | None = None, **options: object) -> SourceFile:
    file = InputFile.model_validate({"path": str(path), "growing": True, **options})
    return SourceFile(file, position or source_position("memory", path))


def polled(source: SourceFile) -> list[list[str]]:
    return [row.columns for row in source.poll()]


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


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
    assert source.position.line == 4
    assert source.position.offset == path.stat().st_size
    assert source.position.generation == 1


def test_the_last_line_of_a_file_that_does_not_grow_needs_no_newline(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbf1,a\n2,b")
    assert polled(opened(path, growing=False)) == [["1", "a"], ["2", "b"]]


def test_another_process_goes_on_behind_any_row(path: Path) -> None:
    path.write_bytes(b"h\n1,a\n2,b\n3,c\n")
    all_rows = opened(path, headerLines=1).poll()
    for place, row in enumerate(all_rows, start=1):
        kept = Position.from_header(row.position.to_header())
        assert opened(path, kept, headerLines=1).poll() == all_rows[place:]


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(b"h\n9,z\n"),
        lambda path: path.write_bytes(b"h\n9,z\n8,y\n7,x\n6,w\n"),
        lambda path: (path.rename(path.with_suffix(".old")), path.write_bytes(b"h\n9,z\n")),
    ],
    ids=["shorter", "other content, longer", "renamed away"],
)
@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
def test_another_file_is_read_from_its_beginning(path: Path, change: object, restart: bool) -> None:
    assert callable(change)
    path.write_bytes(b"h\n1,a\n2,b\n")
    source = opened(path, headerLines=1)
    assert len(source.poll()) == 2
    change(path)
    if restart:
        source = opened(path, source.position, headerLines=1)
    found = [*source.poll(), *source.poll()]  # a renamed file is first looked at once more
    assert found[0].columns == ["9", "z"]
    assert {row.position.generation for row in found} == {2}


def test_what_was_written_before_a_rename_is_not_lost(path: Path) -> None:
    path.write_bytes(b"1,a\n")
    source = opened(path)
    assert polled(source) == [["1", "a"]]
    append(path, b"2,b\n3,c")
    path.rename(path.with_suffix(".old"))
    path.write_bytes(b"4,d\n")
    found = [polled(source) for _ in range(4)]
    assert found == [[["2", "b"]], [["3", "c"]], [], [["4", "d"]]]


def test_the_same_content_in_another_file_goes_on(path: Path) -> None:
    """An editor or a restored volume gives the file another inode, not other rows."""
    path.write_bytes(b"1,a\n2,b\n")
    source = opened(path)
    assert len(source.poll()) == 2
    copy = path.with_suffix(".copy")
    copy.write_bytes(b"1,a\n2,b\n3,c\n")
    copy.rename(path)
    assert [row for _ in range(3) for row in polled(source)] == [["3", "c"]]
    assert source.position.generation == 1


def test_a_file_that_is_deleted_is_waited_for(path: Path) -> None:
    path.write_bytes(b"1,a\n")
    source = opened(path)
    assert polled(source) == [["1", "a"]]
    path.unlink()
    assert polled(source) == []
    path.write_bytes(b"2,b\n")
    assert [row for _ in range(3) for row in polled(source)] == [["2", "b"]]


def test_a_folder_in_place_of_the_file_is_an_error_of_the_system(path: Path) -> None:
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        opened(path).poll()
