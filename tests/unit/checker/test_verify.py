"""What `espha verify` says when it cannot work."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from espha.checker.damage import Damage
from espha.checker.expect import SumWindow
from espha.checker.report import Report, table
from espha.checker.verify import VerifyError, VerifyOptions, read_faults, verify

MODEL = Path(__file__).parents[3] / "manifests" / "models" / "ha-project.xml"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"model": Path("nowhere.xml")}, "nowhere.xml: No such file"),
        ({"window": "cq/none"}, r"'cq/none' is not in the model \(there are: cq/outbound\)"),
        ({"sums": ("x:y",)}, "expected FIELD:LENGTH:OUTPUT"),
        ({"sums": ("x:20:sum20",)}, "cq/memory has no field 'x'"),
        ({"sums": ("epoch:20:sum",)}, "cq/outbound has no field 'sum'"),
        ({}, "fields that nothing explains: sum20"),
    ],
)
def test_bad_options_are_sentences(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(VerifyError, match=sentence):
        verify(VerifyOptions(**{"bootstrap": "127.0.0.1:1", "model": MODEL, **options}))  # type: ignore[arg-type]


def test_a_sum_window_is_read() -> None:
    assert SumWindow.parse("Record_Counter:20:sum20") == SumWindow("Record_Counter", 20, "sum20")


def test_a_broken_faults_file_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "faults"
    assert read_faults(path) == []
    path.write_text("now it broke\n")
    with pytest.raises(VerifyError, match="faults: 'now it broke'"):
        read_faults(path)


def test_the_report_as_json_and_as_a_table() -> None:
    report = Report(5, 4, 0, Damage(lost=1, first="lost: x"), Damage(), gaps_ms=[("kill", 123.4)])
    read = json.loads(json.dumps(report.to_json()))
    assert (read["ok"], read["lost"], read["double"]) == (False, 1, 0)
    assert read["complaints"] == ["input topic → output topic: lost: x"]
    console = Console(width=100)
    with console.capture() as shown:
        console.print(table(report))
    assert "longest gap, ms: kill" in shown.get()
    assert "123" in shown.get()
