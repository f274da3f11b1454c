"""How full the volume for snapshots is."""

import shutil
from pathlib import Path

import pytest

from espha.ha import volume


def test_a_folder_that_is_not_there_yet_has_its_parents_volume(tmp_path: Path) -> None:
    room = volume.room_of(tmp_path / "not" / "yet")
    assert room is not None
    assert room.total == shutil.disk_usage(tmp_path).total
    assert 0 < room.free <= room.total


def test_a_volume_that_cannot_be_asked_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(folder: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(shutil, "disk_usage", broken)
    assert volume.room_of(tmp_path) is None
    monkeypatch.setattr(Path, "exists", broken)
    assert volume.room_of(tmp_path) is None


def test_without_a_folder_there_is_nothing_to_see() -> None:
    assert volume.VolumeWatch("").room is None
