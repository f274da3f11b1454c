"""Events a second of each window type, on the kernel alone, side by side in one run.

Each model is a source without an index and the window behind it. Its events are inserts of new
keys, then upserts of 1,000 keys in turn. A rate is that of the best of several rounds, by the
processor time of this process, so that a machine that does something else beside spoils it less;
only where a script runs in a process of its own it is by the wall clock. What Spark adds to a batch
is in test_batch.py.
"""

import os
import time
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

import pytest
from lxml import etree
from rich.console import Console
from rich.table import Table

from espha.kernel import Kernel
from espha.model.events import Event
from espha.reader import read_project
from espha.windows.types import WINDOWS
from support.every import example
from support.models import source, xml

SCHEMA = "id*:int64,k:int64,x:int64,y:double,s:string"
ROUND = 1_000
"""Events a round, and how many keys upserts have."""
SECONDS = 0.4
"""How long rounds are repeated."""
OUT_SCHEMA = "<schema-string>id*:int64,n:int64,d:double</schema-string>"
EDGE = '<edge source="in" target="out"/>'


class Case(NamedTuple):
    """One window to measure.

    Attributes:
        type: the word after `window-`.
        body: what is in its element.
        attributes: of the element.
        keeping: its index; rows are kept unless it is pi_EMPTY.
        note: what it does, for the table.
        before: events for a source `side`, which are there first.
        edges: in place of the one from `in`.
        upserts: whether upserts say anything about it.
        shared: what it needs at the level of the project.
    """

    type: str
    body: str = ""
    attributes: str = ""
    keeping: str = "pi_EMPTY"
    note: str = ""
    before: tuple[Event, ...] = ()
    edges: str = EDGE
    upserts: bool = True
    shared: str = ""


def _code(text: str) -> str:
    return f"<code><![CDATA[{text}]]></code>"


def _pattern(attributes: str, same_key: str) -> str:
    return (
        "<schema-string>nr*:int64,a:int64,b:int64</schema-string>"
        f"<patterns><pattern name='p' {attributes}>"
        f"<events><event name='a' source='in'>x == 0{same_key}</event>"
        f"<event name='b' source='in'>x == 1{same_key}</event></events>"
        "<logic>fby{1 second}(a,b)</logic><output><field-selection node='a' name='id'/>"
        "<field-selection node='b' name='id'/></output></pattern></patterns>"
    )


def _calculate(algorithm: str, parameters: str, output: str) -> str:
    def properties(tag: str, name: str, value: str) -> str:
        listed = f'<properties><property name="{name}">{value}</property></properties>'
        return f"<{tag}>{listed}</{tag}>"

    return (
        "<schema-string>id*:int64,d:double</schema-string>"
        + properties("parameters", *parameters.split("="))
        + properties("input-map", "input", "y")
        + properties("output-map", output, "d")
    )


_SIDE = '<edge source="in" target="out" role="{}"/><edge source="side" target="out" role="{}"/>'

COPY = Case("copy", keeping="pi_HASH", note="keeps rows")
CASES = [
    COPY,
    Case("source", keeping="pi_HASH", note="keeps rows", edges=""),
    Case("filter", "<expression>x % 2 == 0 and y &gt; 1.5</expression>", note="two comparisons"),
    Case(
        "compute",
        OUT_SCHEMA + "<output><field-expr>x * 2</field-expr>"
        "<field-expr>y * 1.5 + x</field-expr></output>",
        note="two expressions",
    ),
    Case("union", keeping="pi_HASH", note="keeps rows"),
    Case(
        "aggregate",
        "<schema-string>k*:int64,total:double,n:int64</schema-string><output>"
        "<field-expr>ESP_aSum(y)</field-expr><field-expr>ESP_aCount(x)</field-expr></output>",
        keeping="pi_HASH",
        note="sum and count, 100 groups",
    ),
    Case(
        "join",
        '<join type="leftouter" no-regenerates="true"><conditions><fields left="k" right="id"/>'
        '</conditions></join><output><field-selection name="id" source="l_id"/>'
        '<field-selection name="y" source="l_y"/><field-selection name="s" source="r_s"/></output>',
        keeping="pi_HASH",
        note="leftouter, keeps rows",
        before=tuple(Event("I", "N", (key, 0, 0, 0.0, "t")) for key in range(100)),
        edges=_SIDE.format("left", "right"),
    ),
    Case(
        "functional",
        OUT_SCHEMA + "<function-context><functions><function name='n'>sum($x,1)</function>"
        "<function name='d'>product($y,2)</function></functions></function-context>",
        note="two functions",
    ),
    Case("pattern", _pattern("", " and k == key"), note="fby, 1 second", upserts=False),
    Case("pattern", _pattern("index='k'", ""), note="fby, 1 second, index fields", upserts=False),
    Case("counter", attributes='count-interval="1 second"', note="a report a second"),
    Case("remove-state", attributes='add-log-fields="true"', note="numbers events"),
    Case(
        "transpose",
        attributes='mode="wide" tag-name="s" tag-values="y" tags-included="a,b" group-by="k"',
        note="wide, two tags",
    ),
    Case(
        "calculate", _calculate("Summary", "windowLength=100", "meanOut"), 'algorithm="Summary"',
        note="Summary, mean of 100",
    ),
    Case(
        "geofence",
        '<geofence/><geometry data-fieldname="s" x-fieldname="x" y-fieldname="y" '
        'radius-fieldname="y" radius="7"/><position x-fieldname="x" y-fieldname="y"/>'
        '<output geoid-fieldname="geo"/>',
        note="50 circles",
        before=tuple(
            Event("I", "N", (key, 0, 10 * key, float(key), None)) for key in range(1, 51)
        ),
        edges=_SIDE.format("position", "geometry"),
    ),
    Case(
        "lua",
        OUT_SCHEMA + "<copy>id</copy>" + _code("function create(data) return {n = data.x} end"),
        note="in this process",
    ),
    Case(
        "python",
        OUT_SCHEMA + "<copy>id</copy>" + _code("def create(data, _):\n    return {'n': data['x']}"),
        note="a process of its own",
    ),
    Case(
        "procedural",
        OUT_SCHEMA + '<mas-map><window-map module="m" function="f" source="in"/></mas-map>',
        note="a process of its own",
        shared='<mas-modules><mas-module language="python" module="m">'
        + _code("def f(x):\n    'Output: n'\n    return x") + "</mas-module></mas-modules>",
    ),
    Case(
        "notification",
        "<delivery-channels><log throttle-interval='1 hour'><deliver>gt($x,1)</deliver><log-info>"
        "<subject>row ${id}</subject></log-info></log></delivery-channels>",
        note="throttled log channel",
    ),
]  # fmt: skip

CHAIN = (
    source(SCHEMA)
    + '<window-filter name="f"><expression>x % 10 != 0</expression></window-filter>'
    + f'<window-compute name="c">{OUT_SCHEMA}<output><field-expr>x * 2</field-expr>'
    "<field-expr>y * 1.5 + x</field-expr></output></window-compute>"
    + '<window-calculate name="out" algorithm="Summary">'
    "<schema-string>id*:int64,n:int64,mean:double,std:double,low:double,high:double</schema-string>"
    '<parameters><properties><property name="windowLength">100</property></properties></parameters>'
    '<input-map><properties><property name="input">d</property></properties></input-map>'
    "<output-map><properties>"
    + "".join(
        f'<property name="{name}">{field}</property>'
        for name, field in {
            "nOut": "n", "meanOut": "mean", "stdOut": "std", "minOut": "low", "maxOut": "high"
        }.items()
    )
    + "</properties></output-map></window-calculate>"
)  # fmt: skip
CHAIN_EDGES = (
    '<edge source="in" target="f"/><edge source="f" target="c"/><edge source="c" target="out"/>'
)


def kernel_of(case: Case) -> Kernel:
    """Return the model of a case, ready for events."""
    if case.type == "source":
        return Kernel(read_project(xml(source(SCHEMA), index=case.keeping)), {"q/in"})
    window = f'<window-{case.type} name="out" index="{case.keeping}" {case.attributes}>'
    windows = source(SCHEMA) + window + f"{case.body}</window-{case.type}>"
    if case.before:
        windows += source(SCHEMA, name="side")
    made = Kernel(read_project(xml(windows, case.edges, before=case.shared)), {"q/out"})
    for event in case.before:
        made.publish("q/side", event, 0)
    return made


def inserts() -> Iterator[Event]:
    """Events with new keys, for ever."""
    for key in count():
        yield Event("I", "N", (key, key % 100, key % 7, key % 13 / 4, "ab"[key % 2]))


def upserts() -> Iterator[Event]:
    """Events of so many keys in turn, for ever."""
    for number, event in enumerate(inserts()):
        yield event._replace(opcode="P", values=(number % ROUND, *event.values[1:]))


def rate(
    made: Kernel, events: Iterator[Event], *, wall: bool = False, block: bool = False
) -> float:
    """Events a second in the best round.

    The model's clock passes a millisecond an event, or a round where this is one block.
    """
    seconds = time.perf_counter if wall else time.process_time
    best, clock = float("inf"), count()
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        batch = [(event, next(clock)) for event in islice(events, ROUND)]
        publish: Callable[..., object] = made.publish
        pairs = [("q/in", event) for event, _ in batch]
        started = seconds()
        if block:
            handled = made.publish_block(pairs, batch[-1][1])
        else:
            for event, now in batch:
                publish("q/in", event, now)
        best = min(best, seconds() - started)
        assert not made.take_refusals()
        assert not block or not any(each.bad or each.refused for each in handled)
    return ROUND / best


def cases() -> list[Case]:
    """Return all cases: a window type without one of its own is measured by its example."""
    measured = {case.type for case in CASES}
    return CASES + [case_of_example(name) for name in WINDOWS if name not in measured]


def case_of_example(name: str) -> Case:
    """Return the first window of the example of a type, fed by `in` in place of `ev`."""
    window = example(name).findall(f"windows/window-{name}")[0]
    attributes = {str(key): str(value) for key, value in window.attrib.items()}
    return Case(
        name,
        "".join(etree.tostring(part, encoding="unicode") for part in window),
        " ".join(
            f"{key}={quoteattr(value)}"
            for key, value in attributes.items()
            if key not in {"name", "index"}
        ),
        window.get("index", "pi_HASH"),
        "its example",
    )


def test_windows(capsys: pytest.CaptureFixture[str]) -> None:
    """One table of all window types, and the chain of four."""
    base = rate(kernel_of(COPY), inserts())
    load = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    columns = ("window", "what", "inserts/s", "upserts/s", "time of a copy's insert")
    table = Table(*columns, title=f"kernel alone, one core, {load}")
    outside = {"python", "procedural"}
    measured = [(case, False) for case in cases()]
    measured += [(case, True) for case, _ in measured if case.type in outside]
    for case, block in measured:
        wall = case.type in outside
        first = rate(kernel_of(case), inserts(), wall=wall, block=block)
        second = "-"
        if case.upserts:
            second = f"{rate(kernel_of(case), upserts(), wall=wall, block=block):,.0f}"
        note = f"{case.note}, in blocks" if block else case.note
        table.add_row(case.type, note, f"{first:,.0f}", second, f"{base / first:.1f}")
    chain = rate(Kernel(read_project(xml(CHAIN, CHAIN_EDGES)), {"q/out"}), inserts())
    names = "source, filter, compute, Summary"
    table.add_row(names, "chain", f"{chain:,.0f}", "", f"{base / chain:.1f}")
    with capsys.disabled():
        Console().print(table)
