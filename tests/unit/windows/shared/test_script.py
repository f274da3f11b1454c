"""Windows with a script, event by event; the same cases in Lua and in Python."""

import pytest

from espha.kernel import Kernel
from espha.model import ModelError
from espha.reader import read_project
from support.models import SUB, source, xml
from unit.windows.test_semantics import event, play, text

LUA = """
local n = 0
function create(data, context)
  n = n + 1
  if data.x == 0 then error('zero') end
  if data.x == 1 then return nil end
  if data.x == 2 then return {{id = data.id, y = n}, {id = data.id + 100, y = n}} end
  if data.x == 3 then return {id = data.id, _opcode = 'delete'} end
  return {id = data.id, y = n, z = context.opcode}
end
"""
PYTHON = """
n = 0
def create(data, context):
    global n
    n += 1
    if data["x"] == 0: raise ValueError("zero")
    if data["x"] == 1: return None
    if data["x"] == 2: return [{"id": data["id"], "y": n}, {"id": data["id"] + 100, "y": n}]
    if data["x"] == 3: return {"id": data["id"], "_opcode": "delete"}
    return {"id": data["id"], "y": n, "z": context.opcode}
"""
CODES = {"lua": LUA, "python": PYTHON}
SCHEMA = "id*:int64,y:int64,z:string"


def window(
    type_: str, *, code: str = "", schema: str = SCHEMA, more: str = "", head: str = ""
) -> str:
    body = f"<schema-string>{schema}</schema-string>{more}"
    script = f"<code><![CDATA[{code or CODES[type_]}]]></code>"
    return f'<window-{type_} name="out" {head}>{body}{script}{SUB}</window-{type_}>'


def kernel(type_: str, index: str = "pi_EMPTY", **more: str) -> Kernel:
    edge = '<edge source="in" target="out"/>'
    windows = source("id*:int64,x:int64", 'index="pi_HASH"') + window(type_, **more)
    return Kernel(read_project(xml(windows, edge, index=index)))


def out(run: Kernel, given: str) -> str:
    """Return what leaves for an event, and what is refused."""
    found = [text(each) for _, each in run.publish("q/in", event(given), 5_000)]
    return "; ".join([*found, *(f"! {reason}" for _, reason in run.take_refusals())])


BOTH = pytest.mark.parametrize("type_", ["lua", "python"])


@BOTH
def test_a_stateless_window_gives_rows_the_opcode_of_the_event(type_: str) -> None:
    run = kernel(type_)
    assert out(run, "I 1,5") == "I 1,1,insert"
    assert out(run, "U 1,6") == "U 1,2,update"
    assert out(run, "I 2,1") == ""
    assert out(run, "I 3,2") == "I 3,4,-; I 103,4,-"
    assert out(run, "U 3,3") == "D 3,-,-"
    assert out(run, "D 1,-") == "D 1,6,delete"


@BOTH
def test_a_stateful_window_keeps_the_rows_that_the_script_makes(type_: str) -> None:
    run = kernel(type_, "pi_HASH")
    assert out(run, "I 1,5") == "I 1,1,insert"
    assert out(run, "U 1,6") == "U 1,2,update; D 1,1,insert"
    assert out(run, "U 1,3") == "D 1,2,update"
    assert out(run, "U 1,2") == "I 1,4,-; I 101,4,-"
    assert out(run, "D 1,-") == "D 1,4,-; D 101,4,-"


@BOTH
def test_a_script_that_fails_refuses_the_event_for_this_window_only(type_: str) -> None:
    run = kernel(type_)
    assert "! the script failed: " in out(run, "I 1,0")
    assert "zero" in out(run, "I 2,0")
    assert out(run, "I 3,9") == "I 3,3,insert"


@BOTH
@pytest.mark.parametrize("cut", [1, 3])
def test_a_restored_window_goes_on(type_: str, cut: int) -> None:
    steps = ["I 1,5", "I 2,2", "U 1,7", "I 4,0", "I 5,9"]
    straight, restored = kernel(type_, "pi_HASH"), kernel(type_, "pi_HASH")
    for place, step in enumerate(steps):
        if place == cut:
            state = restored.state()
            restored = kernel(type_, "pi_HASH")
            restored.restore(state)
        assert out(restored, step) == out(straight, step)
    assert restored.state() == straight.state()


def test_values_become_the_types_of_the_schema() -> None:
    schema = "id*:int32,a:string,b:string,c:double,d:int64,e:date,f:blob,g:array(dbl),h:string"
    code = """function create(d) return {id = '7', a = 5, b = 1.5, c = '2', d = 2.9, e = true,
                                         f = '\\255', g = {1, 2.5}, h = true} end"""
    assert out(kernel("lua", code=code, schema=schema), "I 1,5") == (
        "I 7,5,1.5,2.0,2,1,b'\\xff',(1.0, 2.5),true"
    )


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("id = nil", "gives no value for key id"),
        ("id = 'x'", "field id: 'x' is not a whole number"),
        ("id = 1/0", "field id: an infinite number"),
        ("id = {1}", "field id: (1,) is not a whole number"),
        ("id = 1, z = '\\255'", "field z: bytes that are not UTF-8 text"),
        ("id = 1, z = {1}", "field z: a list is not a text"),
        ("id = 1, _opcode = 'drop'", "_opcode is 'drop'; use insert"),
        ("id = 1, _opcode = {}", "_opcode"),
    ],
)
def test_rows_that_do_not_fit_are_refused(row: str, reason: str) -> None:
    run = kernel("lua", code=f"function create() return {{{row}, y = 1}} end")
    assert reason in out(run, "I 1,5")


def test_a_truth_value_is_no_row() -> None:
    run = kernel("lua", code="function create() return true end")
    assert "must return a row" in out(run, "I 1,5")


def test_copied_fields_stay_where_the_script_says_nothing() -> None:
    code = "function create(d, c) return {y = (d.x or 0) + 1} end"
    more, schema = '<copy exclude="x"/><use>x</use>', "id*:int64,x:int64,y:int64"
    assert out(kernel("lua", code=code, more=more, schema=schema), "I 1,5") == "I 1,-,6"
    more = "<copy/>"
    assert out(kernel("lua", code=code, more=more, schema=schema), "I 1,5") == "I 1,5,6"


@pytest.mark.parametrize(
    ("type_", "code"),
    [
        ("lua", "function create(d) return {} end"),
        ("python", "def create(d, c): return {}"),
    ],
)
def test_a_row_that_says_nothing_is_an_event_if_its_key_is_copied(type_: str, code: str) -> None:
    schema = "id*:int64,x:int64,y:int64"
    run = kernel(type_, code=code, more="<copy>id,x</copy>", schema=schema)
    assert out(run, "I 1,5") == "I 1,5,-"
    assert out(kernel(type_, code=code, more="<copy>x</copy>", schema=schema), "I 1,5") == ""


def test_several_inputs_are_told_apart() -> None:
    code = "function create(d, c) return {id = d.id or d.key, z = c.input} end"
    windows = (
        source("id*:int64,x:int64")
        + source("key*:int64,y:string", name="two")
        + window("lua", code=code)
    )
    run = Kernel(read_project(xml(windows, '<edge source="in two" target="out"/>')))
    assert out(run, "I 1,5") == "I 1,-,in"
    (found,) = run.publish("q/two", event("I 8,-"), 0)
    assert text(found[1]) == "I 8,-,two"


def test_the_function_can_have_another_name() -> None:
    run = kernel("lua", code="function made(d) return {id = 1} end", head='events="made"')
    assert out(run, "I 1,5") == "I 1,-,-"


@pytest.mark.parametrize(
    ("type_", "more", "reason"),
    [
        ("lua", {"code": "function create( end"}, "script:1:"),
        ("python", {"code": "def create(:"}, "line 1: invalid syntax"),
        ("lua", {"code": "function made() end"}, "the script has no function 'create'"),
        (
            "lua",
            {"more": "<code-file>a.lua</code-file>"},
            "the file 'a.lua' is not read: only the model",
        ),
        ("lua", {"more": "<use>nothing</use>"}, "field 'nothing' is missing"),
        ("lua", {"more": "<copy>y</copy>"}, "field 'y' is missing, or does not have the same type"),
    ],
)
def test_bad_windows_are_refused(type_: str, more: dict[str, str], reason: str) -> None:
    with pytest.raises(ModelError) as caught:
        kernel(type_, **more)
    assert reason in str(caught.value)
    assert all(problem.line > 1 for problem in caught.value.problems)


def test_a_script_that_fails_at_its_start_refuses_every_event() -> None:
    run = kernel("lua", code="error('early')\nfunction create() end")
    assert out(run, "I 1,5") == "! the script failed: it cannot be used: script:1: early"
    run.restore(run.state())


def test_a_state_that_cannot_be_kept_is_an_error_and_not_lost() -> None:
    run = kernel("lua", code="function create() keep = function() end end")
    play(run, [("I 1,5", "")])
    with pytest.raises(ValueError, match=r"window q/out: variable keep holds a function"):
        run.state()


def scripted(window: str) -> Kernel:
    windows = source("id*:int64,x:int64", 'index="pi_HASH"') + window
    edge = '<edge source="in" target="out"/>'
    return Kernel(read_project(xml(windows, edge, index="pi_EMPTY")))


FILTERS = {
    "lua": "function filter(data, context) return data.x and data.x > 2 end",
    "python": "def filter(data, context): return (data['x'] or 0) > 2",
}


@BOTH
def test_a_filter_can_be_a_script(type_: str) -> None:
    code = f'<code language="{type_}"><![CDATA[{FILTERS[type_]}]]></code>'
    run = scripted(f'<window-filter name="out">{code}{SUB}</window-filter>')
    assert out(run, "I 1,1") == ""
    assert out(run, "U 1,5") == "I 1,5"
    assert out(run, "U 1,6") == "U 1,6; D 1,5"
    assert out(run, "U 1,-") == "D 1,6"
    assert out(run, "I 2,7") == "I 2,7"
    assert out(run, "D 2,-") == "D 2,7"


def test_a_filter_takes_numbers_and_nothing_for_an_answer() -> None:
    code = '<code function="ok">n = 0 function ok(d) n = n + 1 {} end</code>'
    window = '<window-filter name="out">' + code + SUB + "</window-filter>"
    run = scripted(window.replace("{}", "if n > 1 then return true end"))
    assert [out(run, f"I {at},1") for at in range(3)] == ["", "I 1,1", "I 2,1"]
    run = scripted(window.replace("{}", "return {answer = 1}"))
    assert "must return true or false, not a row" in out(run, "I 1,1")


COMPUTES = {
    "lua": "function create(data, context) return {y = data.x * 2, z = context.opcode} end",
    "python": "def create(data, context): return {'y': data['x'] * 2, 'z': context.opcode}",
}


@BOTH
def test_a_compute_can_be_a_script(type_: str) -> None:
    code = f'<code language="{type_}"><![CDATA[{COMPUTES[type_]}]]></code>'
    schema = f"<schema-string>{SCHEMA}</schema-string>"
    run = scripted(f'<window-compute name="out">{schema}{code}{SUB}</window-compute>')
    assert out(run, "I 1,1") == "I 1,2,insert"
    assert out(run, "U 1,5") == "U 1,10,update; D 1,2,delete"
    assert "the script failed" in out(run, "U 1,-")


def test_a_compute_needs_one_row() -> None:
    code = "<code>function create() return {{y = 1}, {y = 2}} end</code>"
    schema = f"<schema-string>{SCHEMA}</schema-string>"
    run = scripted(f'<window-compute name="out">{schema}{code}{SUB}</window-compute>')
    assert "must return one row" in out(run, "I 1,1")


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        ("<window-filter name='out'><code>x = </code></window-filter>", "script:1:"),
        (
            "<window-filter name='out'><code language='perl'>x</code></window-filter>",
            "language 'perl' is not one of: lua, python",
        ),
        (
            "<window-filter name='out'><code>function filter() end</code>"
            "<expression>x</expression></window-filter>",
            "the <code> decides; remove one of the two",
        ),
        (
            "<window-compute name='out'><schema-string>id*:int64,y:int64</schema-string>"
            "<code>function create() end</code><output/></window-compute>",
            "the <code> computes; remove one of the two",
        ),
    ],
)
def test_bad_scripts_of_filters_and_computes_are_refused(window: str, reason: str) -> None:
    with pytest.raises(ModelError) as caught:
        scripted(window)
    assert reason in str(caught.value)
    assert all(problem.line > 1 for problem in caught.value.problems)
