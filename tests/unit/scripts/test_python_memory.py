"""What a Python script remembers: kept exactly, whatever it is made of."""

import json
import signal

import pytest

from espha.recovery.plain import dumps, loads
from espha.scripts import Call, Input, ScriptError
from espha.scripts.process.__main__ import _Server
from espha.scripts.process.common import KEEP_SECONDS, SECONDS
from espha.scripts.python import PythonScript, check_python

SCRIPTS = {
    "objects": """
class Track:
    count = 0
    def __init__(self, name):
        self.name, self.seen, self.other = name, [], None
        Track.count += 1
    def add(self, value):
        self.seen.append(value)
        return len(self.seen)
tracks = {}
first = Track("first")
def f(d):
    track = tracks.setdefault(d["id"] % 3, Track(str(d["id"])))
    track.other, first.other = first, track
    return [track.add(d["v"]), Track.count, first.other.name, track.other is first]
""",
    "slots, frozen, derived": """
import dataclasses, enum
from collections import namedtuple
Point = namedtuple("Point", "a b")
class Color(enum.Enum):
    RED = 1
    BLUE = 2
@dataclasses.dataclass(frozen=True)
class Pair:
    a: int
    b: list = dataclasses.field(default_factory=list)
class Slotted:
    __slots__ = ("a",)
class Registry(dict):
    def total(self):
        return sum(self.values())
class Stack(list):
    pass
points, pairs, slotted, registry, color = {}, [], Slotted(), Registry(), Color.RED
stack = Stack()
slotted.a = 0
def f(d):
    global color
    points[Point(d["id"], 1)] = color
    pairs.append(Pair(d["id"]))
    pairs[0].b.append(d["id"])
    slotted.a += 1
    registry[d["id"]] = d["id"]
    stack.append(registry)
    found = [len(points), pairs[0].b, slotted.a, registry.total(), color.name, color is Color.RED]
    color = Color.BLUE if color is Color.RED else Color.RED
    return found + [[p.a for p in points], type(stack).__name__, stack[0] is registry]
""",
    "closures, defaults, attributes": """
def counter():
    n = 0
    def step():
        nonlocal n
        n += 1
        return n
    return step
step = counter()
def remember(value, seen=[], *, last={}):
    seen.append(value)
    last["value"] = value
    remember.calls = getattr(remember, "calls", 0) + 1
    return [len(seen), len(last), remember.calls]
def f(d):
    return [step(), *remember(d["v"])]
""",
    "functions as data": """
import functools
operations = {"+": lambda a: a + 1, "-": lambda a: a - 1, "*": functools.partial(pow, 2)}
chosen, built, bound, kind = operations["+"], len, None, int
class Doubler:
    def __init__(self, by): self.by = by
    def go(self, a): return a * self.by
    def __call__(self, a): return -a * self.by
doubler = Doubler(3)
def f(d):
    global chosen, built, bound, kind
    found = chosen(d["id"]), built([1]), bound(4) if bound else None, doubler(d["id"]), kind("3")
    chosen = operations["+-*"[d["id"] % 3]]
    built = [len, sum, max][d["id"] % 3]
    bound, doubler.by, kind = doubler.go, d["id"], [int, float, str][d["id"] % 3]
    return list(found)
""",
    "sets": """
seen, frozen = {"b", "a"}, frozenset()
def f(d):
    global frozen
    seen.add(str(d["v"]))
    if d["id"] == 3:
        seen.discard("b")
    frozen = frozenset({n for n in seen if n > "a"})
    return [list(seen), "a" in seen, list(frozen | {"z"}), len(seen & {"a", "b"}),
            isinstance(seen, set), list(seen - {"a"}), seen == set(list(seen)), {frozen: 1}[frozen]]
""",
    "times and numbers": """
import datetime, decimal, fractions, itertools, random, re, time, uuid
from datetime import timedelta
started, last, day = time.time(), None, datetime.date.today()
total, part, ids = decimal.Decimal("0.1"), fractions.Fraction(1, 3), itertools.count(5)
own, pattern, zone, known = random.Random(7), re.compile("a+"), datetime.timezone.utc, None
def f(d):
    global last, total, part, known, day
    now = datetime.datetime.now(zone)
    gap = (now - last) if last else timedelta(0)
    last, total, part = now, total + decimal.Decimal("0.1"), part * 2
    old, known = known, uuid.uuid4()
    day = max(day, now.date())
    return [str(gap), str(total), str(part), next(ids), own.random(), str(old), started,
            random.random(), pattern.sub("b", "caab"), str(day),
            isinstance(last, datetime.datetime)]
""",
    "factories": """
import collections
class Box:
    def __init__(self): self.n = 0
boxes = collections.defaultdict(Box)
lists = collections.defaultdict(lambda: [0])
sets = collections.defaultdict(set)
order, counts = collections.OrderedDict(), collections.Counter()
def f(d):
    boxes[d["id"] % 2].n += 1
    lists[d["id"] % 2].append(d["id"])
    sets[0].add(d["id"])
    order[d["id"]] = 1
    order.move_to_end(1)
    counts[str(d["v"])] += 1
    return [boxes[0].n, boxes[1].n, lists[1], list(sets[0]), list(order), counts.most_common(1)]
""",
    "constants": """
import datetime, enum
class Kind(enum.Enum):
    FEW = frozenset({1, 2})
seen, FIRST = {}, ("new", (0, b"x"))
def f(d):
    each = [("old", (1.5, b"y")), datetime.datetime.min, Kind.FEW.value, Kind.FEW]
    seen[d["id"]] = FIRST if d["v"] == "a" else each
    seen[-d["id"]] = [("made", d["id"]), datetime.datetime.now(datetime.timezone.utc)]
    return [list(seen)]
""",
    "a class with a function that becomes a number": """
class Box:
    seen, limit = {}, max
def f(d):
    Box.seen[d["id"]] = 1
    if d["id"] == 3:
        Box.limit = 5
    return [len(Box.seen)]
""",
    "a name for one function, then for another": """
count = 0
def idle(d):
    global state
    state = busy
    return 0
def busy(d):
    global count
    count += 1
    return count
state = idle
def f(d):
    return [state(d)]
""",
    "numpy": """
import numpy as np
from numpy.random import default_rng
window, total = np.zeros(3), np.float64(0)
def f(d):
    global window, total
    window = np.roll(window, 1)
    window[0] = d["id"]
    total += window.mean()
    return [window.tolist(), float(total), float(default_rng().random()), float(np.random.rand())]
""",
}


def script(code: str) -> PythonScript:
    code += "\nimport json\ndef run(d, c):\n    return {'x': json.dumps(f(d), default=str)}\n"
    check_python(code, "run")
    return PythonScript(code, "run", "q/w", [Input("in", ["id", "v"])], ["x"])


def calls() -> list[Call]:
    values: list[object] = ["a", 2.5, None, 2**62, "a"]
    return [
        Call((number + 1, value), "insert", "N", 0, 1_700_000_000_000 + 1_234 * number, number)
        for number, value in enumerate(values)
    ]


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_is_remembered_survives_every_cut(name: str) -> None:
    """After each event a new process takes over; a third script got all events in one block.

    The variables are written alike, whether they were put back before or not: replicas compare
    digests of them.
    """
    straight, cutting, block = (script(SCRIPTS[name]) for _ in range(3))
    expected = []
    for call in calls():
        answer = straight.call(call)
        expected.append(answer)
        assert cutting.call(call) == answer
        written = dumps(cutting.state())
        assert written == dumps(straight.state())
        state = loads(written)
        cutting.close()
        cutting = script(SCRIPTS[name])
        cutting.restore(state)
        assert cutting.state() == state
    assert len({str(answer) for answer in expected}) > 1
    assert block.call_block(calls()) == expected
    assert block.state() == straight.state()
    for each in (straight, cutting, block):
        each.close()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("kept = (lambda: 1)", "variable kept holds a function"),
        ("kept = [iter([1])]", "variable kept holds a list_iterator"),
        ("class Local: pass\n    kept = Local()", "variable kept holds a Local"),
        ("kept = []\n    for _ in range(300): kept = [kept]", "nested deeper than 200"),
    ],
)
def test_what_is_made_at_run_time_cannot_be_kept(line: str, reason: str) -> None:
    loaded = script(f"kept = None\ndef f(d):\n    global kept\n    {line}\n    return 1\n")
    loaded.call(calls()[0])
    with pytest.raises(ScriptError, match=reason):
        loaded.state()


def test_constants_that_share_their_parts_are_looked_at_once() -> None:
    """Each of sixty holds the one before twice."""
    loaded = script(
        "shared = ()\nfor _ in range(60): shared = (shared, shared)\ndef f(d): return 1"
    )
    loaded.call(calls()[0])
    state = loaded.state()
    loaded.restore(loads(dumps(state)))
    loaded.call(calls()[1])
    loaded.close()


def test_writing_variables_and_putting_them_back_may_take_longer_than_a_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A call leaves behind whatever fits in memory; there may be much of it."""
    armed: list[float] = []
    monkeypatch.setattr(signal, "setitimer", lambda which, seconds: armed.append(seconds))
    server = _Server([])
    for what in ("calls", "state", "restore"):
        server.answer(json.dumps([what, None]))
    assert armed[::2] == [SECONDS, KEEP_SECONDS["state"], KEEP_SECONDS["restore"]]
