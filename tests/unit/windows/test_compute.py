"""Computes: expressions with statements, kept variables, opcodes, refusals."""

import pytest

from espha.kernel import Kernel
from espha.model.digest import model_digest
from espha.model.events import Event
from espha.model.problems import ModelError
from espha.reader import read_project
from support.models import SUB, behind, source, xml

SCHEMA = "id*:int64,x:int64,s:string"
EDGE = '<edge source="in" target="out"/>'
COUNTED = (
    "<expr-initialize><initializer type='int32'>integer n = 0</initializer></expr-initialize>"
    "<schema-string>n:int32,id*:int64,twice:string</schema-string>"
    "<output><field-expr>n = n + 1</field-expr>"
    "<field-expr>private integer seen = 0; seen = seen + 2; if x &lt; 0 then while 1 seen = 0;"
    " seen &amp; '/' &amp; n</field-expr></output>"
)


def window(inside: str, index: str = "pi_EMPTY") -> str:
    return f'<window-compute name="out" index="{index}">{inside}{SUB}</window-compute>'


def computed(kernel: Kernel, *events: Event) -> list[Event]:
    return [out for event in events for _, out in kernel.publish("q/in", event, 0)]


def insert(number: int, x: int | None = 0) -> Event:
    return Event("I", "N", (number, x, "a"))


def test_expressions_share_variables_in_the_order_of_the_fields() -> None:
    kernel = Kernel(behind(SCHEMA, window(COUNTED)))
    rows = [event.values for event in computed(kernel, insert(7), insert(8))]
    assert rows == [(1, 7, "2/1"), (2, 8, "4/2")]


def test_the_key_may_have_more_fields_than_that_of_the_input() -> None:
    body = "<schema-string>s*:string,id*:int64,n:int64</schema-string>"
    body += "<output><field-expr>x + 1</field-expr></output>"
    kernel = Kernel(behind(SCHEMA, window(body)))
    assert computed(kernel, insert(1, 4)) == [Event("I", "N", ("a", 1, 5))]


def test_a_refused_event_leaves_all_variables_as_they_were() -> None:
    kernel = Kernel(behind(SCHEMA, window(COUNTED)))
    assert computed(kernel, insert(1, -1)) == []
    assert [path for path, _ in kernel.take_refusals()] == ["q/out"]
    assert computed(kernel, insert(2))[0].values == (1, 2, "2/1")


def test_variables_are_part_of_the_state() -> None:
    project = behind(SCHEMA, window(COUNTED))
    kernel, other = Kernel(project), Kernel(project)
    computed(kernel, insert(1))
    other.restore(kernel.state())
    assert computed(other, insert(2)) == computed(kernel, insert(2))


def test_a_stateful_compute_computes_new_rows_only() -> None:
    kernel = Kernel(behind(SCHEMA, window(COUNTED, "pi_HASH"), index="pi_HASH"))
    update, delete = Event("U", "N", (1, 3, "b")), Event("D", "N", (1, None, None))
    assert computed(kernel, insert(1), update, delete, insert(1)) == [
        Event("I", "N", (1, 1, "2/1")),
        Event("U", "N", (2, 1, "4/2")),
        Event("D", "N", (1, 1, "2/1")),
        Event("D", "N", (2, 1, "4/2")),
        Event("I", "N", (3, 1, "6/3")),
    ]


def test_a_stateless_compute_computes_both_rows_of_an_update() -> None:
    kernel = Kernel(behind(SCHEMA, window(COUNTED), index="pi_HASH"))
    update = Event("U", "N", (1, 3, "b"))
    assert [event.values[0] for event in computed(kernel, insert(1), update)] == [1, 2, 3]


def test_values_become_what_their_fields_are() -> None:
    inside = (
        "<schema-string>id*:int64,i:int32,d:double,s:string,t:date,z:stamp,w:int32</schema-string>"
        "<output><field-expr>2.9</field-expr><field-expr>x</field-expr><field-expr>x</field-expr>"
        "<field-expr>'2024-02-29'</field-expr><field-expr>todate('2024-02-29')</field-expr>"
        "<field-expr>3000000000</field-expr></output>"
    )
    kernel = Kernel(behind(SCHEMA, window(inside)))
    (event,) = computed(kernel, insert(1, 5))
    assert event.values == (1, 2, 5.0, "5", 1_709_164_800, 1_709_164_800_000_000, None)
    assert [type(value) for value in event.values[1:4]] == [int, float, str]


def test_the_digest_knows_initializers_but_no_layout() -> None:
    def digest(text: str) -> str:
        return model_digest(read_project(xml(source(SCHEMA) + window(text), EDGE)))

    assert digest(COUNTED) == digest(COUNTED.replace("integer n = 0", "INTEGER N=0 // start"))
    assert digest(COUNTED) != digest(COUNTED.replace("n = 0", "n = 1"))


@pytest.mark.parametrize(
    ("inside", "reason"),
    [
        ("<context-plugin name='p' function='f'/>", '<context-plugin name="p">: C++, DS2 and MAS'),
        (
            "<schema-string>id*:int64,y:int32</schema-string>"
            "<output><field-plug name='p'/></output>",
            '<field-plug name="p">: C++, DS2 and MAS code is not run',
        ),
        (
            "<schema-string>id*:int64,y:int32</schema-string>"
            "<output><field-expr>1;\n  q</field-expr></output>",
            "field 'y': line 2, column 3: there is no field 'q'",
        ),
        (
            "<schema-string>id*:int64,y:int32</schema-string>"
            "<output><field-expr>integer q</field-expr></output>",
            "field 'y': line 1, column 9: the expression gives no value",
        ),
        (
            "<schema-string>id*:int64,y:int32</schema-string><output>"
            f"<field-expr>{'s &amp; ' * 9000}s</field-expr></output>",
            "longer than 30000 characters",
        ),
    ],
)
def test_refused(inside: str, reason: str) -> None:
    with pytest.raises(ModelError) as caught:
        read_project(xml(source(SCHEMA) + window(inside), EDGE))
    assert reason in str(caught.value)
