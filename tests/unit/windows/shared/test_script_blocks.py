"""Windows with a script in Python: a block of events gives what its events give one by one."""

from typing import Any

import pytest

from espha.kernel import Kernel
from espha.model.events import BadRecord, Event
from espha.reader import read_project
from support.models import source, xml

COUNTED = """
calls, seen = 0, {}
def f(data, context):
    global calls
    calls += 1
    seen[data["id"]] = seen.get(data["id"], 0) + 1
    if data["x"] == 3:
        raise ValueError(calls)
"""
FILTER = COUNTED + "    return {0: True, 1: 0, 2: 2.5}.get(data['x'], None)\n"
ROW = COUNTED + "    return {'n': calls * 10 + seen[data['id']], 'd': data['x']}\n"
ROWS = COUNTED + "    return [{'id': data['id'] + n, 'n': calls} for n in range(data['x'])]\n"
OUT = "<schema-string>id*:int64,n:int64,d:double</schema-string>"
CODE = "<code {}><![CDATA[{}]]></code>"


def window(kind: str, index: str) -> str:
    how = 'language="python" function="f"'
    body = {
        "filter": CODE.format(how, FILTER),
        "compute": OUT + CODE.format(how, ROW),
        "python": OUT + CODE.format("", ROWS),
    }[kind]
    events = 'events="f"' if kind == "python" else ""
    return f'<window-{kind} name="out" index="{index}" {events}>{body}</window-{kind}>'


def events() -> list[Event]:
    """Inserts, updates of rows in and out of the filter, deletes, and some that fail."""
    made = [Event("I", "N", (key, key % 4)) for key in range(12)]
    made += [Event("U", "N", (key, (key + 1) % 4)) for key in range(12)]
    made += [Event("P", "N", (key, 5 - key % 6)) for key in range(6, 18)]
    return made + [Event("D", "N", (key, 0)) for key in range(0, 18, 2)]


@pytest.mark.parametrize("above", ["pi_HASH", "pi_EMPTY"])
@pytest.mark.parametrize("index", ["pi_HASH", "pi_EMPTY"])
@pytest.mark.parametrize("kind", ["filter", "compute", "python"])
def test_a_block_is_what_single_events_are(kind: str, index: str, above: str) -> None:
    """A source with rows sends update blocks, of which a stateless window asks for both rows."""
    windows = source("id*:int64,x:int64", f'index="{above}"') + window(kind, index)
    project = read_project(xml(windows, '<edge source="in" target="out"/>'))
    single, block = (Kernel(project, {"q/out"}) for _ in range(2))
    expected: list[Any] = []
    for event in events():
        try:
            outputs, bad = single.publish("q/in", event, 1_000), None
        except BadRecord as refusal:
            outputs, bad = [], refusal.reason
        expected.append((outputs, bad, single.take_refusals()))
    handled = block.publish_block([("q/in", event) for event in events()], 1_000)
    assert [(each.outputs, each.bad, list(each.refused)) for each in handled] == expected
    assert any(refused for _, _, refused in expected)
    assert sum(len(outputs) for outputs, _, _ in expected) > 5
    assert single.state() == block.state()
