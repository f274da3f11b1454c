"""Events that a script makes, with the number of the call."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from espha.adapters.script_input.run import Calls, Position, opened
from espha.adapters.script_input.spec import InputScript
from espha.reader import read_project

WINDOW = read_project(
    b'<project name="p"><contqueries><contquery name="q"><windows>'
    b'<window-source name="w"><schema><fields>'
    b'<field name="id" type="int32" key="true"/><field name="x" type="string"/>'
    b"</fields></schema></window-source></windows></contquery></contqueries></project>"
).windows["q/w"]
LUA = """
local number = 0
function publish()
  number = number + 1
  esp_inject({{id = number, x = 'a'}, {id = number, x = 'b', _opcode = 'delete'}})
  return number == 2
end
"""
PYTHON = """
number = 0
def publish():
    global number
    number += 1
    return {"events": [{"id": number, "x": "a"}, {"id": "x"}], "done": number == 2}
"""


class Clock:
    """Stands still until it is set."""

    now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Any]:
    known: list[Calls] = []

    def make(clock: Clock, position: Position | None = None, **given: Any) -> Calls:
        settings = InputScript.model_validate(given)
        at = position or Position("a")
        known.append(Calls(settings, WINDOW, at, lambda: opened(settings, tmp_path), clock))
        return known[-1]

    yield make
    for one in known:
        one.close()


def rows(source: Calls) -> list[str]:
    return [value.decode().replace(" ", "") for value, _ in source.poll()]


def test_each_call_is_one_transaction_and_the_last_one_is_remembered(made: Any) -> None:
    clock = Clock()
    source = made(clock, language="lua", code=LUA)
    assert rows(source) == ["I,N,1,a", "D,N,1,b"]
    assert rows(source) == []
    clock.now = 1
    assert rows(source) == ["I,N,2,a", "D,N,2,b"]
    kept = Position.of("a", json.loads(source.position.to_header()))
    assert kept == Position("a", 2, 4, True)
    clock.now = 2
    assert rows(source) == []
    assert rows(made(clock, kept, language="lua", code=LUA)) == []


def test_a_script_in_python_lives_in_a_process_of_its_own(made: Any) -> None:
    good, bad = rows(made(Clock(), language="python", code=PYTHON))
    assert good == "I,N,1,a"
    assert bad.startswith('notarow,"scriptinpython,call1:fieldid:')


@pytest.mark.parametrize("half", ["\\ud83d", "\\udc80"])
def test_a_text_with_half_of_a_surrogate_pair_is_no_row(made: Any, half: str) -> None:
    events = f'{{"id": 1, "x": "{half}"}}, {{"id": "{half}"}}, {{"id": 2, "x": "b"}}'
    code = f'def publish(): return {{"events": [{events}], "done": True}}'
    text, number, good = rows(made(Clock(), language="python", code=code))
    assert text.startswith('notarow,"scriptinpython,call1:atexthashalfofasurrogatepair"')
    assert half in text
    assert number.startswith('notarow,"scriptinpython,call1:fieldid:')
    assert good == "I,N,2,b"


def test_so_many_events_are_made_at_least(made: Any) -> None:
    clock = Clock()
    source = made(clock, language="lua", code=LUA, maxEvents=1)
    assert len(rows(source)) == 2
    clock.now = 1
    assert rows(source) == []


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"language": "lua", "code": "x ="}, "the script has failed"),
        ({"language": "lua", "code": "x = 1"}, "the script has no function 'publish'"),
        ({"language": "lua", "code": "function publish() esp_query({window='w'}) end"},
         "an adapter has not"),
        ({"language": "python", "code": "def publish(): open('/etc/passwd')"}, "line 1: "),
        ({"language": "lua", "code": "function publish() for i=1,10001 do esp_inject({id=i}) end "
          "end"}, "more than 10000 events"),
    ],
)  # fmt: skip
def test_a_script_that_fails_is_said_and_loaded_anew(
    made: Any, given: dict[str, Any], sentence: str
) -> None:
    source = made(Clock(), **given)
    for _ in range(2):
        with pytest.raises(OSError, match="the script has failed") as caught:
            source.poll()
        assert sentence in str(caught.value)
        source.close()
