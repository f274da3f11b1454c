"""Calculate windows: which fields the values come from and go to, and requests."""

from typing import Any

import pytest

from espha.kernel import Kernel
from espha.model import ModelError, Project
from espha.model.events import Event
from espha.reader import read_project
from espha.recovery.plain import dumps, loads
from espha.windows.calculate import declared
from espha.windows.calculate.maps import Slot, slots_of
from support.models import SUB, source, xml

IN = "id*:int64,x:double,n:int32,a:array(dbl),s:string"
REQUEST = "nr*:int64,req_key:string,req_val:string"


def summary(
    schema: str,
    outputs: dict[str, str],
    *,
    inputs: str = "x",
    length: object = 3,
    edges: str = '<edge source="in" target="out" role="data"/>',
    more: str = "",
) -> Project:
    def listed(values: dict[str, Any]) -> str:
        return "".join(f'<property name="{k}">{v}</property>' for k, v in values.items())

    window = (
        '<window-calculate name="out" algorithm="Summary">'
        f"<schema-string>{schema}</schema-string>"
        f"<parameters><properties>{listed({'windowLength': length})}</properties></parameters>"
        f"<input-map><properties>{listed({'input': inputs})}</properties></input-map>"
        f"<output-map><properties>{listed(outputs)}</properties></output-map>"
        f"{SUB}</window-calculate>"
    )
    return read_project(xml(source(IN) + more + window, edges))


def run(project: Project, *rows: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    kernel = Kernel(project)
    return [
        event.values for row in rows for _, event in kernel.publish("q/in", Event("I", "N", row), 0)
    ]


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        ("double", [1.75, -2.5]),
        ("money", [1.75, -2.5]),
        ("int32", [1, -2]),
        ("int64", [1, -2]),
        ("string", ["1.75", "-2.5"]),
    ],
)
def test_a_number_goes_into_a_field_of_any_type(type_: str, expected: list[Any]) -> None:
    project = summary(f"id*:int64,total:{type_}", {"sumOut": "total"})
    found = run(project, (1, 1.75, 0, None, None), (2, -4.25, 0, None, None))
    assert [row[1] for row in found] == expected


def test_what_has_no_place_in_a_whole_number_is_null() -> None:
    project = summary("id*:int64,a:int32,b:int64", {"sumOut": "a", "meanOut": "b"})
    assert run(project, (1, 2.0**40, 0, None, None)) == [(1, None, 2**40)]
    assert run(project, (1, 1e300, 0, None, None)) == [(1, None, None)]


def test_results_go_into_elements_of_an_array() -> None:
    project = summary(
        "id*:int64,found:array(dbl)", {"minOut": "found[3]", "maxOut": "found[1]"}, inputs="a[2]"
    )
    found = run(project, (1, 0.0, 0, (1.0, 5.0), None), (2, 0.0, 0, (9.0,), None))
    assert found == [(1, (5.0, None, 5.0)), (2, (5.0, None, 5.0))]


def test_fields_from_the_input_change_their_type_and_others_stay_null() -> None:
    project = summary("id*:string,n:double,free:int64,m:double", {"meanOut": "m"})
    assert run(project, (7, 1.5, 3, None, "s")) == [("7", 3.0, None, 1.5)]
    warnings = [problem.reason for problem in project.warnings]
    assert warnings == ["field 'free' is not in the input, and no result: it stays null"]


def test_parameters_and_inputs_that_the_algorithm_does_not_have_are_a_warning() -> None:
    window = (
        '<window-calculate name="out" algorithm="summary"><schema-string>id*:int64,m:double'
        '</schema-string><parameters><properties><property name="none">1</property></properties>'
        '</parameters><input-map><properties><property name="input">x</property>'
        '<property name="timeId">id</property></properties></input-map><output-map><properties>'
        '<property name="MEANOUT">m</property></properties></output-map>'
        f"{SUB}</window-calculate>"
    )
    project = read_project(xml(source(IN) + window, '<edge source="in" target="out"/>'))
    parameter, role = [problem.reason for problem in project.warnings]
    assert "Summary: 'none' is not one of: windowLength" in parameter
    assert "Summary: 'timeId' is not one of: input; it has no effect" in role
    assert run(project, (1, 2.0, 0, None, None)) == [(1, 2.0)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", [Slot("a")]),
        (" a , b ", [Slot("a"), Slot("b")]),
        ("a[2]", [Slot("a", 1)]),
        ("a[1-3],b", [Slot("a", 0), Slot("a", 1), Slot("a", 2), Slot("b")]),
        ("", []),
    ],
)
def test_a_map_names_fields_and_parts_of_arrays(text: str, expected: list[Slot]) -> None:
    assert slots_of(text) == expected


@pytest.mark.parametrize("text", ["a[0]", "a[3-2]", "a[x]", "a[1", "[1]", "a[1-999999]"])
def test_other_texts_in_a_map_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="'"):
        slots_of(text)


@pytest.mark.parametrize(
    ("schema", "outputs", "reason"),
    [
        ("id*:int64,m:double", {"meanOut": "m[1]"}, "'m', which is double, not an array"),
        ("id*:int64,m:array(dbl)", {"meanOut": "m"}, "'m', which is array(dbl), not"),
        ("id*:int64,m:double", {"meanOut": "m", "minOut": "m"}, "two results go to 'm'"),
        ("id*:int64,m:double", {"meanOut": "m["}, "'m[' is not a field, or a part of"),
    ],
)
def test_results_that_do_not_fit_are_refused(
    schema: str, outputs: dict[str, str], reason: str
) -> None:
    with pytest.raises(ModelError) as caught:
        summary(schema, outputs)
    assert reason in str(caught.value)


EDGES = '<edge source="in" target="out" role="data"/><edge source="ask" target="out"{}/>'


@pytest.fixture(params=[' role="request"', ""])
def asked(request: pytest.FixtureRequest) -> Kernel:
    """A window that takes requests from `ask`, by role or because no data come from there."""
    outputs = {"nOut": "n", "sumOut": "total"}
    more = source(REQUEST, name="ask")
    edges = EDGES.format(request.param)
    return Kernel(summary("id*:int64,n:int64,total:double", outputs, edges=edges, more=more))


def data(kernel: Kernel, *numbers: float) -> list[tuple[Any, ...]]:
    rows = [Event("I", "N", (1, number, 0, None, None)) for number in numbers]
    return [event.values[1:] for row in rows for _, event in kernel.publish("q/in", row, 0)]


def ask(kernel: Kernel, name: str | None, value: str | None = None) -> list[tuple[str, str]]:
    assert kernel.publish("q/ask", Event("I", "N", (1, name, value)), 0) == []
    return kernel.take_refusals()


def test_a_request_changes_parameters_when_it_ends(asked: Kernel) -> None:
    assert data(asked, 1.0, 2.0, 3.0, 4.0)[-1] == (3, 9.0)
    assert ask(asked, "action", "reconfig") == []
    assert ask(asked, "windowLength", "2") == []
    assert data(asked, 5.0) == [(3, 12.0)]
    state = loads(dumps(asked.state()))
    asked.restore(state)
    assert ask(asked, None) == []
    assert data(asked, 1.0, 2.0, 3.0) == [(1, 1.0), (2, 3.0), (2, 5.0)]
    asked.restore(loads(dumps(asked.state())))
    assert data(asked, 4.0) == [(2, 7.0)]


def test_a_request_that_changes_nothing_leaves_the_window_as_it_is(asked: Kernel) -> None:
    data(asked, 1.0)
    ask(asked, "windowLength", "3")
    ask(asked, None)
    assert data(asked, 1.0) == [(2, 2.0)]


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("windowLength", "-1", "windowLength is '-1'; give a whole number from 0 to"),
        ("length", "1", "'length' is not a parameter of Summary"),
        ("action", "load", "the request's action 'load' is not one of: reconfig"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(
    asked: Kernel, name: str, value: str, reason: str
) -> None:
    ((path, found),) = ask(asked, name, value)
    assert path == "q/out"
    assert reason in found


def test_several_edges_bring_data() -> None:
    edges = '<edge source="in" target="out"/><edge source="more" target="out"/>'
    more = source("x:double,id*:int64", name="more")
    project = summary("id*:int64,total:double", {"sumOut": "total"}, edges=edges, more=more)
    kernel = Kernel(project)
    kernel.publish("q/in", Event("I", "N", (1, 2.0, 0, None, None)), 0)
    ((_, event),) = kernel.publish("q/more", Event("I", "N", (3.0, 2)), 0)
    assert event.values == (2, 5.0)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Nothing", "algorithm 'Nothing' is not one of: Summary, Correlation"),
        ("KMEANS", "algorithm 'KMEANS': its models come from train windows"),
        ("AudioFeatureComputation", "audio is not supported"),
    ],
)
def test_what_there_is_not_is_said(name: str, reason: str) -> None:
    assert reason in declared.missing(name)
    assert declared.find(name) is None


def test_names_of_algorithms_have_no_case_and_some_have_two() -> None:
    assert declared.find(" stft ") is declared.find("ShortTimeFourierTransform")
