"""The result file: exact after a death at any moment."""

import errno
import os
from pathlib import Path

import pytest

from espha.adapters.config import ConfigError
from espha.adapters.file_output.target import TargetFile


class Died(BaseException):
    """The process ends here."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out.csv"


def opened(path: Path, topic_id: str = "id") -> TargetFile:
    return TargetFile(path, "topic", topic_id)


def test_lines_and_offset_survive_a_restart(path: Path) -> None:
    target = opened(path)
    target.append([b"header"], 0)
    target.append([b"a", b"b"], 7)
    target.close()
    again = opened(path)
    assert path.read_bytes() == b"header\na\nb\n"
    assert (again.position.offset, again.position.length) == (7, 11)
    again.close()


@pytest.mark.parametrize("dies_in", ["pwrite", "fsync", "replace", "open"])
def test_a_death_at_any_system_call_leaves_the_file_exact(
    path: Path, monkeypatch: pytest.MonkeyPatch, dies_in: str
) -> None:
    """Whatever call is the last one, the next process writes each line once."""
    lines = [b"line %d" % number for number in range(6)]
    for moment in range(12):
        countdown = iter(range(moment, -1, -1))
        owner = Path if dies_in == "replace" else os
        real = getattr(owner, dies_in)

        def deadly(*args: object, real: object = real, left: object = countdown) -> object:
            if next(left, 0) == 0:  # type: ignore[call-overload]
                raise Died
            return real(*args)  # type: ignore[operator]

        folder = path.parent / f"{dies_in}{moment}"
        folder.mkdir()
        file = folder / "out.csv"
        with monkeypatch.context() as patch:
            patch.setattr(owner, dies_in, deadly)
            with pytest.raises(Died):
                write_on(file, lines + [b"never reached"] * 20)
        write_on(file, lines)
        content = file.read_bytes().splitlines()
        assert content[: len(lines)] == lines
        assert set(content[len(lines) :]) <= {b"never reached"}


def write_on(file: Path, lines: list[bytes]) -> None:
    """Do what the adapter does: open, go on behind the recorded offset."""
    target = opened(file)
    try:
        for offset in range(target.position.offset, len(lines)):
            target.append([lines[offset]], offset + 1)
    finally:
        target.close()


def test_no_space_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a write, then "no space": the next try writes the line once."""
    target = opened(path)
    target.append([b"a"], 1)
    real = os.pwrite

    def full(descriptor: int, data: memoryview, offset: int) -> int:
        if offset > 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data[:2], offset)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(OSError, match="No space"):
            target.append([b"bbbbbbbb"], 2)
    target.append([b"bbbbbbbb"], 2)
    target.close()
    assert path.read_bytes() == b"a\nbbbbbbbb\n"


def test_two_adapters_never_write_one_file(path: Path) -> None:
    first = opened(path)
    with pytest.raises(BlockingIOError):
        opened(path)
    first.close()
    opened(path).close()


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda path, position: position.unlink(), "was not written by an output adapter"),
        (lambda path, position: position.write_text("{"), "is not an output adapter's position"),
        (lambda path, position: path.write_bytes(b"a"), "has 1 bytes, but the adapter wrote 2"),
        (lambda path, position: path.unlink(), "has 0 bytes, but the adapter wrote 2"),
    ],
    ids=["no position", "broken position", "shorter", "gone"],
)
def test_a_file_that_does_not_fit_its_position_is_refused(
    path: Path, spoil: object, sentence: str
) -> None:
    assert callable(spoil)
    target = opened(path)
    target.append([b"a"], 1)
    target.close()
    spoil(path, path.with_name("out.csv.position"))
    with pytest.raises(ConfigError, match=sentence):
        opened(path)


def test_another_topic_of_the_same_name_is_noticed(path: Path) -> None:
    opened(path, "first").close()
    with pytest.raises(ConfigError, match="another topic"):
        opened(path, "second")
