"""Retention in windows of every type that has an index of its own: the third row pushes one out."""

import pytest

from espha.kernel import Kernel
from espha.reader import read_project
from support.models import SUB, source, xml
from support.tables import put

SCHEMA = "id*:int64,k:int64,x:double,s:string"
COUNT = '<retention type="bycount_sliding">2</retention>'
TIME = '<retention type="bytime_sliding">10 seconds</retention>'
OUT_SCHEMA = "<schema-string>id*:int64,n:int64</schema-string>"
CODE = "<code><![CDATA[{}]]></code>"

BODIES = {
    "filter": "<expression>x != 0</expression>",
    "compute": f"{OUT_SCHEMA}<output><field-expr>k</field-expr></output>",
    "copy": "",
    "union": "",
    "functional": f"{OUT_SCHEMA}<function-context><functions><function name='n'>$k</function>"
    "</functions></function-context>",
    "calculate": f"{OUT_SCHEMA}"
    "<parameters><properties><property name='windowLength'>2</property></properties></parameters>"
    "<input-map><properties><property name='input'>x</property></properties></input-map>"
    "<output-map><properties><property name='nOut'>n</property></properties></output-map>",
    "lua": OUT_SCHEMA + "<copy>id</copy>" + CODE.format("function create(d) return {n = d.k} end"),
    "python": OUT_SCHEMA
    + "<copy>id</copy>"
    + CODE.format("def create(d, c): return {'n': d['k']}"),
    "transpose": "",
    "remove-state": "",
    "pattern": "<schema-string>nr*:int64,id:int64</schema-string><patterns><pattern name='p'>"
    "<events><event name='e' source='in'>x != 0</event></events><logic>e</logic>"
    "<output><field-selection node='e' name='id'/></output></pattern></patterns>",
}
ATTRIBUTES = {
    "calculate": 'algorithm="Summary"',
    "transpose": 'mode="wide" tag-name="s" tag-values="x" tags-included="a" group-by="k"',
}


def kernel(type_: str, retention: str) -> Kernel:
    attributes = f'index="pi_HASH" {ATTRIBUTES.get(type_, "")}'
    window = f"{BODIES[type_]}{retention}{SUB}"
    window = f'<window-{type_} name="out" {attributes}>{window}</window-{type_}>'
    edge = '<edge source="in" target="out"/>'
    return Kernel(read_project(xml(source(SCHEMA) + window, edge)))


def row(number: int) -> str:
    return f"I {number},{number},1.5,a"


@pytest.mark.parametrize("type_", BODIES)
def test_the_oldest_row_leaves_when_there_are_too_many(type_: str) -> None:
    window = kernel(type_, COUNT)
    first = put(window, row(5))
    put(window, row(6))
    third = put(window, row(7))
    assert third.endswith("; D/R " + first.removeprefix("I "))
    assert first.startswith("I ")
    assert third.count(";") == 1


@pytest.mark.parametrize("type_", BODIES)
def test_a_row_leaves_when_it_is_too_old_also_after_a_restore(type_: str) -> None:
    window = kernel(type_, TIME)
    first = put(window, row(5), clock=1_000)
    put(window, row(6), clock=2_000)
    restored = kernel(type_, TIME)
    restored.restore(window.state())
    assert restored.due() == 11_000
    leaving = [event for _, event in restored.advance(11_000)]
    assert [(event.opcode, event.flags) for event in leaving] == [("D", "R")]
    assert str(leaving[0].values[0]) == first.removeprefix("I ").split(",")[0]
    assert restored.due() == 12_000


def test_a_source_lets_go_of_rows_and_their_keys_can_come_again() -> None:
    windows = (
        source(SCHEMA, 'index="pi_HASH"', body=COUNT)
        + f'<window-copy name="out">{SUB}</window-copy>'
    )
    window = Kernel(read_project(xml(windows, '<edge source="in" target="out"/>')))
    put(window, row(1))
    put(window, row(2))
    assert put(window, row(3)) == "I 3,3,1.5,a; D/R 1,1,1.5,a"
    assert put(window, row(1)) == "I 1,1,1.5,a; D/R 2,2,1.5,a"


def test_an_update_that_enters_a_filter_again_is_an_insert() -> None:
    """The filter's own rows count: what retention has taken is not there any more."""
    window = kernel("filter", COUNT)
    for number in (1, 2, 3):
        put(window, row(number))
    assert put(window, "U 1,1,2.5,b") == "I 1,1,2.5,b; D/R 2,2,1.5,a"
    assert put(window, "U 2,2,0,b") == ""
