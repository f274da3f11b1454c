"""A file that cannot be read for a moment, or is damaged: no row is lost, and none comes twice."""

import errno
import gzip
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from espha.adapters.file_input import source as file_source
from espha.adapters.file_input.content import _Plain
from espha.adapters.file_input.folder import SourceFolder
from espha.adapters.file_input.kin import Kin, rotated
from espha.adapters.file_input.position import source_position
from espha.adapters.file_input.reading import _CHUNK, Reading
from espha.adapters.file_input.source import SourceFile
from espha.adapters.file_input.spec import InputFile
from support.files import Clock, append
from support.processes import descriptors

_LINES = 6000
"""So many do not fit into what one poll reads."""

Source = SourceFile | SourceFolder


def opened(kind: type[Source], folder: Path, clock: Clock | None = None) -> Source:
    """Open `in.csv` in a folder, as a file or as one of the folder's files."""
    there = (
        {"path": folder, "pattern": "*.csv"} if kind is SourceFolder else {"path": _file(folder)}
    )
    file = InputFile.model_validate(there)
    return kind(file, source_position("memory", file.path), clock or Clock())


def _file(folder: Path) -> Path:
    return folder / "in.csv"


def _refused(*_: object) -> NoReturn:
    raise OSError(errno.EIO, "Input/output error")


def failing(patch: pytest.MonkeyPatch, name: str, calls: Callable[[int], bool]) -> None:
    """Have those calls of a method of an open file fail whose numbers are told."""
    inner, numbers = getattr(_Plain, name), itertools.count()

    def called(self: _Plain, *args: Any) -> Any:
        if calls(next(numbers)):
            _refused()
        return inner(self, *args)

    patch.setattr(_Plain, name, called)


def published(source: Source, errors: list[OSError]) -> list[str]:
    """Return the rows as the active adapter takes them: several polls to a transaction."""
    found: list[str] = []
    for _ in range(8):
        try:
            transaction = source.poll()
        except OSError as error:
            errors.append(error)
            source.close()
            continue
        try:
            transaction += source.poll()
        except OSError as error:
            errors.append(error)
        found += [row.columns[0] for row, _ in transaction]
    return found


@pytest.mark.parametrize("method", ["stat", "at"])
@pytest.mark.parametrize("kind", [SourceFile, SourceFolder])
def test_two_errors_in_a_row_lose_no_row_wherever_they_come(
    tmp_path: Path, kind: type[Source], method: str
) -> None:
    _file(tmp_path).write_bytes(b"".join(b"%d,%s\n" % (one, b"x" * 90) for one in range(_LINES)))
    seen = 0
    for first in range(40):
        errors: list[OSError] = []
        with pytest.MonkeyPatch.context() as patch:
            source = opened(kind, tmp_path)
            failing(patch, method, range(first, first + 2).__contains__)
            rows = published(source, errors)
        assert rows == [str(one) for one in range(_LINES)], f"{method} {first}"
        assert source.position.place.line == _LINES
        source.close()
        seen += len(errors)
    assert seen > 10


def test_a_folder_that_cannot_be_looked_at_loses_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _file(tmp_path).write_bytes(b"1,a\n2,b\n")
    source = opened(SourceFile, tmp_path)
    source.look()
    with monkeypatch.context() as patch, pytest.raises(OSError, match="Input/output"):
        patch.setattr(file_source, "rotated", _refused)
        source.poll()
    source.close()
    assert [row.columns[0] for row, _ in source.poll()] == ["1", "2"]


@pytest.mark.parametrize("kind", [SourceFile, SourceFolder])
def test_a_file_that_is_damaged_has_a_position_all_the_same(
    tmp_path: Path, kind: type[Source]
) -> None:
    damaged = gzip.compress(b"1,a\n")[:-8] + b"\xff" * 8
    _file(tmp_path).write_bytes(damaged)
    source = opened(kind, tmp_path)
    source.look()
    assert source.position.place.offset == 0
    for _ in range(2):
        with pytest.raises(OSError, match="damaged, or not complete yet"):
            source.poll()
        source.close()
        assert source.position.place.offset == 0
    _file(tmp_path).write_bytes(gzip.compress(b"1,a\n"))
    assert [row.columns[0] for row, _ in source.poll()] == ["1"]


@pytest.mark.parametrize("kind", [SourceFile, SourceFolder])
def test_rows_right_before_the_damage_come_once(tmp_path: Path, kind: type[Source]) -> None:
    whole = gzip.compress(b"0123456,89abcde\n" * (_CHUNK // 16))
    _file(tmp_path).write_bytes(whole + gzip.compress(b"1,a\n")[:-8] + b"\xff" * 8)
    source = opened(kind, tmp_path)
    rows = source.poll()
    assert len(rows) == _CHUNK // 16
    assert rows[-1][1] == source.position
    for _ in range(2):
        with pytest.raises(OSError, match="damaged"):
            source.poll()
        source.close()
        assert source.position.place.offset == _CHUNK


@pytest.mark.parametrize("fails", [(Reading, "resume"), (_Plain, "stat")], ids=lambda one: one[1])
@pytest.mark.parametrize("kind", [SourceFile, SourceFolder])
def test_a_file_that_is_tried_again_and_again_is_open_once_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Source], fails: tuple[type, str]
) -> None:
    _file(tmp_path).write_bytes(b"1,a\n")
    source = opened(kind, tmp_path)
    assert len(source.poll()) == 1
    source.close()
    before = descriptors()
    with monkeypatch.context() as patch:
        patch.setattr(*fails, _refused)
        for _ in range(10):
            with pytest.raises(OSError, match="Input/output"):
                source.poll()
    assert descriptors() == before
    append(_file(tmp_path), b"2,b\n")
    assert [row.columns[0] for row, _ in source.poll()] == ["2"]


def test_what_has_replaced_a_file_is_open_once_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    _file(tmp_path).write_bytes(b"1,a\n")
    source = opened(SourceFile, tmp_path, clock)
    assert len(source.poll()) == 1
    _file(tmp_path).rename(tmp_path / "in.csv.1")
    _file(tmp_path).write_bytes(b"2,b\n")
    source.poll()
    clock.settle()
    before, calls = descriptors(), itertools.count()

    def refused_behind(path: Path) -> list[Kin]:
        return _refused() if next(calls) % 2 else rotated(path)

    with monkeypatch.context() as patch:
        patch.setattr(file_source, "rotated", refused_behind)
        for _ in range(10):
            with pytest.raises(OSError, match="Input/output"):
                source.poll()
    assert descriptors() == before
    assert [row.columns[0] for _ in range(2) for row, _ in source.poll()] == ["2"]
