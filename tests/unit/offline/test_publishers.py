"""Connectors in Lua and Python: their functions make the events of a run."""

from html import escape
from pathlib import Path
from typing import Any

import pytest

from espha.offline.command import DONE, TROUBLE
from support.models import source, xml
from support.offline import Place

SCHEMA = "id*:int64,x:double,s:string,t:stamp"


def connector(class_: str, code: str, **properties: str) -> str:
    """Return a connector with a script."""
    listed = "".join(
        f'<property name="{name}">{escape(text)}</property>'
        for name, text in {"code": code, **properties}.items()
    )
    inner = f'<connector class="{class_}" name="pub"><properties>{listed}</properties></connector>'
    return f"<connectors>{inner}</connectors>"


def run(place: Place, windows: str, expected: int = DONE, **options: Any) -> list[str]:
    """Run a project of sources; return what leaves `in`."""
    place.write("model.xml", xml(windows, index="pi_HASH"))
    trace = place.folder / "trace.csv"
    assert place.run(traces=[f"in={trace}"], **options) == expected
    return place.lines("trace.csv")


LUA = """
local n = 0
function publish()
  n = n + 1
  if n == 1 then
    esp_injectCsv("1,0.5,a\\n2,,b", {opcode="i", flags="n"})
  elseif n == 2 then
    esp_inject({{id=3, x=1, s=tostring(#esp_getGuids(2))}, {id=1, _opcode="upsert", s="c"}})
  elseif n == 3 then
    esp_inject({id="x"})
    print("third", n)
    esp_inject(esp_parseJson('{"id": 4, "s": {"b": [1]}}'), {opcode="insert"})
  end
  return n == 4
end
"""


def test_a_publisher_in_lua(tmp_path: Path) -> None:
    """An event is a table, rows are CSV; what is no event is a bad record."""
    place = Place(tmp_path)
    assert run(place, source(SCHEMA, body=connector("lua", LUA))) == [
        "I,N, 1,0.500000,a,",
        "I,N, 2,,b,",
        "I,N, 3,1.000000,2,",
        "U,N, 1,,c,",
        "D,N, 1,0.500000,a,",
        'I,N, 4,,"{""b"":[1]}",',
    ]
    assert "q/in/pub: field id: 'x' is not a whole number (int64)" in place.said
    assert "q/in/pub: third 3" in place.said


PYTHON = """
import esp, os, datetime
rows = []
def begin():
    global rows
    with open(os.environ["ESP_PROJECT_HOME"] + "/files/in.txt") as file:
        rows = file.read().split()
def make():
    event = {"id": rows.pop(0), "x": 2, "t": datetime.datetime(1970, 1, 1, 0, 0, 1, 5)}
    return {"events": [event], "done": not rows}
"""


def test_a_publisher_in_python_reads_the_files_of_its_project(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("in.txt", "7 8")
    body = connector("python", PYTHON, init="begin", publish="make", interval="1 hour")
    assert run(place, source(SCHEMA, body=body)) == [
        "I,N, 7,2.000000,,1000005",
        "I,N, 8,2.000000,,1000005",
    ]


@pytest.mark.parametrize(
    ("class_", "code", "reason"),
    [
        ("lua", "publish = 1", "the script has no function 'publish'"),
        ("lua", "local x = = 2", "unexpected symbol"),
        ("lua", "io.open('x') function publish() end", "attempt to index a nil value"),
        ("lua", "while true do pcall(error) end", "instructions in one call"),
        ("python", "import socket\nsocket.socket()", "cannot do this here: socket.__new__"),
        ("python", "open('/etc/passwd')", "/etc/passwd is not below the folder of the project"),
        ("python", "open('x', 'w')", "a connector's script writes no files"),
        ("python", "import os\nos.system('ls')", "cannot do this here: os.system"),
        ("python", "def publish(:", "line 1: invalid syntax"),
        ("python", "", "property 'code' is missing"),
    ],
)
def test_a_script_that_cannot_be_run_is_left_out(
    tmp_path: Path, class_: str, code: str, reason: str
) -> None:
    place = Place(tmp_path)
    assert run(place, source(SCHEMA, body=connector(class_, code))) == []
    assert f"connector q/in/pub is not run: {reason}" in place.said or reason in place.said


@pytest.mark.parametrize(
    ("class_", "code"),
    [
        ("lua", "n = 0 function publish() n = n + 1 if n > 2 then error('oh') end "
                "return {events={id=n}} end"),
        ("python", "n = 0\ndef publish():\n global n\n n += 1\n if n > 2: raise ValueError('oh')\n"
                   " return {'id': n}"),
    ],
)  # fmt: skip
def test_a_script_that_fails_ends_alone(tmp_path: Path, class_: str, code: str) -> None:
    place = Place(tmp_path)
    body = connector(class_, code)
    assert run(place, source(SCHEMA, body=body), TROUBLE) == ["I,N, 1,,,", "I,N, 2,,,"]
    assert "q/in/pub: its script: " in place.said
    assert "oh" in place.said


ENDLESS = "n = 0 function publish() n = n + 1 return {events={{id=n}, {id=-n}}} end"


@pytest.mark.parametrize(
    ("properties", "count", "note"),
    [
        ({}, 5, "was ended after 5 events; --endless N sets another number"),
        ({"interval": "10 minutes"}, 5, "was ended after 5 events"),
        ({"maxevents": "7"}, 7, ""),
    ],
)
def test_what_has_no_end_is_ended(
    tmp_path: Path, properties: dict[str, str], count: int, note: str
) -> None:
    place = Place(tmp_path)
    body = connector("lua", ENDLESS, **properties)
    assert len(run(place, source(SCHEMA, body=body), endless=5)) == count
    assert (note in place.said) if note else ("was ended" not in place.said)


def test_a_publisher_asks_for_the_rows_of_a_window(tmp_path: Path) -> None:
    """Rows that another connector has published are there when the clock has gone on."""
    query = (
        "local calls = 0 function publish() calls = calls + 1 "
        'for _, row in ipairs(esp_query({window="other"}).events) do '
        "esp_inject({id=row.id, s=row.s .. tostring(row.x)}) end return calls == 2 end"
    )
    place = Place(tmp_path)
    place.write("rows.csv", "I,N,1,,a,", "I,N,2,,b,", "D,N,1,,,")
    windows = source(SCHEMA, body=connector("lua", query, interval="1 second"))
    other = source(SCHEMA, name="other")
    rows = tmp_path / "rows.csv"
    assert run(place, windows + other, inputs=[f"other={rows}"]) == ["I,N, 2,,bnil,"]


def test_timers_alone_tick_until_they_are_ended(tmp_path: Path) -> None:
    place = Place(tmp_path)
    listed = '<property name="interval">1</property><property name="unit">day</property>'
    timer = f'<connector class="timer" name="pub"><properties>{listed}</properties></connector>'
    body = f"<connectors>{timer}</connectors>"
    assert len(run(place, source(SCHEMA, body=body), endless=3)) == 3
    assert "connector q/in/pub was ended after 3 events" in place.said
