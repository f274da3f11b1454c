"""Where the files of a model are, on a machine that is not its author's."""

from pathlib import Path

import pytest

from espha.offline.command import DONE
from espha.offline.places import Places, environment
from support.models import source, xml
from support.offline import Place


def connectors(*properties: dict[str, str]) -> str:
    """Return fs connectors with these properties."""
    listed = [
        "".join(f'<property name="{name}">{text}</property>' for name, text in each.items())
        for each in properties
    ]
    each = "".join(
        f'<connector class="fs" name="c{number}"><properties>{one}</properties></connector>'
        for number, one in enumerate(listed)
    )
    return f"<connectors>{each}</connectors>"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.csv", "model/a.csv"),
        ("test_files/b.csv", "test_files/b.csv"),
        ("file://a.csv", "model/a.csv"),
        ("/data/input/b.csv", "test_files/b.csv"),
        (r"C:\\data\\B.CSV", "test_files/b.csv"),
        ("@WHERE@/b.csv", "test_files/b.csv"),
        ("$NOWHERE/b.csv", "test_files/b.csv"),
        ("${HERE}/test_files/b.csv", "test_files/b.csv"),
        ("none.csv", "model/none.csv"),
    ],
)
def test_files_are_found_by_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, expected: str
) -> None:
    """In a package of SAS ESP Studio the model lies beside its test files."""
    monkeypatch.setenv("HERE", str(tmp_path))
    place = Place(tmp_path)
    place.write("model/a.csv", "")
    place.write("test_files/b.csv", "")
    place.write("test_files/deep/b.csv", "")
    found = Places(tmp_path / "model/model.xml").source(name)
    assert found.path == tmp_path / expected
    elsewhere = "WHERE" in name or name.startswith(("/", "C:"))
    assert bool(found.note) == elsewhere


def test_results_stay_with_the_project(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    places = Places(tmp_path / "project/model.xml")
    assert places.target("new/out.csv").path == tmp_path / "project/new/out.csv"
    assert places.target(f"{tmp_path}/there/out.csv").path == tmp_path / "there/out.csv"
    for name in ("/no/such/folder/out.csv", "@WHERE@/out.csv"):
        assert places.target(name).path == tmp_path / "project/output/out.csv"
        assert "is written instead" in places.target(name).note


def test_tokens_are_read_from_the_environment_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ESPHA_TEST_ROWS", str(tmp_path / "rows"))
    monkeypatch.setenv("ESPHA_TEST_NAME", "another")
    place = Place(tmp_path)
    place.write("rows/in.csv", "I,N,1")
    body = connectors(
        {"fsname": "@ESPHA_TEST_ROWS@/in.csv"},
        {"type": "sub", "fsname": "@ESPHA_TEST_NAME@.@ESP_PROJECT_NAME@.csv"},
    )
    own = '<properties><property name="ESPHA_TEST_NAME">own</property></properties>'
    place.write("model.xml", xml(source("id*:int32", body=body), before=own))
    assert place.run() == DONE
    assert place.lines("own.p.csv") == ["I,N, 1"]
    assert environment(b"@HOME@ @NOT", {"HOME": "x", "NOT": "y"}) == {"HOME": "x"}


def test_a_file_of_another_machine_is_told(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("in.csv", "I,N,1")
    body = connectors({"fsname": "@NOBODY@/in.csv"}, {"type": "sub", "fsname": "/none/out.csv"})
    place.write("model.xml", xml(source("id*:int32", body=body)))
    assert place.run() == DONE
    assert place.lines("output/out.csv") == ["I,N, 1"]
    assert f"q/in/c0: @NOBODY@/in.csv is not here: {tmp_path}/in.csv is read instead" in place.said
    assert "c1: the folder of /none/out.csv is not here" in place.said


def test_events_of_xml_come_and_go(tmp_path: Path) -> None:
    """An event's fields are elements or attributes; what is not well-formed ends the file."""
    place = Place(tmp_path)
    place.write(
        "in.xml",
        "<events><transaction>",
        "<event><opcode>i</opcode><id key='true'>1</id><x>a &lt; b</x>",
        "<t>1970-01-01 00:00:01.5</t></event></transaction>",
        "<event opcode='upsert' id='2'><x/></event>",
        "<event><id>x</id></event>",
        "<event><id>3</event>",
    )
    body = connectors(
        {"fsname": "in.xml", "fstype": "xml", "dateformat": "%Y-%m-%d %H:%M:%S"},
        {"type": "sub", "fsname": "out.xml", "fstype": "xml", "dateformat": "%H:%M:%S"},
    )
    place.write("model.xml", xml(source("id*:int32,x:string,t:stamp", body=body)))
    assert place.run() == DONE
    assert place.lines("out.xml") == [
        "<events>",
        '<event><opcode>I</opcode><flags>N</flags><id key="true">1</id><x>a &lt; b</x>'
        "<t>00:00:01.500000</t></event>",
        '<event><opcode>P</opcode><flags>N</flags><id key="true">2</id></event>',
        "</events>",
    ]
    assert "in.xml:5: field id: 'x' is not a whole number (int32)" in place.said
    assert "in.xml:6: not well-formed XML: " in place.said
