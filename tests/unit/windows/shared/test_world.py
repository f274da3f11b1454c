"""What scripts share: properties, snippets, files, events that they publish."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espha.kernel import Kernel, kernel_of
from espha.model import ModelError
from espha.model.events import Event
from espha.reader import read_project
from espha.recovery.plain import dumps, loads
from espha.scripts import ScriptError
from espha.scripts.packed import listed, packed, unpacked
from support.models import source, xml

SNIPPET = """
local seen, times = {}, 0
function begin()
  esp_subscribe({window = 'keep', handler = 'see'})
  esp_setProperty('limit', 2)
end
function see(events)
  for _, event in ipairs(events) do
    seen[#seen + 1] = event.id
    if event.v > 5 then
      esp_publishAsync({window = 'alerts', events = {nr = #seen, text = event._opcode .. event.v}})
    end
  end
  esp_setProperty({name = 'seen', value = {count = #seen, last = seen[#seen]}})
end
function tick()
  times = times + 1
  esp_setProperty('times', times)
  return times == 3
end
function add(a, b) return a + b, #seen end
function fail() error('no') end
"""
FILTER = """
local limit = 0
function begin() esp_addPropertyListener({name = 'limit', change = 'changed', init = true}) end
function changed(property) limit = property.value end
function filter(data)
  if data.v == 9 then esp_setProperty('limit', 8) end
  return data.v > limit
end
"""
LUA = """
function create(data)
  local seen, sum = esp_getProperty('seen'), esp_call('sums', 'add', data.v, 10)
  local keep = esp_query({window = 'keep'})
  return {id = data.id, seen = seen and seen.count, sum = sum.results[1], kept = #keep.events,
          times = esp_getProperty('times'), why = esp_call('sums', 'fail').error}
end
"""


def model(snippet: str = SNIPPET, more: str = "") -> str:
    before = (
        '<lua-snippets><lua-snippet name="sums" init="begin">'
        '<lua-thread func="tick" interval="5 seconds"/>'
        f"<code><![CDATA[{snippet}]]></code></lua-snippet></lua-snippets>"
    )
    windows = (
        source("id*:int64,v:int64")
        + source("nr*:int64,text:string", name="alerts")
        + f'<window-filter name="keep" func="filter" init="begin" index="pi_HASH">'
        f"<code><![CDATA[{FILTER}]]></code></window-filter>"
        '<window-lua name="out"><schema-string>id*:int64,seen:int64,sum:int64,kept:int64,'
        f"times:int64,why:string</schema-string><code><![CDATA[{LUA}]]></code></window-lua>"
    )
    edges = '<edge source="in" target="keep"/><edge source="keep" target="out"/>'
    return xml(windows, edges + more, before=before)


PROJECT = read_project(model())


def kernel() -> Kernel:
    return kernel_of(PROJECT, published=["q/out", "q/alerts"])


def put(run: Kernel, id_: int, v: int, clock: int = 1_000) -> list[str]:
    outputs = run.publish("q/in", Event("I", "N", (id_, v)), clock)
    return [f"{path[2:]} {event.opcode} " + ",".join(map(str, event.values))
            for path, event in outputs]  # fmt: skip


def test_scripts_and_snippets_share_what_they_set_and_publish() -> None:
    run = kernel()
    why = "script:22: no"
    assert put(run, 1, 2) == []
    assert put(run, 2, 3) == [f"out I 2,None,13,1,1,{why}"]
    assert put(run, 3, 7) == [f"out I 3,1,17,2,1,{why}", "alerts I 2,insert7"]
    assert put(run, 4, 9) == [f"out I 4,2,19,3,1,{why}", "alerts I 3,insert9"]
    # The filter hears of the new limit before its next event.
    assert put(run, 5, 8) == []
    assert run.take_refusals() == []


def test_a_repeated_function_runs_until_it_returns_true() -> None:
    run = kernel()
    put(run, 1, 2)
    assert run.due() == 6_000
    run.advance(6_000)
    assert put(run, 2, 3, 6_000)[0].split(",")[4] == "2"
    run.advance(run.due() or 0)
    assert run.due() is None
    assert put(run, 3, 3, 20_000)[0].split(",")[4] == "3"


STEPS = [(1, 2, 0), (2, 3, 10), (3, 7, 6_000), (4, 9, 7_000), (5, 8, 30_000), (6, 12, 40_000)]


@pytest.mark.parametrize("cut", range(len(STEPS)))
def test_what_is_shared_is_part_of_the_state(cut: int) -> None:
    straight, cutting = kernel(), kernel()
    for place, (id_, v, clock) in enumerate(STEPS):
        if place == cut:
            state = loads(dumps(cutting.state()))
            cutting = kernel()
            cutting.restore(state)
        assert put(straight, id_, v, clock) == put(cutting, id_, v, clock)
        assert straight.state() == cutting.state()


def test_blocks_give_the_same() -> None:
    one, many = kernel(), kernel()
    events = [("q/in", Event("I", "N", (id_, v))) for id_, v, _ in STEPS]
    expected = [each for path, event in events for each in one.publish(path, event, 5)]
    handled = many.publish_block(events, 5)
    assert [each for one_ in handled for each in one_.outputs] == expected
    assert many.state() == one.state()


def test_what_is_published_at_the_beginning_is_there_though_the_first_event_is_refused() -> None:
    """The windows have it already."""
    snippet = SNIPPET.replace(
        "  esp_setProperty('limit', 2)",
        "  esp_setProperty('limit', 2)\n"
        "  esp_publish({window = 'alerts', events = {nr = 1, text = 'begun'}})",
    )
    expected = [("q/alerts", Event("I", "N", (1, "begun")))]
    run = kernel_of(read_project(model(snippet)), published=["q/out", "q/alerts"])
    (refused,) = run.publish_block([("q/in", Event("I", "N", (None, 9)))], 5)
    assert (refused.bad is not None, refused.outputs) == (True, expected)


def test_scripts_that_publish_without_end_are_stopped() -> None:
    snippet = SNIPPET.replace("window = 'keep', handler", "window = 'alerts', handler").replace(
        "if event.v > 5 then", "if true then event.v = 1"
    )
    project = read_project(model(snippet.replace("nr = #seen", "nr = #seen, _opcode = 'upsert'")))
    run = kernel_of(project, published=["q/alerts"])
    run.publish("q/alerts", Event("I", "N", (1, "a")), 5)
    refusals = run.take_refusals()
    assert "more than 10000 events because of one" in refusals[0][1]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("esp_query('nowhere')", "no window is called 'nowhere'"),
        ("esp_publish('keep', {})", "keep is no source window"),
        ("esp_subscribe('keep', 'f')", "only a snippet can subscribe"),
        ("esp_setProperty('a', ('x'):rep(2000000))", "more than 1000000 bytes"),
        ("esp_setProperty('a', print)", "a function cannot leave its script"),
        ("esp_call('sums')", "needs the name of a snippet and a function"),
    ],
)
def test_what_cannot_be_done_refuses_the_event(call: str, reason: str) -> None:
    windows = source("id*:int64,v:int64") + (
        '<window-lua name="out"><schema-string>id*:int64</schema-string>'
        f"<code>function create(d) return {{id = {call}}} end</code></window-lua>"
        '<window-copy name="keep"/>'
    )
    edges = '<edge source="in" target="out keep"/>'
    run = kernel_of(read_project(xml(windows, edges)))
    run.publish("q/in", Event("I", "N", (1, 2)), 5)
    (refusal,) = run.take_refusals()
    assert reason in refusal[1]


def test_a_model_that_shares_nothing_has_the_plain_kernel() -> None:
    assert type(kernel_of(read_project(xml(source("id*:int64"))))) is Kernel


def test_snippets_are_checked() -> None:
    with pytest.raises(ModelError, match="no function 'tick'"):
        read_project(model(SNIPPET.replace("function tick", "function tock")))
    with pytest.raises(ModelError, match="interval is 'often'"):
        read_project(model().replace("5 seconds", "often"))


def test_files_that_scripts_open_are_part_of_the_model(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"v": 5}', encoding="utf-8")
    code = (
        "function create(d) local f = io.open('@ESP_PROJECT_HOME@/a.json', 'r') "
        "return {id = esp_parseJson(f:read('*all')).v} end"
    )
    window = f'<window-lua name="out"><schema-string>id*:int64</schema-string><code>{code}</code>'
    text = xml(source("id*:int64") + window + "</window-lua>", '<edge source="in" target="out"/>')
    project = read_project(text, tokens={"ESP_PROJECT_HOME": str(tmp_path)})
    (tmp_path / "a.json").unlink()
    run = kernel_of(project, published=["q/out"])
    assert run.publish("q/in", Event("I", "N", (1,)), 5) == [("q/out", Event("I", "N", (5,)))]


values = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.binary(),
    lambda inner: st.dictionaries(st.integers(-5, 5) | st.binary(), inner, max_size=4),
    max_leaves=10,
)


@given(values)
def test_values_are_packed_and_unpacked(value: Any) -> None:
    assert unpacked(packed(value)) == value


def test_lists_count_from_one() -> None:
    assert unpacked(packed([1, None, "a"])) == {1: 1, 3: b"a"}
    assert listed(unpacked(packed([1, "b"]))) == [1, b"b"]
    assert listed(5) == []


def test_what_is_nested_too_deeply_is_not_packed() -> None:
    value: Any = 1
    for _ in range(200):
        value = [value]
    with pytest.raises(ScriptError, match="nested deeper"):
        packed(value)
