"""How retention is written in a model."""

import pytest
from lxml import etree

from espha.model import ModelError, Project
from espha.model.project import Retention
from espha.reader import read_project
from espha.windows.types import WINDOWS
from support.every import TEXT
from support.models import behind, source, xml

SCHEMA = "id*:int64,when:date,micros:stamp,x:int64"


def copy(retention: str, index: str = "pi_HASH") -> Project:
    return behind(SCHEMA, f'<window-copy name="out" index="{index}">{retention}</window-copy>')


@pytest.mark.parametrize(
    ("xml", "expected"),
    [
        ('type="bycount_sliding">10<', Retention(by="count", jumping=False, amount=10)),
        ('type="bycount_jumping"> 3 <', Retention(by="count", jumping=True, amount=3)),
        ('type="bytime_sliding">30 seconds<', Retention(by="time", jumping=False, amount=30_000)),
        ('type="bytime_sliding">30<', Retention(by="time", jumping=False, amount=30_000)),
        (
            'type="bytime_jumping" unit="minutes" field="when">5<',
            Retention(by="time", jumping=True, amount=300_000, field="when"),
        ),
        ('type="bytime_sliding" unit="hour">1<', Retention(by="time", jumping=False, amount=3.6e6)),
        (
            'type="bytime_sliding" unit="hours" field="micros">250 milliseconds<',
            Retention(by="time", jumping=False, amount=250, field="micros"),
        ),
        ('type="bytime_sliding">2DAYS<', Retention(by="time", jumping=False, amount=172_800_000)),
    ],
)
def test_a_retention_is_read(xml: str, expected: Retention) -> None:
    window = copy(f"<retention {xml}/retention>").windows["q/out"]
    assert window.retention == expected


def test_without_a_retention_rows_stay() -> None:
    assert copy("").windows["q/out"].retention is None


@pytest.mark.parametrize(
    ("xml", "reason"),
    [
        ('type="bytime_jumping_lookback">5<', "type 'bytime_jumping_lookback' is not one of:"),
        (">5<", "type '' is not one of:"),
        ('type="bycount_sliding">0<', "'0' is not a number of rows"),
        ('type="bycount_sliding">10 rows<', "'10 rows' is not a number of rows"),
        ('type="bycount_sliding">-1<', "'-1' is not a number of rows"),
        ('type="bytime_sliding">soon<', "'soon' is not a length of time"),
        ('type="bytime_sliding">5 moons<', "unit 'moons' is not one of:"),
        ('type="bytime_sliding">5 microseconds<', "whole milliseconds"),
        ('type="bytime_sliding">0<', "whole milliseconds"),
        (
            'type="bytime_sliding" field="x">5<',
            "field 'x' is int64; a time must be a date or a stamp",
        ),
        ('type="bytime_sliding" field="y">5<', "'y' is not a field of the window"),
    ],
)
def test_a_retention_is_refused_with_its_line(xml: str, reason: str) -> None:
    with pytest.raises(ModelError) as caught:
        copy(f"\n\n<retention {xml}/retention>")
    (problem,) = caught.value.problems
    assert (problem.element, problem.line) == ("retention", 6)
    assert reason in problem.reason


def test_a_window_without_rows_cannot_let_go_of_them() -> None:
    with pytest.raises(ModelError, match="a window with pi_EMPTY keeps no rows"):
        copy('<retention type="bycount_sliding">10</retention>', "pi_EMPTY")


def test_attributes_without_effect_are_warnings() -> None:
    project = copy('<retention type="bycount_sliding" field="when" unit="days">10</retention>')
    assert [warning.reason for warning in project.warnings] == [
        "unit has no effect on a retention by count",
        "field has no effect on a retention by count",
    ]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("aggregate", "a group goes when its last row goes; give a window before it the retention"),
        ("join", "give a window before it, or a copy after it, the retention"),
        ("notification", "a notification keeps no rows"),
    ],
)
def test_windows_that_keep_rows_in_their_own_way_have_no_retention(name: str, reason: str) -> None:
    assert reason in WINDOWS[name].no_retention
    assert WINDOWS[name].own_rows


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_has_a_retention_or_says_why_not(name: str) -> None:
    element = '<retention type="bycount_sliding">1</retention>'
    tree = etree.fromstring(TEXT.encode())
    window = tree.findall(f".//window-{name}")[-1]
    for other in window.findall("retention"):
        window.remove(other)
    window.append(etree.fromstring(element))
    window.set("index", "pi_HASH")
    reason = WINDOWS[name].no_retention
    if not reason:
        path = f"q/{window.get('name')}"
        assert read_project(etree.tostring(tree)).windows[path].retention is not None
        return
    with pytest.raises(ModelError) as caught:
        read_project(etree.tostring(tree))
    (problem,) = caught.value.problems
    assert (problem.element, problem.reason) == ("retention", reason)


def test_a_source_with_two_problems_says_both() -> None:
    windows = source(SCHEMA, body='<retention type="soon">1</retention><splitter-expr/>')
    with pytest.raises(ModelError) as caught:
        read_project(xml(windows, index="pi_HASH"))
    assert [problem.element for problem in caught.value.problems] == ["retention", "splitter-expr"]
