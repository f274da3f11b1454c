"""The suite's own parts, which need no corpus."""

from pathlib import Path

import pytest

from conformance.compare import compare, same_cell
from conformance.expected import Expected, ExpectedWindow, read_expected
from conformance.foreign import foreign_parts
from conformance.page import ledger, page, worse
from conformance.suite import Verdict

TABLE = {"q/w": [["opcode", "flags", "id", "x"], ["I", "N", " 1", "0.5"], ["I", "N", " 2", "1.0"]]}


def window(**parts: object) -> ExpectedWindow:
    return ExpectedWindow.model_validate({"name": "w", "source": "a test", **parts})


@pytest.mark.parametrize(
    ("wanted", "actual"),
    [
        ("1", " 1"),
        ("0.333333", "0.3333333333"),
        ("*", "anything"),
        ("begins…", "begins and goes on"),
        ("8.33163e-07", "8.331631e-07"),
        ("2024-10-17T08:40:25.000000Z", "1729154425000000"),
        ("2024-10-17 08:40:25", "1729154425"),
        ("2024-10-17…", "1729154425000000"),
    ],
)
def test_a_cell_is_what_is_shown(wanted: str, actual: str) -> None:
    assert same_cell(wanted, actual, 6)


@pytest.mark.parametrize(
    ("wanted", "actual"),
    [("1", "2"), ("0.333333", "0.333336"), ("", "0"), ("a", "A"), ("begins…", "else")],
)
def test_a_cell_is_not_what_is_shown(wanted: str, actual: str) -> None:
    assert not same_cell(wanted, actual, 6)


@pytest.mark.parametrize(
    ("match", "events", "same"),
    [
        ("all", "1,0.5\n2,1", True),
        ("all", "1,0.5", False),
        ("all", "2,1\n1,0.5", False),
        ("set", "2,1\n1,0.5", True),
        ("first", "1,0.5", True),
        ("last", "1,0.5", False),
        ("run", "2,1", True),
        ("some", "2,1", True),
        ("some", "2,1\n1,0.5", False),
    ],
)
def test_rows_match(match: str, events: str, same: bool) -> None:
    found = compare(window(columns="id,x", events=events, match=match), TABLE)
    assert (found is None) is same


def test_rows_are_turned_when_the_newest_is_above() -> None:
    assert compare(window(columns="id", events="2\n1", newest_first=True), TABLE) is None


def test_the_rows_that_are_left_count() -> None:
    head = ["opcode", "flags", "id", "x"]
    events = ["I,N,1,5", "I,N,2,6", "U,N,2,7", "D,N,2,6", "D,N,1,5", "I,N,3,8"]
    tables = {"q/w": [head, *(event.split(",") for event in events)]}
    wanted = window(columns="id,x", keys=["id"], match="state", events="3,8\n2,7")
    assert compare(wanted, tables) is None


def test_a_difference_shows_both_sides_and_its_cause() -> None:
    found = compare(window(columns="id", events="7\n8", difference="a cause"), TABLE)
    assert found is not None
    assert "  7" in found.text
    assert "   1" in found.text
    assert found.cause == "a cause"


def test_the_number_of_events_counts() -> None:
    found = compare(window(total=3), TABLE)
    assert found is not None
    assert "expected 3 events, got 2" in found.text


def test_a_rule_is_held_against_the_other_window() -> None:
    tables = {"q/in": TABLE["q/w"], "q/w": [TABLE["q/w"][0], TABLE["q/w"][2]]}
    rule = {"window": "in", "column": "x", "above": 0.75}
    assert compare(window(keeps=rule), tables) is None
    assert compare(window(keeps={**rule, "above": 0.25}), tables) is not None


def test_foreign_parts_are_read_off_the_xml() -> None:
    xml = b"""<project><contqueries><contquery><windows>
    <window-train name='t'>
    </window-train>
    <window-compute name='c'><output>
      <field-plug plugin='p' function='f'/>
    </output></window-compute>
    <window-custom name='u'><plugin code='x.lua'/></window-custom>
    </windows></contquery></contqueries></project>"""
    parts = [(part.kind, part.first, part.last) for part in foreign_parts(xml)]
    assert parts == [("models are not trained", 2, 3), ("C++ code", 4, 5)]


def test_every_expected_file_is_whole() -> None:
    for expected in read_expected().values():
        assert expected.window, expected.project
        for one in expected.window:
            assert one.source
            assert one.total is not None or one.keeps or one.rows, one.name
            assert all(len(row) == len(one.header) for row in one.rows), (expected.project, one)


def test_no_project_is_expected_twice(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text('project = "p"\n', encoding="utf-8")
    with pytest.raises(AssertionError, match="twice"):
        read_expected(tmp_path)
    assert Expected(project="p").window == ()


def test_a_page_is_a_ledger(tmp_path: Path) -> None:
    good = Verdict("p", True, True, True, 2, [])
    path = tmp_path / "page.md"
    path.write_text(page([good]), encoding="utf-8")
    said = ledger(path)["p"]
    assert said == ("yes", "yes", "2 of 2")
    assert worse(good, said) == ""
    assert "loads" in worse(Verdict("p", True, False, False, 2, []), said)
    lost = compare(window(columns="id", events="7"), TABLE)
    assert lost is not None
    assert "it was 2 of 2" in worse(Verdict("p", True, True, True, 2, [lost]), said)
