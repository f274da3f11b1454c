"""Python scripts: what they can do, what they cannot, and what of them is kept."""

import os
import signal

import pytest

from espha.recovery.plain import dumps, loads
from espha.scripts import Call, Input, ScriptError
from espha.scripts.process import imports
from espha.scripts.python import CALLS_KEPT, PythonScript, check_python
from support.models import ROOT


def script(code: str, seconds: float = 10.0) -> PythonScript:
    check_python(code, "f")
    return PythonScript(code, "f", "q/w", [Input("in", ["id", "v"])], ["x", "y"], seconds=seconds)


def call(of: PythonScript, *values: object, clock: int = 5_000, token: int = 3) -> object:
    row = values + (None,) * (2 - len(values))
    answer = of.call(Call(row, "insert", "N", 0, clock, token))
    return named(answer)


def named(answer: object) -> object:
    """The rows of an answer with the names of the outputs."""
    if not isinstance(answer, list):
        return answer
    return [dict(zip(["x", "y"], row, strict=True)) for row in answer]


def body(*lines: str) -> str:
    return "\n".join(["def f(d, c):", *("    " + line for line in lines)])


EXPRESSIONS = {
    "d['id'] + d['v']": 3.5,
    "c.window + c['input'] + c.opcode + c.flags": "q/wininsertN",
    "int(time.time())": 5,
    "str(datetime.datetime.now())": "1970-01-01 00:00:05",
    "str(datetime.date.today())": "1970-01-01",
    "datetime.datetime.strptime('1970-01-02', '%Y-%m-%d').timestamp()": 86_400.0,
    "math.floor(2.7)": 2,
    "json.dumps({'a': 1})": '{"a": 1}',
    "re.sub('b+', '-', 'abbc')": "a-c",
    "[1, 2.5, None]": [1, 2.5, None],
    "b'\\x00\\xff'": b"\x00\xff",
    "2 ** 62": 2**62,
    "True": True,
}


def test_python_as_it_is_used() -> None:
    imports = "import datetime, json, math, re, time\n"
    rows = ", ".join(f"{{'x': {code}}}" for code in EXPRESSIONS)
    found = call(script(imports + body(f"return [{rows}]")), 1, 2.5)
    assert isinstance(found, list)
    assert [row["x"] for row in found] == list(EXPRESSIONS.values())


MODULES = sorted(imports.PURE | imports.GIVEN)


def test_every_module_that_is_said_to_be_there_is_there() -> None:
    lines = [f"import {name}" for name in MODULES] + ["from xml.etree import ElementTree as tree"]
    shown = "str([tree.fromstring('<a/>').tag, urllib.parse.quote(' '), os.path.sep, io.StringIO])"
    loaded = script("\n".join(lines) + "\n" + body(f"return {{'x': {shown}}}"))
    assert call(loaded, 1) == [{"x": "['a', '%20', '/', <class '_io.StringIO'>]", "y": None}]
    page = (ROOT / "docs/reference/models/scripts.md").read_text(encoding="utf-8")
    assert " ".join(f"`{name}`" for name in MODULES) in page


MORE = {
    "logging.getLogger('a').isEnabledFor(10)": True,
    "datetime.datetime.now(datetime.timezone.utc).strftime('%H:%M:%S %z')": "00:00:05 +0000",
    "datetime.date.today() in {datetime.date(1970, 1, 1)}": True,
    "time.strftime('%Y %m', time.localtime()) + time.ctime()[:3]": "1970 01Thu",
    "time.strptime('2020', '%Y').tm_year + int(time.perf_counter())": 2025,
    "os.environ.get('HOME', 'none') + os.path.join('a', 'b')": "nonea/b",
    "str(uuid.uuid4() == uuid.uuid4()) + uuid.uuid5(uuid.NAMESPACE_DNS, 'a').hex[:4]": "False4f3f",
    "hashlib.sha256(b'a').hexdigest()[:6]": "ca9781",
    "next(csv.reader(io.StringIO('a;b'), delimiter=';'))[1]": "b",
    "[d for d in {3, 1, 2} | {0}]": [3, 1, 2, 0],
    "np.array([1.5, 2]).mean()": 1.75,
    "np.arange(3)": [0, 1, 2],
    "decimal.Decimal('0.5')": 0.5,
    "fractions.Fraction(1, 4)": 0.25,
    "datetime.datetime(2020, 1, 2, 3)": "2020-01-02 03:00:00",
    "datetime.datetime(2020, 1, 2, 3, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))": (
        "2020-01-02 02:00:00"
    ),
    "enum.IntEnum('E', 'A B').B": 2,
    "bytearray(b'a')": b"a",
    "threading.Lock().acquire()": True,
    "ast.literal_eval('[1]')": [1],
    "random.Random(1).random() == random.Random(1).random() != random.Random().random()": True,
    "'é'.encode('latin-1').decode('cp1252')": "é",
}


def test_python_as_it_is_used_further() -> None:
    names = (
        "ast csv datetime decimal enum fractions hashlib io logging os random threading time uuid"
    )
    rows = ", ".join(f"{{'x': {code}}}" for code in MORE)
    head = f"import {', '.join(names.split())}\nimport numpy as np\n"
    found = call(script(head + body(f"return [{rows}]")), 1, 2.5)
    assert isinstance(found, list)
    assert {code: row["x"] for code, row in zip(MORE, found, strict=True)} == MORE


def test_values_go_in_as_they_are() -> None:
    loaded = script(body("return {'x': d['v'], 'y': type(d['v']).__name__}"))
    for value, kind in [(7, "int"), (0.1, "float"), ("ä\n", "str"), (b"\xff", "bytes"),
                        ([1, None], "list"), (None, "NoneType")]:  # fmt: skip
        assert call(loaded, 1, value) == [{"x": value, "y": kind}]


def test_what_a_function_can_return() -> None:
    loaded = script(
        body("return [None, {}, [], True, False, {'x': 1}, [{'x': 1}, {}], 5, 'a', 0.5][d['id']]")
    )
    one, none = {"x": 1, "y": None}, {"x": None, "y": None}
    expected = [[], [none], [], True, False, [one], [one, none], 5, "a", 0.5]
    assert [call(loaded, place) for place in range(10)] == expected


REFUSED = {
    "return [5]": "a row is to be a dict, not int",
    "return [{'x': 1}] * 10001": "more than 10000 rows",
    "return {'x': {1}}": "a value is of type set",
    "1 / 0": "script line 4: ZeroDivisionError",
    "f({'id': 2}, c)": "RecursionError",
    "raise SystemExit": "SystemExit",
    "raise ValueError(json.loads('\"\\\\ud83d\"'))": "script line 4: ValueError: ?",
    "__import__('socket')": "module 'socket' is not one of those for scripts",
    "return {'x': object()}": "a value is of type object",
    "sys.exit(1)": "cannot end its process",
    "open('/etc/hostname')": "script line 4: a script cannot do this: open",
    "eval('1')": "a script cannot do this: eval",
    "json.codecs.builtins.open('/etc/hostname')": "a script cannot do this: open",
    "json.codecs.builtins.__import__('socket')": "a script cannot do this",
    "json.codecs.sys.modules['os'].system('true')": "a script cannot do this: os.system",
    "json.codecs.sys.modules['os'].listdir('/')": "a script cannot do this: os.listdir",
    "return {'x': 'x' * (1 << 31)}": "MemoryError",
    "return {'x': 10 ** 5000}": "ValueError",
}


def test_a_call_that_fails_says_why_and_the_next_one_works() -> None:
    for line, reason in REFUSED.items():
        loaded = script("import json, sys\n" + body("if d['id'] == 1: return {'x': 7}", line))
        with pytest.raises(ScriptError) as caught:
            call(loaded, 2)
        assert reason in str(caught.value), line
        assert call(loaded, 1) == [{"x": 7, "y": None}]
        loaded.close()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("def f(:", "line 1"),
        ("def g(d, c): pass", "no function 'f'"),
        ("import json, socket\ndef f(d, c): pass", "line 1: module 'socket'"),
        ("def f(d, c):\n  from os import fork\n  import subprocess", "line 3: module 'subprocess'"),
        ("def f(d, c):\n  return " + "(" * 500, "too many nested"),
        ("def f(d, c):\n  return " + "-" * 90_000 + "1", "nested too deeply"),
        ("def f(d, c): pass\n" + "#" * 100_000, "at most 100000"),
        ("def f(d, c): '\0'", "null bytes|no Python"),
    ],
)
def test_scripts_are_checked_before_they_run(code: str, reason: str) -> None:
    with pytest.raises(ScriptError, match=reason):
        check_python(code, "f")


def test_a_main_part_that_fails_is_refused_at_each_call() -> None:
    loaded = script("1 / 0\n" + body("return {}"))
    for _ in range(2):
        with pytest.raises(ScriptError, match="line 1: ZeroDivisionError"):
            call(loaded, 1)


KEEPING = """
import collections, random
count, shared = 0, [10]
other = shared
seen = {}
last = collections.deque(maxlen=2)
sums = collections.defaultdict(int)
class Total:
    value = 0
    parts = []
def f(d, c):
    global count, made
    count += 1
    shared.append(count)
    seen[d["id"]] = (d["v"], seen)
    last.append(d["id"])
    sums[d["id"] % 2] += 1
    Total.value += count
    Total.parts.append(d["v"])
    if d["id"] == 4:
        made = b"made"
        del seen[2]
    return {"x": [count, len(other), len(seen), sum(last), sums[1], Total.value],
            "y": random.randint(0, 10**6)}
"""


@pytest.mark.parametrize("cut", [0, 1, 4])
def test_variables_are_kept_exactly(cut: int) -> None:
    """Shared lists, cycles, classes; cut between two events, in a new process."""
    calls = [(1, "a"), (2, 2.5), (3, None), (4, b"\xff"), (5, 2**62)]
    straight, cutting = script(KEEPING), script(KEEPING)
    for place, values in enumerate(calls):
        if place == cut:
            state = loads(dumps(cutting.state()))
            cutting.close()
            cutting = script(KEEPING)
            cutting.restore(state)
        assert call(cutting, *values, token=place) == call(straight, *values, token=place)
    assert cutting.state() == straight.state()


def test_all_engines_get_the_same() -> None:
    """Hashes of texts and random numbers differ from process to process, but not here."""
    words = "set('the quick brown fox jumps over the lazy dog'.split())"
    code = "import random\n" + body(f"return {{'x': ' '.join({words}), 'y': random.random()}}")
    one, two = script(code), script(code)
    first = call(one, token=1)
    assert call(two, token=1) == first
    assert call(one, token=1) != first
    assert call(one, token=2) != first


def test_what_is_no_data_cannot_be_kept() -> None:
    loaded = script(body("global kept", "kept = (n for n in [1])"))
    call(loaded, 1)
    with pytest.raises(ScriptError, match="variable kept holds a generator"):
        loaded.state()


def test_what_cannot_be_kept_works_until_it_is_asked_for() -> None:
    """An offline run asks for no state; the limit of what is replayed must not stop it."""
    loaded = script("kept = (n for n in range(10**6))\n" + body("return {'x': next(kept)}"))
    for number in range(CALLS_KEPT + 10):
        assert call(loaded, 1) == [{"x": number, "y": None}]
    assert loaded._host is not None
    os.kill(loaded._host.pid, signal.SIGKILL)
    for reason in ("ended with code -9", "cannot begin anew"):
        with pytest.raises(ScriptError, match=reason):
            call(loaded, 1)


DYING = """
import json
count = 0
def f(d, c):
    global count
    count += 1
    if d["id"] == 2:
        json.codecs.sys.modules["posix"]._exit(3)
    if d["id"] == 3:
        while True: pass
    return {"x": count}
"""


def test_a_process_that_dies_is_replaced_by_one_with_the_last_state() -> None:
    loaded = script(DYING)
    assert call(loaded, 1) == [{"x": 1, "y": None}]
    with pytest.raises(ScriptError, match="ended with code 3"):
        call(loaded, 2)
    assert call(loaded, 1) == [{"x": 2, "y": None}]
    with pytest.raises(ScriptError, match="worked for more than 2 seconds"):
        call(loaded, 3)
    assert call(loaded, 1) == [{"x": 3, "y": None}]


def test_a_script_that_does_not_answer_in_time_is_ended() -> None:
    loaded = script(DYING, seconds=0.5)
    call(loaded, 1)
    with pytest.raises(ScriptError, match=r"no answer within 0\.5 seconds"):
        call(loaded, 3)
    assert call(loaded, 1) == [{"x": 2, "y": None}]


def test_what_is_replayed_is_bounded() -> None:
    loaded = script(DYING)
    for _ in range(CALLS_KEPT + 10):
        call(loaded, 1)
    with pytest.raises(ScriptError):
        call(loaded, 2)
    assert call(loaded, 1) == [{"x": CALLS_KEPT + 11, "y": None}]


def test_the_state_is_there_after_a_process_was_killed_from_outside() -> None:
    loaded, other = script(DYING), script(DYING)
    for each in (loaded, other):
        call(each, 1)
    assert loaded._host is not None
    os.kill(loaded._host.pid, signal.SIGKILL)
    assert loaded.state() == other.state()


def test_the_process_inherits_nothing_and_ends_with_the_script() -> None:
    loaded = script(body("return {'x': 1}"))
    call(loaded, 1)
    assert loaded._host is not None
    pid = loaded._host.pid
    with open(f"/proc/{pid}/environ", encoding="utf-8") as environment:  # noqa: PTH123
        names = {part.partition("=")[0] for part in environment.read().split("\0") if part}
    assert names == {"PYTHONHASHSEED", "TZ", "LC_ALL", "PYTHONPATH", "OPENBLAS_NUM_THREADS"}
    assert sorted(os.listdir(f"/proc/{pid}/fd")) == ["0", "1", "2"]  # noqa: PTH208
    del loaded
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
