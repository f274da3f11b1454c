"""Splitters: which edges an event goes along."""

import pytest

from espha.kernel import Kernel
from espha.model import ModelError
from espha.reader import read_project
from support.models import SUB, source, xml
from unit.windows.test_semantics import event, text

COPY = '<window-copy name="{name}" index="pi_HASH">{sub}</window-copy>'


def model(splitter: str, edges: str = "", attributes: str = 'index="pi_HASH"') -> str:
    body = f"<splitter-expr>{splitter}</splitter-expr>"
    copies = "".join(COPY.format(name=name, sub=SUB) for name in ("zero", "one", "all"))
    edges = edges or (
        '<edge source="in" target="zero" slot="0"/><edge source="in" target="one" slot="1"/>'
        '<edge source="in" target="all"/>'
    )
    return xml(source("id*:int64,x:int64", attributes, body=body) + copies, edges)


def run(kernel: Kernel, given: str, clock: int = 0) -> str:
    found = kernel.publish("q/in", event(given), clock)
    return "; ".join(f"{path[2:]}: {text(each)}" for path, each in found)


def test_an_event_goes_along_the_edges_of_its_slot_and_those_without() -> None:
    kernel = Kernel(read_project(model("<expr-initialize/><expression>x % 2</expression>")))
    assert run(kernel, "I 1,4") == "zero: I 1,4; all: I 1,4"
    assert run(kernel, "I 2,5") == "one: I 2,5; all: I 2,5"
    assert run(kernel, "I 3,-") == "all: I 3,-"
    assert run(kernel, "I 4,-1") == "zero: I 4,-1; one: I 4,-1; all: I 4,-1"


def test_a_row_moves_from_slot_to_slot() -> None:
    kernel = Kernel(read_project(model("<expression>x % 2</expression>")))
    run(kernel, "I 1,4")
    assert run(kernel, "U 1,6") == ("zero: U 1,6; zero: D 1,4; all: U 1,6; all: D 1,4")
    assert run(kernel, "U 1,7") == "zero: D 1,6; one: I 1,7; all: U 1,7; all: D 1,6"
    assert run(kernel, "U 1,-") == "one: D 1,7; all: U 1,-; all: D 1,7"
    assert run(kernel, "U 1,-1") == ("zero: I 1,-1; one: I 1,-1; all: U 1,-1; all: D 1,-")
    assert run(kernel, "U 1,3") == (
        "zero: D 1,-1; one: U 1,3; one: D 1,-1; all: U 1,3; all: D 1,-1"
    )
    assert run(kernel, "D 1,-") == "one: D 1,3; all: D 1,3"


def test_several_slots_can_lead_to_one_window() -> None:
    edges = '<edge source="in" target="one" slot="1"/><edge source="in" target="one" slot="3"/>'
    edges += '<edge source="in" target="zero all" slot="-1"/>'
    text = model("<expression>x</expression>", edges).replace(COPY.format(name="one", sub=SUB), "")
    text = text.replace(
        "<window-copy", f'<window-union name="one">{SUB}</window-union><window-copy', 1
    )
    kernel = Kernel(read_project(text.replace('name="one"', 'name="one" index="pi_EMPTY"')))
    assert run(kernel, "I 1,3").startswith("one: I 1,3")
    assert "one" not in run(kernel, "I 2,2")
    assert "all: I 3,1" in run(kernel, "I 3,1")


TURNS = """<expr-initialize><initializer type="int32"><![CDATA[integer turn
turn = 1]]></initializer></expr-initialize>
<expression><![CDATA[turn = turn + 1
return turn % 2]]></expression>"""


def test_variables_of_a_splitter_are_kept() -> None:
    def made() -> Kernel:
        return Kernel(read_project(model(TURNS, attributes='index="pi_EMPTY"')))

    straight, cutting = made(), made()
    for step in ["I 1,0", "I 2,0", "I 3,0", "I 4,0"]:
        state = cutting.state()
        cutting = made()
        cutting.restore(state)
        assert run(cutting, step) == run(straight, step)
    assert run(straight, "I 5,0").startswith("zero")
    assert run(straight, "I 6,0").startswith("one")


@pytest.mark.parametrize(
    ("splitter", "reason"),
    [
        ("", "needs an <expression> that gives the number"),
        ("<expression>y</expression>", "y"),
        ("<expression>'a'</expression>", "a slot is a number, the expression gives a string"),
        ("<expression>1</expression><expression>2</expression>", "occurs twice"),
        ("<expression>1</expression><code/>", "not supported in <splitter-expr>"),
    ],
)
def test_bad_splitters_are_refused(splitter: str, reason: str) -> None:
    with pytest.raises(ModelError) as caught:
        read_project(model(splitter))
    assert reason in str(caught.value)
    assert all(problem.line > 1 for problem in caught.value.problems)


def test_plug_ins_are_refused() -> None:
    with pytest.raises(ModelError, match=r"C\+\+ plug-ins are not run"):
        read_project(xml(source("id*:int64", body='<splitter-plug name="a" function="b"/>')))


SCRIPTS = {
    "lua": "n = 0 function slot(d) n = n + 1 if d.x then return d.x % 2 + n * 0 end end",
    "python": "def slot(d, c):\n    return None if d['x'] is None else d['x'] % 2",
}


@pytest.mark.parametrize("language", ["lua", "python"])
def test_a_script_can_say_the_slot(language: str) -> None:
    script = (
        f"<splitter-{language}><use>x</use><code>{SCRIPTS[language]}</code></splitter-{language}>"
    )
    plain = model("<expression>x % 2</expression>")
    text = plain.replace("<splitter-expr><expression>x % 2</expression></splitter-expr>", script)
    kernel, other = Kernel(read_project(text)), Kernel(read_project(plain))
    for given in ("I 1,4", "U 1,7", "I 2,-", "U 2,3", "D 1,-"):
        assert run(kernel, given) == run(other, given)
        again = Kernel(read_project(text))
        again.restore(kernel.state())
        kernel = again


def test_a_script_that_says_no_slot_refuses_the_event() -> None:
    script = "<splitter-lua func='f'><code>function f(d) return 'two' end</code></splitter-lua>"
    plain = model("<expression>1</expression>")
    text = plain.replace("<splitter-expr><expression>1</expression></splitter-expr>", script)
    kernel = Kernel(read_project(text))
    assert run(kernel, "I 1,4") == ""
    assert "must return a number" in kernel.take_refusals()[0][1]
    with pytest.raises(ModelError, match="no function 'f'"):
        read_project(text.replace("function f", "function g"))
