"""The page on existing ESP projects: its files and commands work as they are written."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from espha.cli import app
from unit.docs.markdown import ROOT

PAGE = (ROOT / "docs/how-to/run-an-esp-project.md").read_text(encoding="utf-8")
_FILE = re.compile(r"^`(shop/\S+)`:\n\n```\w+\n(.*?)^```", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^ *espha (.+)$", re.MULTILINE)


def block_after(text: str) -> list[str]:
    """Return the lines of the first block of code behind a text."""
    found = re.search(r"```\w*\n(.*?)```", PAGE[PAGE.index(text) + len(text) :], re.DOTALL)
    assert found
    return found[1].splitlines()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in _FILE.findall(PAGE):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(command: str) -> Result:
    return CliRunner().invoke(app, shlex.split(command))


@pytest.mark.usefixtures("folder")
def test_every_command_ends_well() -> None:
    commands = _COMMAND.findall(PAGE)
    assert [command.split()[0] for command in commands] == ["check", "run", "run"]
    for command in commands:
        result = call(command)
        assert result.exit_code == 0, (command, result.output)


@pytest.mark.usefixtures("folder")
def test_check_prints_what_the_page_shows() -> None:
    assert call("check shop/model.xml").stdout.splitlines() == block_after("marked by `*`:")


def test_the_trace_is_what_the_page_shows(folder: Path) -> None:
    run = next(command for command in _COMMAND.findall(PAGE) if "--trace" in command)
    result = call(run)
    lines = (folder / "totals.csv").read_text(encoding="utf-8").splitlines()
    assert lines == block_after("here to `totals.csv`:")
    assert "orders.csv:4" in result.output
    assert "not a number" in result.output
