"""`espha check`: what a user sees."""

from pathlib import Path

from typer.testing import CliRunner

from espha.cli import app
from support.models import SAMPLE

RUN = CliRunner()


def test_a_good_model_is_listed(tmp_path: Path) -> None:
    model = tmp_path / "model.xml"
    model.write_text(SAMPLE.replace("<windows>", '<windows colour="red">'))
    result = RUN.invoke(app, ["check", str(model)])
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["cq/memory", "cq/sum20", "cq/outbound"]
    assert lines[0].startswith("cq/memory  source  pi_EMPTY  index_esp*:int64, ")


def test_every_problem_has_a_line_of_its_own(tmp_path: Path) -> None:
    model = tmp_path / "model.xml"
    model.write_text(SAMPLE.replace('target="outbound"', 'target="nowhere"').replace(">20<", ">x<"))
    result = RUN.invoke(app, ["check", str(model)])
    assert result.exit_code == 2
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"{model}: line ") for line in lines)
    assert "windowLength is 'x'" in lines[0]
    assert "there is no window 'nowhere' in query 'cq'" in lines[1]


def test_a_missing_file_is_a_sentence(tmp_path: Path) -> None:
    result = RUN.invoke(app, ["check", str(tmp_path / "none.xml")])
    assert result.exit_code == 2
    assert result.stderr == f"{tmp_path / 'none.xml'}: No such file or directory\n"
