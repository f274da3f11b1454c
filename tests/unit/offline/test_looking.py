"""What a run shows: `--watch`, `--plot`, progress; and `espha check --json`."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from lxml import etree
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner

from espha.cli import app
from espha.model.events import Event
from espha.model.project import Project
from espha.offline.checking import Checked
from espha.offline.command import DONE, REFUSED, TROUBLE
from espha.offline.plot import PlotSink
from espha.offline.watch import Screen, WatchSink
from espha.reader import read_project
from support.models import source, xml
from support.offline import Place

SCHEMA = "id*:int64,name:string,at:stamp,x:double"
ROWS = "I,N,1,a,1700000000000000,1.5", "I,N,2,b,1700000001000000,", "U,N,1,c,1700000002000000,-3"


def project() -> Project:
    return read_project(
        xml(source(SCHEMA) + '<window-copy name="out"/>', '<edge source="in" target="out"/>')
    )


def test_watched_rows_are_a_table_with_one_head_for_each_window_in_turn() -> None:
    text = io.StringIO()
    console = Console(file=text, width=30)
    windows = project().windows
    screen = Screen(console)
    sinks = [WatchSink(windows[path], screen) for path in ("q/in", "q/out")]
    first = Event("I", "N", (1, "a\nb", 1_700_000_000_000_000, 1.5))
    for sink in (sinks[0], sinks[0], sinks[1]):
        sink.write([first])
        sink.flush()
    sinks[0].flush()
    row = "I       N        1  a⏎b   2023-11-14 22:13:20.000000  1.500000"
    head = "opcode  flags  id*  name  at                                 x"
    assert text.getvalue().splitlines() == ["q/in", head, row, row, "q/out", head, row]
    assert [sink.written for sink in sinks] == [2, 1]


def test_a_long_cell_is_cut() -> None:
    text = io.StringIO()
    sink = WatchSink(project().windows["q/in"], Screen(Console(file=text)))
    sink.write([Event("I", "N", (1, "y" * 500, None, None))])
    sink.flush()
    assert "y" * 39 + "…" in text.getvalue()
    assert "y" * 40 not in text.getvalue()


def test_a_run_prints_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = Place(tmp_path)
    place.write("model.xml", xml(source(SCHEMA)))
    rows = place.write("rows.csv", *ROWS)
    picture, drawing = tmp_path / "out/x.png", tmp_path / "all.svg"
    code = place.run(
        inputs=[f"in={rows}"], watched=["in"], plots=[f"in:x={picture}", f"q/in={drawing}"],
        engine="kernel",
    )  # fmt: skip
    assert code == DONE, place.said
    assert "2023-11-14 22:13:22" in capsys.readouterr().out
    with Image.open(picture) as image:
        assert len(image.convert("L").histogram()) == 256
        assert image.width == 1200
    texts = etree.parse(drawing).getroot()
    assert texts.tag.endswith("svg")


def test_a_plot_has_a_point_for_each_row_that_is_there(tmp_path: Path) -> None:
    """Deletes are no points, a null is a gap, and the first stamp is the axis."""
    sink = PlotSink(project().windows["q/in"], ["x"], tmp_path / "x.svg")
    stamp = 1_700_000_000_000_000
    sink.write(
        [
            Event("I", "N", (1, "a", stamp, 1.5)),
            Event("I", "N", (2, "b", stamp + 1_000_000, None)),
            Event("D", "N", (1, "a", stamp, 1.5)),
        ]
    )
    sink.close()
    assert sink.written == 2
    assert b"<svg" in (tmp_path / "x.svg").read_bytes()


@pytest.mark.parametrize(
    ("plot", "said"),
    [
        ("in=x.txt", "write WINDOW:FIELD,FIELD=FILE, ending in .png, .svg, .pdf"),
        ("in", "write WINDOW:FIELD,FIELD=FILE"),
        ("no=x.png", "there is no window 'no'; the model has q/in"),
        ("in:name=x.png", "'name' is not one of its numbers: id, x"),
    ],
)
def test_a_plot_that_cannot_be_meant(tmp_path: Path, plot: str, said: str) -> None:
    place = Place(tmp_path)
    place.write("model.xml", xml(source(SCHEMA)))
    assert place.run(plots=[plot]) == REFUSED
    assert said in place.said


def test_a_window_to_watch_that_is_not_there(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("model.xml", xml(source(SCHEMA)))
    assert place.run(watched=["no"]) == REFUSED
    assert "there is no window 'no'" in place.said


def test_check_prints_json_for_tools(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.xml", tmp_path / "bad.xml"
    good.write_text(xml(source(SCHEMA)))
    bad.write_text(
        xml(source("id*:int64,x:what") + source("id*:int64", name="two", body="<schema/>"))
    )
    result = CliRunner().invoke(app, ["check", "--json", str(good)])
    checked = Checked.model_validate_json(result.stdout)
    assert (result.exit_code, checked.accepted) == (0, True)
    assert [field.name for field in checked.windows[0].fields] == ["id", "name", "at", "x"]
    result = CliRunner().invoke(app, ["check", "--json", str(bad)])
    problems = json.loads(result.stdout)["problems"]
    assert result.exit_code == REFUSED
    assert {problem["element"] for problem in problems} >= {"schema-string", "window-source"}
    assert all(problem["line"] > 0 and problem["reason"] for problem in problems)


def test_check_prints_json_for_a_file_that_is_not_there(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["check", "--json", str(tmp_path / "no.xml")])
    assert result.exit_code == REFUSED
    assert json.loads(result.stdout)["error"] == "No such file or directory"


def test_a_reader_that_goes_away_is_no_mistake(tmp_path: Path) -> None:
    model = tmp_path / "model.xml"
    model.write_text(xml(source(SCHEMA)))
    command = [sys.executable, "-m", "espha.cli", "check", str(model)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        running.stdout.close()
        assert running.wait() == TROUBLE
        assert running.stderr is not None
        assert running.stderr.read() == ""
