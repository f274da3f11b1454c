"""A file is there as a whole or not at all."""

import os
from pathlib import Path

import pytest

from espha.durable import UNFINISHED, replace_file


def test_the_parts_replace_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a much longer text than the new one")
    replace_file(path, [b"new ", b"", b"text"])
    assert path.read_bytes() == b"new text"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("call", ["open", "pwrite", "fsync"])
def test_what_cannot_be_written_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(OSError, match="No space left"):
            replace_file(path, [b"new"])
    assert path.read_bytes() == b"old"
    assert not path.with_name(path.name + UNFINISHED).exists()
