"""Custom windows: scripts that are mapped to fields."""

from pathlib import Path

import pytest

from espha.kernel import Kernel, Outputs
from espha.model import ModelError, Project
from espha.reader import read_project
from support.models import SUB, source, xml
from unit.windows.test_semantics import event, text

LUA = """
local settings, waiting
function init(given) settings = given end
function create(data, context)
  waiting = {late = settings.word .. data.value, id = 9}
  return {result = data.value * 2, other = data.other}
end
function heartbeat(context) return waiting end
"""
PYTHON = """
import operator
settings = {}
def init(given):
    global settings
    settings = given
def create(value, other):
    return {"result": operator.add(value, value), "late": settings["word"]}
_espconfig_ = {"settings": {"expand_parms": True}}
"""
MAPS = (
    '<input-map><properties><property name="value">x</property><property name="other"/>'
    "</properties></input-map><output-map><properties>"
    '<property name="result">twice</property><property name="late">note</property>'
    "</properties></output-map><initialization><properties>"
    '<property name="word">w</property></properties></initialization>'
)


def project(
    code: str, file: str = "a.lua", maps: str = MAPS, *, tokens: dict[str, str] | None = None
) -> Project:
    plugin = f'<plugin code="{file}">{maps}{code}</plugin>'
    schema = "<schema-string>id*:int64,x:int64,twice:int64,note:string</schema-string>"
    window = f'<window-custom name="out" type="T" version="1">{schema}{plugin}{SUB}</window-custom>'
    edge = '<edge source="in" target="out"/>'
    windows = source("id*:int64,x:int64,other:int64") + window
    return read_project(xml(windows, edge), tokens=tokens)


def code(script: str) -> str:
    return f"<code><![CDATA[{script}]]></code>"


def leaves(found: Outputs) -> list[str]:
    return [text(each) for _, each in found]


def test_maps_stand_between_script_and_fields() -> None:
    run = Kernel(project(code(LUA)))
    assert leaves(run.publish("q/in", event("I 1,5,7"), 1_000)) == ["I 1,5,10,-"]


def test_a_row_may_use_the_names_of_the_fields() -> None:
    script = "function create(d) return {twice = 1, note = 'n', result = nil} end"
    run = Kernel(project(code(script)))
    assert leaves(run.publish("q/in", event("I 1,5,7"), 0)) == ["I 1,5,1,n"]


def test_a_heartbeat_makes_rows_without_an_event() -> None:
    run = Kernel(project(code(LUA)))
    assert run.due() is None
    run.publish("q/in", event("I 1,5,7"), 1_000)
    assert run.due() == 2_000
    assert run.advance(1_999) == []
    assert leaves(run.advance(2_000)) == ["I 9,-,-,w5"]
    assert run.due() == 3_000
    again = Kernel(project(code(LUA)))
    again.restore(run.state())
    assert leaves(again.advance(3_000)) == leaves(run.advance(3_000)) == ["I 9,-,-,w5"]


def test_a_heartbeat_that_fails_stops_nothing() -> None:
    script = "function create() end function heartbeat() error('no') end"
    run = Kernel(project(code(script)))
    run.publish("q/in", event("I 1,5,7"), 1_000)
    assert run.advance(5_000) == []
    assert run.due() == 6_000


def test_python_gets_its_variables_as_arguments() -> None:
    maps = MAPS.replace('"other"/>', '"other">other</property>')
    run = Kernel(project(code(PYTHON), "b.py", maps))
    assert leaves(run.publish("q/in", event("I 1,5,7"), 0)) == ["I 1,5,10,w"]


def test_python_has_a_heartbeat_as_well() -> None:
    script = (
        "count = 0\ndef create(data, context):\n    return None\n"
        "def heartbeat(context):\n    global count\n    count += 1\n"
        "    return [{'id': count, 'late': context.window}]"
    )
    run = Kernel(project(code(script), "b.py"))
    assert run.publish("q/in", event("I 1,5,7"), 1_000) == []
    assert leaves(run.advance(2_000)) == ["I 1,-,-,q/out"]
    again = Kernel(project(code(script), "b.py"))
    again.restore(run.state())
    assert leaves(again.advance(3_000)) == ["I 2,-,-,q/out"]


def test_the_script_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "a b.lua").write_text(LUA, encoding="utf-8")
    tokens = {"ESP_PROJECT_HOME": str(tmp_path)}
    run = Kernel(project("", "@ESP_PROJECT_HOME@/a b.lua", tokens=tokens))
    assert leaves(run.publish("q/in", event("I 1,5,7"), 0)) == ["I 1,5,10,-"]


@pytest.mark.parametrize(
    ("plugin", "reason"),
    [
        (("", "a.lua"), "the file 'a.lua' is not read"),
        ((code(LUA), "a.so"), "a file that ends with .lua or .py"),
        ((code("function made() end"), "a.lua"), "no function 'create'"),
        ((code(LUA), "a.lua", MAPS.replace(">x<", ">z<")), "there is no field 'z' in the input"),
    ],
)
def test_bad_windows_are_refused(plugin: tuple[str, ...], reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        project(*plugin)


def test_an_output_without_a_field_is_a_warning() -> None:
    found = project(code(LUA), "a.lua", MAPS.replace(">note<", ">gone<"))
    assert "there is no field 'gone' in the schema" in found.warnings[-1].reason
