"""Procedural windows: functions of analytic modules in Python."""

import pytest

from espha.kernel import Kernel
from espha.model import ModelError
from espha.model.events import Event
from espha.reader import read_project
from support.models import source, xml

CODE = """
calls = 0
def value(quantity, price, more=2):
    "Output: total, calls, unknown"
    global calls
    calls += 1
    return quantity * price, calls, more
def note(id, _inOpcode, _inFlags):
    '''
    Output: word, _outOpcode
    More text.
    '''
    return f"{_inOpcode} {_inFlags} {calls}", "update" if id == 2 else None if id == 3 else "insert"
def nothing(quantity):
    return quantity
"""
SCHEMA = "id*:int64,quantity:int32,price:double,word:string"
OUT = "id*:int64,quantity:int64,price:double,total:double,calls:int32,word:string"
MAP = '<window-map module="prices" function="value" source="in" revision="0"/>'


def module(code: str = CODE, head: str = 'language="python" module="prices"') -> str:
    made = f'<mas-module {head} func-names="value"><code><![CDATA[{code}]]></code></mas-module>'
    return f"<mas-modules>{made}</mas-modules>"


def model(
    maps: str = MAP,
    before: str | None = None,
    *,
    start: str = "window-procedural",
    index: str = "pi_EMPTY",
    inputs: tuple[str, ...] = ("in",),
    out: str = OUT,
) -> str:
    windows = "".join(source(SCHEMA, name=name) for name in inputs)
    tag = start.partition(" ")[0]
    windows += f'<{start} name="out" index="{index}"><schema-string>{out}</schema-string>'
    windows += f"<mas-map>{maps}</mas-map></{tag}>"
    edges = "".join(f'<edge source="{name}" target="out"/>' for name in inputs)
    return xml(windows, edges, before=module() if before is None else before)


def outputs(kernel: Kernel, *events: Event, window: str = "in") -> list[tuple[object, ...]]:
    found = []
    for event in events:
        found += kernel.publish(f"q/{window}", event, 5_000)
    return [(event.opcode, *event.values) for _, event in found]


def event(id_: int, opcode: str = "I", quantity: int = 3) -> Event:
    return Event(opcode, "N", (id_, quantity, 1.5, "w"))


@pytest.mark.parametrize("start", ["window-procedural", 'window-calculate algorithm="MAS"'])
def test_results_go_into_their_fields_and_the_others_are_copied(start: str) -> None:
    """Copies are converted to the type of the field; results need not be fields."""
    kernel = Kernel(read_project(model(start=start)), {"q/out"})
    assert outputs(kernel, event(1), event(2, "D")) == [
        ("I", 1, 3, 1.5, 4.5, 1, "w"),
        ("D", 2, 3, 1.5, 4.5, 2, "w"),
    ]


def test_a_stateful_window_takes_results_as_changes_of_its_rows() -> None:
    kernel = Kernel(read_project(model(index="pi_HASH")), {"q/out"})
    assert outputs(kernel, event(1), event(1, quantity=4), event(1, "D")) == [
        ("I", 1, 3, 1.5, 4.5, 1, "w"),
        ("U", 1, 4, 1.5, 6.0, 2, "w"),
        ("D", 1, 3, 1.5, 4.5, 1, "w"),
        ("D", 1, 4, 1.5, 6.0, 2, "w"),
    ]


def test_inputs_have_functions_of_their_own_and_modules_their_variables() -> None:
    """Two inputs share the module `prices`, a third one has another module."""
    maps = MAP + '<window-map module="prices" function="note" source="notes"/>'
    maps += '<window-map module="other" function="f" source="third"/>'
    other = 'n = 0\ndef f(id):\n    "Output: calls"\n    global n\n    n += 10\n    return n\n'
    before = module() + module(other, 'language="python" module="other"')
    text = model(maps, before, inputs=("in", "notes", "third"))
    kernel = Kernel(read_project(text), {"q/out"})
    outputs(kernel, event(1), event(1))
    outputs(kernel, event(1), window="third")
    state = kernel.state()
    again = Kernel(read_project(text), {"q/out"})
    again.restore(state)
    for each in (kernel, again):
        noted = outputs(each, event(1), event(2), event(3), window="notes")
        assert noted == [
            ("I", 1, 3, 1.5, None, None, "insert N 2"),
            ("U", 2, 3, 1.5, None, None, "insert N 2"),
        ]
        assert outputs(each, event(1), window="third") == [("I", 1, 3, 1.5, None, 20, "w")]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("return 1, 2", "returns 2 values, its text names 1"),
        ("return 1 / 0", "line 4: ZeroDivisionError"),
        ("return [1, 2]", "field total: "),
    ],
)
def test_an_event_that_fails_is_refused(code: str, reason: str) -> None:
    text = f'\ndef value(id):\n    "Output: total"\n    {code}\n'
    kernel = Kernel(read_project(model(before=module(text))), {"q/out"})
    assert outputs(kernel, event(1)) == []
    ((window, found),) = kernel.take_refusals()
    assert window == "q/out"
    assert reason in found


def test_a_map_without_a_function_takes_the_first_that_the_module_exports() -> None:
    """What belongs to a module beside its code has no meaning."""
    members = "<description>x</description><module-members/><code>"
    before = module().replace('func-names="value"', 'func-names="value, note"')
    text = model(MAP.replace('function="value"', ""), before.replace("<code>", members))
    kernel = Kernel(read_project(text), {"q/out"})
    assert outputs(kernel, event(1)) == [("I", 1, 3, 1.5, 4.5, 1, "w")]


def test_a_result_that_is_missing_is_null() -> None:
    text = 'def value(id, word):\n    "Output: total, word"\n    return None, None'
    kernel = Kernel(read_project(model(before=module(text))), {"q/out"})
    assert outputs(kernel, event(1)) == [("I", 1, 3, 1.5, None, None, None)]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"maps": ""}, "needs a <mas-map> with one <window-map> for input 'in'"),
        ({"maps": MAP + MAP}, "needs a <mas-map> with one <window-map> for input 'in'"),
        ({"maps": MAP.replace("prices", "none")}, "module 'none' is not one of: prices"),
        ({"maps": MAP.replace("value", "v")}, "not one of those of the module: value, note"),
        ({"maps": MAP.replace("value", "nothing")}, 'must be "Output: " and names'),
        ({"before": module("def value(x): pass")}, "parameter 'x' is no field of q/in"),
        ({"before": module("def value(")}, "line 1"),
        ({"before": module("import socket")}, "line 1: module 'socket'"),
        (
            {"before": module(head='language="ds2" module="prices"')},
            "modules in ds2 are not run; write it in Python",
        ),
        (
            {"before": '<mas-modules><mas-module language="python" module="prices" '
                       'mas-store="s"/></mas-modules>'},
            "there is no store of modules",
        ),
        ({"before": module() + module()}, "a module needs a name of its own"),
        ({"out": "key*:string,total:double"}, "key field 'key' is no field of the input"),
    ],
)  # fmt: skip
def test_models_that_cannot_run_are_refused(arguments: dict[str, str], reason: str) -> None:
    with pytest.raises(ModelError) as caught:
        read_project(model(**arguments))  # type: ignore[arg-type]
    assert reason in "; ".join(problem.reason for problem in caught.value.problems)


@pytest.mark.parametrize("tag", ["ds2-tableserver", "ds-external", "cxx-plugin", "plugin"])
def test_what_is_not_python_says_what_to_use(tag: str) -> None:
    text = model().replace("<mas-map>", f"<{tag}/><mas-map>")
    with pytest.raises(ModelError, match="not run; use a module in Python"):
        read_project(text)
