"""Filters: expressions with statements, kept variables, refusals."""

import pytest

from espha.kernel import Kernel
from espha.model.events import Event
from espha.model.problems import ModelError
from espha.reader import read_project
from support.models import SUB, behind, source, xml

SCHEMA = "id*:int64,x:int64"
EVERY_OTHER = (
    "<expr-initialize><initializer type='int32'>integer n = 0</initializer>"
    "<udfs><udf name='even' type='int32'>parameter(1) % 2 = 0</udf></udfs></expr-initialize>"
    "<expression>n = n + 1; if x &lt; 0 then while true n = n + 1; return even(n)</expression>"
)


def window(inside: str, index: str = "pi_EMPTY") -> str:
    return f'<window-filter name="out" index="{index}">{inside}{SUB}</window-filter>'


def passed(kernel: Kernel, *events: Event) -> list[Event]:
    return [out for event in events for _, out in kernel.publish("q/in", event, 0)]


def insert(number: int, x: int | None = 0) -> Event:
    return Event("I", "N", (number, x))


def test_a_kept_variable_counts_the_events() -> None:
    kernel = Kernel(behind(SCHEMA, window(EVERY_OTHER)))
    found = passed(kernel, *(insert(number) for number in range(5)))
    assert [event.values[0] for event in found] == [1, 3]


@pytest.mark.parametrize("index", ["pi_EMPTY", "pi_HASH"])
def test_a_condition_on_the_opcode_judges_events(index: str) -> None:
    body = '<window-copy name="kept" index="pi_HASH"><retention type="bycount_sliding">2'
    body += "</retention></window-copy>" + window(
        '<expression>ESP_OPCODE == "I"</expression>', index
    )
    edges = '<edge source="in" target="kept"/><edge source="kept" target="out"/>'
    kernel = Kernel(read_project(xml(source(SCHEMA) + body, edges)))
    found = passed(kernel, *(insert(number) for number in range(4)))
    assert found == [insert(number) for number in range(4)]
    assert passed(kernel, Event("U", "N", (3, 7)), Event("D", "N", (2, None))) == []


def test_a_condition_on_the_flags_keeps_rows_that_retention_removes() -> None:
    body = window('<expression>ESP_FLAGS == "N" and x &gt; 0</expression>', "pi_HASH")
    kept = '<window-copy name="kept" index="pi_HASH"><retention type="bycount_sliding">1'
    edges = '<edge source="in" target="kept"/><edge source="kept" target="out"/>'
    windows = source(SCHEMA) + kept + "</retention></window-copy>" + body
    kernel = Kernel(read_project(xml(windows, edges)))
    assert passed(kernel, insert(1, 1), insert(2, 1)) == [insert(1, 1), insert(2, 1)]
    updated = passed(kernel, Event("U", "N", (2, 5)), Event("U", "N", (2, -5)))
    assert updated == [
        Event("U", "N", (2, 5)),
        Event("D", "N", (2, 1)),
        Event("D", "N", (2, 5)),
    ]


def test_a_refused_event_leaves_the_variables_as_they_were() -> None:
    kernel = Kernel(behind(SCHEMA, window(EVERY_OTHER)))
    passed(kernel, insert(0))
    before = kernel.state()["windows"]["q/out"]
    assert passed(kernel, insert(1, -1)) == []
    ((path, reason),) = kernel.take_refusals()
    assert (path, "takes more than 100000 steps" in reason) == ("q/out", True)
    assert kernel.state()["windows"]["q/out"] == before
    assert passed(kernel, insert(2)) == [insert(2)]


def test_variables_are_part_of_the_state() -> None:
    project = behind(SCHEMA, window(EVERY_OTHER))
    kernel, other = Kernel(project), Kernel(project)
    passed(kernel, insert(0))
    other.restore(kernel.state())
    assert passed(other, insert(1)) == passed(kernel, insert(1)) == [insert(1)]


def test_the_opcode_and_the_clock_can_be_asked() -> None:
    text = "<expression>ESP_OPCODE == 'D' or year(today()) == 2024</expression>"
    kernel = Kernel(behind(SCHEMA, window(text)))
    delete = Event("D", "N", (1, None))
    assert passed(kernel, insert(1), delete) == [delete]
    assert kernel.publish("q/in", insert(2), 1_709_211_909_000) == [("q/out", insert(2))]


@pytest.mark.parametrize(
    ("expression", "left"),
    [
        ('ESP_OPCODE == "I"', ["I 1,5", "I 2,6"]),
        ('instr(ESP_FLAGS, "R") == 0', ["I 1,5", "I 2,6", "U 2,7", "D 2,6", "D 2,7"]),
        ("x != 6", ["I 1,5", "D 1,5", "I 2,7", "D 2,7"]),
        ('ESP_OPCODE != "D"', ["I 1,5", "I 2,6", "U 2,7", "D 2,6"]),
    ],
)
def test_a_stateful_filter_judges_every_event_by_itself(expression: str, left: list[str]) -> None:
    kept = '<retention type="bycount_sliding">1</retention>'
    inside = window(f"<expression>{expression}</expression>", "pi_HASH")
    windows = source(SCHEMA, body=kept) + inside
    edge = '<edge source="in" target="out"/>'
    kernel = Kernel(read_project(xml(windows, edge, index="pi_HASH")), published=["q/out"])
    steps = (("I", 1, 5), ("I", 2, 6), ("U", 2, 7), ("D", 2, 7))
    found = passed(kernel, *(Event(opcode, "N", tuple(values)) for opcode, *values in steps))
    assert [f"{event.opcode} {','.join(map(str, event.values))}" for event in found] == left


@pytest.mark.parametrize("expression", ["null", "x / 0", "0.0", "if x = 5 then 0"])
def test_null_and_zero_do_not_pass(expression: str) -> None:
    kernel = Kernel(behind(SCHEMA, window(f"<expression>{expression}</expression>")))
    assert passed(kernel, insert(1, 5)) == []


@pytest.mark.parametrize(
    ("inside", "reason"),
    [
        (
            "<expression>'x'</expression>",
            "a filter needs a condition, the expression gives a string",
        ),
        (
            "<expression>\n1 +\n  y</expression>",
            "<expression>: line 2, column 3: there is no field",
        ),
        ("<expression>1</expression><plugin name='p'/>", "C++ plug-ins are not run (p)"),
        ("<plugin name='p' function='f'/>", "C++ plug-ins are not run (p:f); write the condition"),
        ("", "needs an <expression>"),
        (
            "<expr-initialize><initializer type='int32'>x = 1</initializer></expr-initialize>"
            "<expression>1</expression>",
            "<initializer>: line 1, column 1: 'x' is not declared",
        ),
        (
            "<expr-initialize><udfs><udf name='f' type='text'>1</udf></udfs></expr-initialize>"
            "<expression>1</expression>",
            "<udf name=\"f\">: type 'text' is not one of",
        ),
        (
            "<expr-initialize><initializer type='int32'>while 1 1</initializer></expr-initialize>"
            "<expression>1</expression>",
            "<initializer>: an expression takes more than 100000 steps",
        ),
        (
            "<expr-initialize><udfs><udf name='abs' type='int32'>1</udf></udfs></expr-initialize>"
            "<expression>1</expression>",
            "there is a function 'abs' already",
        ),
        (
            "<expr-initialize><udfs><udf name='f' type='int32'>1 +</udf></udfs></expr-initialize>"
            "<expression>1</expression>",
            '<udf name="f">: the expression ends too early',
        ),
        (
            "<expr-initialize><udfs><udf name='f' type='int32'>1</udf>"
            "<udf name='F' type='int32'>1</udf></udfs></expr-initialize><expression>1</expression>",
            "function 'f' stands twice",
        ),
    ],
)
def test_refused(inside: str, reason: str) -> None:
    edge = '<edge source="in" target="out"/>'
    with pytest.raises(ModelError) as caught:
        read_project(xml(source(SCHEMA) + window(inside), edge))
    assert reason in str(caught.value)
