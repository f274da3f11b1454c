"""What SAS ESP offers to Lua: JSON, time, texts, files, modules, messages."""

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espha.scripts import Call, Input, Options, ScriptError
from espha.scripts.lua import LuaScript

CLOCK = 1_672_631_045_678
"""2023-01-02 03:44:05.678."""


def loaded(code: str, **options: object) -> LuaScript:
    inputs = [Input("in", ["id", "v"])]
    return LuaScript(code, "f", "q/w", inputs, ["x"], options=Options(**options))  # type: ignore[arg-type]


def x_of(expression: str, value: object = None, **options: object) -> object:
    """Return what an expression over `d` gives."""
    script = loaded(f"function f(d, c) return {{x = {expression}}} end", **options)
    rows = script.call(Call((1, value), "insert", "N", 0, CLOCK, 3))
    assert isinstance(rows, list)
    return rows[0][0] if rows else None


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("esp_getSystemMicro()", CLOCK * 1000),
        ("esp_getSystemMilli()", CLOCK),
        ("os.time()", CLOCK // 1000),
        ("os.time({year = 2024, month = 2, day = 29, hour = 0})", 1_709_164_800),
        ("os.time({year = 2024, month = 14, day = 1})", 1_738_411_200),
        ("os.date('%Y-%m-%d %H:%M:%S')", b"2023-01-02 03:44:05"),
        ("os.date('!%a %A %b %B %j %y', 0)", b"Thu Thursday Jan January 001 70"),
        ("os.date('%e %I %p %%', 0)", b" 1 12 AM %"),
        ("os.date('*t', 951782400).day", 29),
        ("os.date('%F', -86400)", b"1969-12-31"),
        ("os.difftime(5, 3)", 2.0),
        ("os.getenv('HOME')", None),
        ("esp_formatDate(0, '%m/%d/%Y')", b"01/01/1970"),
        ("esp_parseDate('01/02/2023:03:44:05.678', '%m/%d/%Y:%H:%M:%S')", CLOCK // 1000),
        ("esp_parseDate(' 2 Jan 2023 3:44 pm', '%d %b %Y %I:%M %p')", 1_672_674_240),
        ("esp_parseDate('2023-01-02T03:44:05+0200', '%Y-%m-%dT%H:%M:%S%z')", 1_672_623_845),
        ("esp_parseDate('2023-01-02', '%Y-%m-%d')", 1_672_617_600),
        ("esp_parseDate('69 001', '%y %j')", -31_536_000),
        ("esp_parseDate('nothing', '%Y-%m-%d')", None),
        ("esp_parseDate(nil, '%Y')", None),
        ("esp_base64Encode('hello')", b"aGVsbG8="),
        ("esp_base64Decode('aGVsbG8=')", b"hello"),
        ("#esp_getGuids(3)", 3),
        ("#esp_getGuid()", 36),
        ("esp_split('a;b;;c', ';')[4]", b"c"),
        ("esp_trim('  a b ')", b"a b"),
        ("esp_toString({a = {2.0}, b = 'c'})", b'{\n  "a": [\n    2.0\n  ],\n  "b": "c"\n}'),
        ("esp_toString(nil)", b"nil"),
        ("debug.getinfo(1).currentline", 1),
        ("unpack({4, 5})", 4),
    ],
)  # fmt: skip
def test_functions(code: str, expected: object) -> None:
    assert x_of(code) == expected


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, min_size=1) | st.dictionaries(st.text(), inner, min_size=1),
    max_leaves=10,
)  # fmt: skip


def without_nulls(value: object) -> object:
    """Return what is left of a value in Lua, where nothing is null."""
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [without_nulls(v) for v in value if v is not None]
    return value


@given(values.map(without_nulls), st.booleans())
def test_json_goes_in_and_out_as_it_is(value: object, spaces: bool) -> None:
    written = json.dumps(value, ensure_ascii=spaces, indent=1 if spaces else None)
    back = x_of("esp_toJson(esp_parseJsonFrom('v'))", written)
    assert isinstance(back, bytes)
    # A table without entries is neither a list nor an object.
    assert json.loads(back.replace(b"[]", b"{}")) == json.loads(
        json.dumps(value, ensure_ascii=False).replace("[]", "{}")
    )


def test_names_in_json_need_no_quotes() -> None:
    code = "esp_toJson(esp_parseJson('[ { device_id:10, a.b-c: {$x:1.54} } ]'))"
    assert x_of(code) == b'[{"a.b-c":{"$x":1.54},"device_id":10}]'


def test_whole_numbers_stay_whole_in_json() -> None:
    assert x_of("math.type(esp_parseJson('[1, 1.0]')[1])") == b"integer"
    assert x_of("math.type(esp_parseJson('[1, 1.0]')[2])") == b"float"


@pytest.mark.parametrize(
    "text", ["", "{", "[1,]", '{"a" 1}', "[1 2]", '"a', "nul", "1 2", '"\\x"', '"\\u12"', "{1: 2}"]
)
def test_what_is_no_json_is_an_error(text: str) -> None:
    with pytest.raises(ScriptError, match="no JSON at character"):
        x_of("esp_parseJson(d.v)", text)


def test_json_that_is_nested_too_deeply_is_an_error() -> None:
    with pytest.raises(ScriptError, match="nested deeper"):
        x_of("esp_parseJson(d.v)", "[" * 1000)


def test_modules_run_before_the_script_and_once() -> None:
    modules = {"a": "count = (count or 0) + 1", "b": "local m = {n = 5} return m"}
    code = "local b = require 'b' function f() return {x = count .. b.n .. require('b').n} end"
    script = loaded(code, modules=modules, require=["a", "a"])
    call = Call((1, 2), "insert", "N", 0, CLOCK, 3)
    assert script.call(call) == [[b"155"]]
    again = loaded(code, modules=modules, require=["a", "a"])
    again.restore(script.state())
    assert again.state() == script.state()
    assert again.call(call) == [[b"155"]]


def test_a_module_that_fails_says_so() -> None:
    with pytest.raises(ScriptError, match="a:1: bad"):
        x_of("1", modules={"a": "error('bad')"}, require=["a"])


def test_init_runs_once_with_its_settings() -> None:
    code = (
        "function begin(s) n = (n or 0) + 1 word = s.a end function f() return {x = word .. n} end"
    )
    script = loaded(code, init="begin", settings={"a": "b"})
    for _ in range(2):
        assert script.call(Call((1, 2), "insert", "N", 0, CLOCK, 3)) == [[b"b1"]]


def test_arguments_lists_and_base64() -> None:
    call = Call((1, b"\xff"), "insert", "N", 0, CLOCK, 3)
    expanded = loaded("function f(id, v, c) return {x = v .. c.opcode} end", expanded=True)
    assert expanded.call(call) == [[b"\xffinsert"]]
    encoded = loaded("function f(d) return {x = d[1].v .. #d} end", blocks=True, encoded=True)
    assert encoded.call(call) == [[b"/w==1"]]


FILE = """
function f()
  local opened = io.open('a.txt')
  local first, number, rest = opened:read('l'), opened:read('n'), opened:read('*all')
  local lines = 0
  for line in io.lines('a.txt') do lines = lines + 1 end
  local none, why = io.open('b.txt')
  kept = opened
  return {x = table.concat({first, number, rest, lines, tostring(none), why}, '|')}
end
"""


def test_files_that_came_with_the_model_can_be_read() -> None:
    script = loaded(FILE, files={"a.txt": b"one\n2.5 three\nfour"})
    call = Call((1, 2), "insert", "N", 0, CLOCK, 3)
    expected = b"one|2.5| three\nfour|3|nil|b.txt: No such file or directory"
    assert script.call(call) == [[expected]]
    script.restore(script.state())
    assert script.call(call) == [[expected]]


def test_no_file_can_be_written() -> None:
    assert x_of("tostring(io.open('a.txt', 'w'))", files={"a.txt": b""}) == b"nil"


def test_messages_go_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        x_of("esp_logMessage('mine', 'no good', 'error', 7)")
        x_of("esp_logMessage({logcontext = 'mine', message = 'more', level = 'warn'})")
        x_of("print('a', 1)")
        x_of("esp_logMessage('mine', ('x'):rep(5000))")
    assert [record.getMessage()[:24] for record in caplog.records] == [
        "mine: no good (line 7)", "mine: more", "print: a\t1", "mine: " + "x" * 18
    ]  # fmt: skip
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING", "DEBUG", "INFO"]
    assert all(len(record.getMessage()) < 2_100 for record in caplog.records)


def test_a_script_alone_shares_nothing() -> None:
    assert x_of("esp_getProperty('a')") is None
    for code in ("esp_setProperty('a', 1)", "esp_publish('w', {})", "esp_query('w')"):
        with pytest.raises(ScriptError, match="shares nothing with others"):
            x_of(code)
