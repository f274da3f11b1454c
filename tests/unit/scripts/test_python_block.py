"""Blocks of calls: what comes out is what single calls give, whatever happens in between."""

import json
import os
import signal
from typing import Any

import pytest

from espha.scripts import Answer, Call, Input, Options, ScriptError
from espha.scripts.host import BEGIN_SECONDS, GoneError, Host
from espha.scripts.python import CALLS_KEPT, PIECE, PythonScript, check_python

SCRIPT = """
import json, random, time
count, seen = 0, []
def f(d, c):
    global count
    count += 1
    if d["v"] == "fail":
        seen.append(count)
        raise ValueError(f"the {count}th")
    if d["v"] == "die":
        json.codecs.sys.modules["posix"]._exit(3)
    if d["v"] == "loop":
        while True: pass
    if d["v"] == "number":
        return {"x": 10 ** 5000}
    if d["v"] == "much":
        return [{"x": "x" * 1000}] * 3000
    if d["v"] == "blob":
        return {"x": b"\\xff", "y": [1, None]}
    if d["v"] == "none":
        return None
    return {"x": count, "y": f"{c.opcode} {time.time()} {random.random()} {len(seen)}"}
"""


def script(code: str = SCRIPT, **more: object) -> PythonScript:
    check_python(code, "f")
    return PythonScript(code, "f", "q/w", [Input("in", ["v"])], ["x", "y"], options=Options(**more))  # type: ignore[arg-type]


def calls(*values: str) -> list[Call]:
    return [
        Call((value,), ("insert", "delete")[number % 2], "N", 0, 1_000 * number, number)
        for number, value in enumerate(values)
    ]


def told(answers: list[Answer | ScriptError]) -> list[object]:
    return [str(answer) if isinstance(answer, ScriptError) else answer for answer in answers]


def one_by_one(loaded: PythonScript, each: list[Call]) -> list[object]:
    return told([answer for call in each for answer in loaded.call_block([call])])


@pytest.mark.parametrize(
    "values",
    [
        ["a"] * 5,
        ["a", "fail", "a", "number", "none", "blob", "a"],
        ["a", "die", "a", "fail", "die", "a"],
        ["a", "loop", "a"],
        ["much", "a", "much", "much", "a"],
        ["a", *["fail", "a"] * PIECE, "die", "a"],
    ],
    ids=["good", "failing", "dying", "endless", "large", "pieces"],
)
def test_a_block_is_what_single_calls_are(values: list[str]) -> None:
    """Each event has its own reason, clock and chance; what a failing one changed stays."""
    single, block = script(), script()
    expected = one_by_one(single, calls(*values))
    assert told(block.call_block(calls(*values))) == expected
    assert block.state() == single.state()
    assert told(block.call_block(calls("a"))) == one_by_one(single, calls("a"))


def test_a_process_that_is_killed_between_blocks_is_replaced() -> None:
    loaded, other = script(), script()
    for each in (loaded, other):
        each.call_block(calls("a", "fail", "a"))
    assert loaded._host is not None
    os.kill(loaded._host.pid, signal.SIGKILL)
    assert told(loaded.call_block(calls("a", "a"))) == told(other.call_block(calls("a", "a")))


def test_a_single_call_behind_the_death_of_its_process_is_answered() -> None:
    """No fault of the record: at a low rate each comes alone."""
    loaded, other = script(), script()
    for each in (loaded, other):
        each.call_block(calls("a"))
    assert loaded._host is not None
    os.kill(loaded._host.pid, signal.SIGKILL)
    assert told(loaded.call_block(calls("a"))) == told(other.call_block(calls("a")))


@pytest.mark.parametrize("what", ["load", "begin", "restore"])
def test_a_process_that_begins_in_vain_is_no_fault_of_the_script(
    monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Others may have the processor while it imports; all records would be refused from then on."""
    loaded, other = script(), script()
    expected = [told(other.call_block(calls("a"))) for _ in range(3)]
    answers = [told(loaded.call_block(calls("a")))]
    state = loaded.state()
    if what == "restore":
        loaded.restore(state)
    else:
        loaded, answers = script(), []
    really, failed = Host.ask, list[float]()

    def ask(self: Host, asked: str, message: Any, seconds: float) -> Any:
        if asked == what and not failed:
            failed.append(seconds)
            raise GoneError("the script gave no answer")
        return really(self, asked, message, seconds)

    monkeypatch.setattr(Host, "ask", ask)
    while len(answers) < 3:
        answers.append(told(loaded.call_block(calls("a"))))
    assert answers == expected
    assert failed == [BEGIN_SECONDS]


def test_variables_that_cannot_be_had_now_cost_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """What leads to them stays, where the process has gone with the question."""
    loaded, other = script(), script()
    really, asked = Host.ask, list[Host]()

    def ask(self: Host, what: str, message: Any, seconds: float) -> Any:
        if what == "state" and self is not other._host:
            asked.append(self)
            self.kill()
            raise GoneError("the script gave no answer")
        return really(self, what, message, seconds)

    monkeypatch.setattr(Host, "ask", ask)
    many = calls(*["a"] * (CALLS_KEPT + 1))
    for _ in range(2):
        assert told(loaded.call_block(many)) == told(other.call_block(many))
    assert len(asked) >= 2


def test_calls_of_a_process_that_fails_in_the_middle_of_them_do_not_count_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Memory may lack behind the calls, for their answers: each is made again, alone."""
    loaded, other = script(), script()
    really, failed = Host.ask, list[Host]()

    def ask(self: Host, what: str, message: Any, seconds: float) -> Any:
        answer = really(self, what, message, seconds)
        if what == "calls" and self is not other._host and not failed:
            failed.append(self)
            return False, "no memory is left", []
        return answer

    expected = told(other.call_block(calls("a", "a")))
    monkeypatch.setattr(Host, "ask", ask)
    assert told(loaded.call_block(calls("a", "a"))) == expected


def test_a_main_part_that_fails_is_run_once() -> None:
    loaded = script("1 / 0\ndef f(d, c): pass")
    answers = told(loaded.call_block(calls("a", "a", "a")))
    assert answers == ["script line 1: ZeroDivisionError: division by zero"] * 3


def test_the_state_is_asked_for_when_it_has_changed_by_much() -> None:
    """A large state is not read after every piece: as many calls as it has values."""
    loaded = script("kept = {}\ndef f(d, c):\n    kept[len(kept)] = [len(kept)]")
    asked: list[int] = []
    for _ in range(4 * PIECE):
        loaded.call_block(calls("a"))
        size = len(loaded._state[-1]) if loaded._state else 0
        if not asked or asked[-1] != size:
            asked.append(size)
    assert asked == [0, CALLS_KEPT + 1, 2 * CALLS_KEPT + 2]


OPTIONS = """
import tools
from tools import Logger, double
import esp, logging
started = []
def begin(settings=None):
    started.append(dict(settings or {}))
def f(*given):
    print("printed", len(given))
    logging.getLogger("mine").warning("%d %s", 1, "b")
    esp.logMessage(logcontext="here", message="said", level="error")
    found = esp.call(3, 4, _pyname_="sums", _pyfunc_="add")
    failed = esp.call(1, 0, _pyname_="sums", _pyfunc_="divide")
    unknown = esp.call(1, _pyname_="sums", _pyfunc_="other")
    shown = [found["code"], found["results"], failed["code"], failed["error"], unknown["error"]]
    return {"x": str([double(2), tools.double(1), started, *shown]), "y": str(given[0])}
"""
TOOLS = "class Logger: pass\ndef double(a):\n    return 2 * a\n"
SUMS = "total = 0\ndef add(a, b):\n    global total\n    total += a + b\n    return total, b\n"
SUMS += "def divide(a, b):\n    return a / b  # by b\n"


def test_modules_snippets_settings_and_the_log(caplog: pytest.LogCaptureFixture) -> None:
    more = {"modules": {"tools": TOOLS}, "snippets": {"sums": SUMS}, "init": "begin"}
    check_python(OPTIONS, "f", "begin", modules=["tools"])
    with pytest.raises(ScriptError, match="line 2: module 'tools'"):
        check_python(OPTIONS, "f")

    def made(**options: object) -> PythonScript:
        inputs = [Input("in", ["v", "w"])]
        return PythonScript(OPTIONS, "f", "q/w", inputs, ["x", "y"], options=Options(**options))  # type: ignore[arg-type]

    straight, cut = made(**more, settings={"a": "1"}), made(**more, settings={"a": "1"})
    call = Call(("é", b"\xff"), "insert", "N", 0, 5_000, 1)
    with caplog.at_level("INFO", "espha.scripts.python"):
        first = straight.call(call)
    assert [record.getMessage() for record in caplog.records] == [
        "q/w: printed 2", "q/w: mine: 1 b", "q/w: here: said"
    ]  # fmt: skip
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING", "ERROR"]
    shown = "error='division by zero', file:python, function:divide, linenum:7, "
    shown += "code:return a / b  # by b"
    expected = [4, 2, [{"a": "1"}], True, [7, 4], False, shown]
    assert isinstance(first, list)
    assert str(first[0][0]).startswith(str(expected)[:-1])
    assert "no function 'other' in snippet 'sums'" in str(first[0][0])
    assert cut.call(call) == first
    state = json.loads(json.dumps(cut.state()))
    again = made(**more, settings={"a": "1"})
    again.restore(state)
    assert again.call(call) == straight.call(call) != first

    given = {
        "": "{'v': 'é', 'w': b'\\xff'}",
        "expanded": "é",
        "blocks": "[{'v': 'é', 'w': b'\\xff'}]",
        "encoded": "{'v': 'é', 'w': '/w=='}",
    }
    for name, seen in given.items():
        answer = made(**more, **({name: True} if name else {})).call(call)
        assert isinstance(answer, list)
        assert answer[0][1] == seen


def test_files_of_the_model_are_read() -> None:
    code = "import csv, json\nwith open('table.csv', newline='') as file:\n"
    code += "    rows = list(csv.reader(file))\n"
    code += "def f(d, c):\n    return {'x': rows[1][0], 'y': open(d['v'], 'rb').read()}"
    files = {"table.csv": "a,b\né,2\n".encode(), "raw": b"\xff"}
    loaded = script(code, files=files)
    answers = loaded.call_block(calls("raw", "/etc/hostname", "table.csv"))
    assert answers[0] == [["é", b"\xff"]]
    assert "a script cannot do this: open" in str(answers[1])
    assert answers[2] == [["é", files["table.csv"]]]
