"""The page of failure modes names tests, files and faults that there are."""

import re
from pathlib import Path

from chaos.faults import FAULTS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "explanation" / "failure-modes.md").read_text(encoding="utf-8")
ROWS = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| ") and "`" in line]


def named(column: int) -> set[str]:
    """Return what stands in a column of the tables."""
    return {name for row in ROWS for name in re.findall(r"`([^`]+)`", row[column])}


def test_tests_are_there() -> None:
    files = (ROOT / "tests").rglob("test_*.py")
    there = {name for file in files for name in re.findall(r"def (test_\w+)", file.read_text())}
    assert len(ROWS) > 40
    assert named(3) - there == set()


def test_files_are_there() -> None:
    files = {
        file.name
        for folder in ("engine", "operator", "docs")
        for file in (ROOT / folder).rglob("*.*")
    }
    assert named(2) - files == set()


def test_faults_are_there() -> None:
    assert named(4) - set(FAULTS) == set()
