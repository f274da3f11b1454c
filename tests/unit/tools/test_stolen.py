"""What the host has kept for others."""

from pathlib import Path

import pytest

from tools import stolen


def test_idle_time_is_not_wanted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    monkeypatch.setattr(stolen, "_STAT", stat)
    stat.write_text("cpu  100 0 50 900 0 0 0 7 0 0\ncpu0 1 2 3\n")
    measured = stolen.Stolen()
    assert measured.share() == 0
    stat.write_text("cpu  160 0 70 1800 0 0 0 27 0 0\ncpu0 1 2 3\n")
    assert measured.share() == 0.2


def test_this_machine_tells() -> None:
    assert 0 <= stolen.Stolen().share() <= 1
