"""Functional windows: which events leave, field by field."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espha.kernel import Kernel
from espha.model import ModelError
from espha.model.events import Event
from espha.reader import read_project
from espha.recovery.plain import dumps, loads
from support.models import source, xml

SECOND = 1_700_000_000
"""2023-11-14 22:13:20 UTC, a Tuesday."""


def window(schema: str, body: str, attributes: str = "") -> str:
    return (
        f'<window-functional name="out" {attributes}><schema-string>{schema}</schema-string>'
        f"{body}</window-functional>"
    )


def context(functions: dict[str, str], before: str = "") -> str:
    body = "".join(
        f'<function name="{name}"><![CDATA[{text}]]></function>' for name, text in functions.items()
    )
    return f"<function-context>{before}<functions>{body}</functions></function-context>"


def kernel(feed: str, schema: str, body: str, attributes: str = "", index: str = "pi_EMPTY") -> Any:
    windows = source(feed) + window(schema, body, attributes)
    project = read_project(xml(windows, '<edge source="in" target="out"/>', index=index))
    return Kernel(project, published=["q/out"])


def publish(running: Kernel, opcode: str, *values: Any, clock: int = SECOND * 1000) -> list[Event]:
    return [event for _, event in running.publish("q/in", Event(opcode, "N", values), clock)]


def one(functions: dict[str, str], feed: str, values: tuple[Any, ...], schema: str) -> Any:
    """Return the values that the functions make of one event, without the key."""
    running = kernel(f"id*:int64,{feed}", f"id*:int64,{schema}", context(functions))
    (event,) = publish(running, "I", 1, *values)
    return event.values[1:]


TWO = '<edge source="in more" target="out"/>'


def two_inputs(more: str) -> Kernel:
    functions = {"from": "input()", "n": "sum($x,1)"}
    body = window("id*:int64,from:string,x:double,n:double,s:string", context(functions))
    sources = source("id*:int64,x:int32,s:string") + source(more, name="more")
    return Kernel(read_project(xml(sources + body, TWO)), published=["q/out"])


def test_several_inputs_go_by_the_names_of_their_fields() -> None:
    running = two_inputs("t:string,x:double,id*:int64")
    first = running.publish("q/in", Event("I", "N", (1, 2, "a")), 0)
    second = running.publish("q/more", Event("I", "N", ("b", 2.5, 7)), 0)
    assert [event.values for _, event in first + second] == [
        (1, "in", 2.0, 3.0, "a"),
        (7, "more", 2.5, 3.5, None),
    ]


def test_inputs_whose_types_do_not_go_together_are_refused() -> None:
    with pytest.raises(ModelError, match="field 'x' is int32 in one input and blob in another"):
        two_inputs("id*:int64,x:blob")


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [("string", "2.5", 2.5), ("int64", 9, 9.0), ("date", 60, 60.0), ("money", 1.5, 1.5)],
)
def test_a_field_of_two_inputs_can_have_two_types(type_: str, value: Any, expected: float) -> None:
    running = two_inputs(f"id*:int64,x:{type_}")
    (_, first), *_ = running.publish("q/in", Event("I", "N", (1, 2, "a")), 0)
    (_, second), *_ = running.publish("q/more", Event("I", "N", (7, value)), 0)
    assert first.values[2:4] == (2.0, 3.0)
    assert second.values[2:4] == (expected, expected + 1)


def test_a_function_sets_the_field_of_its_name() -> None:
    """Others are variables, and what no function sets comes from the input by name."""
    found = one(
        {"half": "quotient($x,2)", "y": "sum($half,1)"},
        "x:double,name:string",
        (10.0, "a"),
        "name:string,y:double,x:double",
    )
    assert found == ("a", 6.0, 10.0)


def test_an_insert_an_update_and_a_delete_keep_their_opcodes() -> None:
    running = kernel("id*:int64,x:int64", "id*:int64,y:int64", context({"y": "product($x,10)"}))
    for opcode in ("I", "U", "P", "D", "SD"):
        assert publish(running, opcode, 1, 5) == [Event(opcode, "N", (1, 50))]


def test_an_unknown_function_is_refused_with_line_and_name() -> None:
    with pytest.raises(ModelError, match=r"line 4: .*there is no function summ\(\).*sum"):
        kernel("id*:int64", "id*:int64,y:int64", context({"y": "summ(1,2)"}))


def test_a_refusal_takes_no_number() -> None:
    running = kernel(
        "id*:int64,x:string", "n*:int64,k*:string", context({"n": "eventCounter()", "k": "$x"})
    )
    assert publish(running, "I", 1, "a")[0].values == (0, "a")
    assert publish(running, "I", 2, None) == []
    assert running.take_refusals() == [("q/out", "key field k is null")]
    assert publish(running, "I", 3, "b")[0].values == (1, "b")


def test_a_field_that_nothing_sets_is_a_warning_and_stays_null() -> None:
    windows = source("id*:int64") + window("id*:int64,y:int64", context({"z": "1"}))
    project = read_project(xml(windows, '<edge source="in" target="out"/>'))
    assert "field 'y' stays null" in project.warnings[0].reason
    running = Kernel(project, published=["q/out"])
    assert publish(running, "I", 1) == [Event("I", "N", (1, None))]


def test_results_become_values_of_the_schema() -> None:
    functions = dict.fromkeys("abcd", "$x") | {"e": "'2024-02-29T00:00:00Z'", "f": "'[1;2]'"}
    schema = "a:int32,b:double,c:string,d:money,e:stamp,f:array(i32)"
    found = one(functions, "x:string", ("2.75",), schema)
    assert found == (2, 2.75, "2.75", 2.75, 1_709_164_800_000_000, (1, 2))
    assert one(functions, "x:string", ("none",), schema)[:4] == (None, None, "none", None)
    assert one({"a": "99999999999"}, "x:string", ("",), "a:int32") == (None,)


def test_a_field_can_change_its_type_on_the_way() -> None:
    assert one({"z": "1"}, "x:double", (2.5,), "x:string,z:int64") == ("2.5", 1)


def test_expressions_properties_and_functions_work_together() -> None:
    """A property can be made of what a function of the same context gives."""
    before = (
        "<expressions><expression name='pair'>\\w+=\\w+</expression></expressions><properties>"
        "<property-map name='tags' outer='|' inner='='>$clean</property-map>"
        "<property-list name='words' delimiter=' '>$x</property-list></properties>"
    )
    functions = {
        "clean": "rgxReplaceAll(' ',$x,'|')",
        "first": "rgx(#pair,$x)",
        "b": "mapValue(#tags,'b')",
        "n": "listSize(#words)",
    }
    body = context(functions, before)
    running = kernel("id*:int64,x:string", "id*:int64,first:string,b:int64,n:int32", body)
    assert publish(running, "I", 1, "a=1 b=2 c=3")[0].values == (1, "a=1", 2, 3)


def warnings(body: str) -> list[str]:
    windows = source("id*:int64") + window("id*:int64,n:int64", body)
    project = read_project(xml(windows, '<edge source="in" target="out"/>'))
    return [str(warning) for warning in project.warnings]


def test_a_property_is_null_before_what_it_needs() -> None:
    before = "<properties><property-list name='words'>$late</property-list></properties>"
    functions = {"n": "listSize(#words)", "late": "'a,b'"}
    (warning,) = warnings(context(functions, before))
    assert 'name="n">: #words is not a property or expression, so it is null' in warning


def test_a_name_that_means_nothing_is_null_with_a_warning() -> None:
    (warning,) = warnings(context({"n": "if(isNull($amuont),1,0)", "amount": "1"}))
    assert "$amuont is neither a field of the input nor a function before it, so it is" in warning
    assert one({"y": "if(isNull($z),1,0)"}, "x:int64", (5,), "y:int64") == (1,)


def test_a_word_is_a_text_and_a_function_without_parentheses_gives_a_warning() -> None:
    assert one({"y": "if(equals($x,low),high,none)"}, "x:string", ("low",), "y:string") == ("high",)
    assert one({"y": "It is on."}, "x:string", ("low",), "y:string") == ("It is on.",)
    (warning,) = warnings(context({"n": "eventNumber"}))
    assert "'eventNumber' is a text here; the function is called by eventNumber()" in warning


def test_an_empty_function_is_null() -> None:
    assert one({"x": "", "y": "sum($x,1,)"}, "x:int64", (5,), "x:int64,y:int64") == (None, 1)


def test_a_property_can_be_a_plain_text() -> None:
    before = "<properties><property-set name='ours'>GOOG,IBM</property-set></properties>"
    body = context({"y": "setContains(#ours,$x)"}, before)
    running = kernel("id*:int64,x:string", "id*:int64,y:int32", body)
    assert publish(running, "I", 1, "IBM")[0].values == (1, 1)
    assert publish(running, "I", 2, "SAS")[0].values == (2, 0)


def test_properties_that_need_each_other_are_null() -> None:
    before = (
        "<properties><property-list name='a'>#b</property-list>"
        "<property-list name='b'>#a</property-list></properties>"
    )
    assert "#b is not a property" in warnings(context({"n": "1"}, before))[0]


def test_generate_decides_whether_there_is_an_event() -> None:
    body = context({"y": "product($x,2)"}) + "<generate>gt($y,10)</generate>"
    running = kernel("id*:int64,x:int64", "id*:int64,y:int64", body)
    assert publish(running, "I", 1, 5) == []
    assert publish(running, "I", 2, 6) == [Event("I", "N", (2, 12))]
    assert publish(running, "I", 3, None) == []


JSON_LOOP = (
    "<event-loops><event-loop-json name='item'><use-json>$doc</use-json><json>items</json>"
    + context({"id": "string($id,'-',json(#item,'k'))", "v": "json($item,'v')"})
    + "</event-loop-json></event-loops><generate>0</generate>"
)


def test_a_loop_over_json_makes_an_event_of_each_element() -> None:
    running = kernel("id*:string,doc:string", "id*:string,v:double", JSON_LOOP)
    document = '{"items":[{"k":"a","v":1},{"k":"b","v":"2.5"},{"k":"c"}]}'
    assert publish(running, "I", "x", document) == [
        Event("I", "N", ("x-a", 1.0)),
        Event("I", "N", ("x-b", 2.5)),
        Event("I", "N", ("x-c", None)),
    ]
    assert publish(running, "I", "x", '{"items":[]}') == []
    assert publish(running, "I", "x", "no json") == []
    assert publish(running, "I", "x", None) == []


def test_a_loop_over_xml_sees_the_functions_of_the_window() -> None:
    loop = (
        context({"all": "xpath($doc,'count(//t)')"})
        + "<event-loops><event-loop-xml name='trade'><use-xml>$doc</use-xml><xpath>//t</xpath>"
        + context({"n": "eventCounter()", "px": "xpath(#trade,'@px')", "of": "$all"})
        + "</event-loop-xml></event-loops><generate>false()</generate>"
    )
    running = kernel("id*:int64,doc:string", "n*:int64,id:int64,px:double,of:int32", loop)
    assert [
        event.values for event in publish(running, "I", 7, "<r><t px='1.5'/><t px='2'/></r>")
    ] == [(0, 7, 1.5, 2), (1, 7, 2.0, 2)]
    assert [event.values for event in publish(running, "I", 8, "<t px='3'/>")] == [(2, 8, 3.0, 1)]


def test_the_event_itself_comes_before_those_of_its_loops() -> None:
    """Only what stands in the loop, or in the input, is a field of the loop's events."""
    loop = (
        context({"n": "eventNumber()", "a": "concat($x,'!')", "b": "$a"})
        + "<event-loops><event-loop-regex name='w'><use-text>$x</use-text><regex>[a-z]</regex>"
        + context({"n": "eventNumber()", "b": "concat($a,$w)"})
        + "</event-loop-regex></event-loops>"
    )
    running = kernel("id*:int64,x:string", "id*:int64,n*:int64,x:string,a:string,b:string", loop)
    for number in (1, 2):
        assert [event.values for event in publish(running, "I", number, "pq")] == [
            (number, 0, "pq", "pq!", "pq!"),
            (number, 1, "pq", None, "pq!p"),
            (number, 2, "pq", None, "pq!q"),
        ]


def test_an_event_without_a_key_is_left_to_the_loops() -> None:
    loop = (
        "<event-loops><event-loop-regex name='w'><use-text>$x</use-text><regex>[a-z]</regex>"
        + context({"k": "if(equals($w,z),null,$w)"})
        + "</event-loop-regex></event-loops>"
    )
    running = kernel("id*:int64,x:string", "k*:string", loop)
    assert [event.values for event in publish(running, "I", 1, "ab")] == [("a",), ("b",)]
    assert publish(running, "I", 1, "az") == []
    assert running.take_refusals() == [("q/out", "key field k is null")]


def test_a_loop_over_text_can_take_a_group() -> None:
    loop = (
        "<event-loops><event-loop-regex name='w' regex-group='2'><use-text>$x</use-text>"
        "<regex>(\\w)=(\\d)</regex>"
        + context({"k": "$w"})
        + "</event-loop-regex></event-loops><generate>0</generate>"
    )
    running = kernel("id*:int64,x:string", "k*:string", loop)
    assert [event.values for event in publish(running, "I", 1, "a=1 b=2")] == [("1",), ("2",)]


def test_loops_over_text_and_two_loops_one_after_the_other() -> None:
    loops = "<event-loops>" + "".join(
        f"<event-loop-regex name='{name}' data='word'><use-text>$x</use-text>"
        f"<regex>{regex}</regex>{context({'k': 'concat($word)', 'n': 'eventNumber()'})}"
        "</event-loop-regex>"
        for name, regex in (("words", "[a-z]+"), ("digits", "(\\d)\\d*"))
    )
    running = kernel(
        "id*:int64,x:string", "n*:int64,k:string", loops + "</event-loops><generate>0</generate>"
    )
    assert [event.values for event in publish(running, "I", 1, "ab 12 cd 34")] == [
        (0, "ab"), (1, "cd"), (2, "1"), (3, "3"),
    ]  # fmt: skip


def test_a_loop_can_look_for_an_expression() -> None:
    before = "<expressions><expression name='word'>[a-z]+</expression></expressions>"
    loop = (
        context({}, before)
        + "<event-loops><event-loop-regex name='w'><use-text>$x</use-text><regex>#word</regex>"
        + context({"k": "$w"})
        + "</event-loop-regex></event-loops><generate>0</generate>"
    )
    running = kernel("id*:int64,x:string", "k*:string", loop)
    assert [event.values for event in publish(running, "I", 1, "a b")] == [("a",), ("b",)]


def test_a_loop_with_too_many_elements_is_a_bad_record() -> None:
    running = kernel("id*:string,doc:string", "id*:string,v:double", JSON_LOOP)
    document = '{"items":[' + ",".join(["{}"] * 10_001) + "]}"
    assert publish(running, "I", "x", document) == []
    ((_, reason),) = running.take_refusals()
    assert reason == "a loop finds more than 10000 things"


def updated(body: str, schema: str, *rows: tuple[Any, ...], index: str = "pi_EMPTY") -> Any:
    """Publish versions of one row into a stateful copy in front; return what leaves for the last.

    Each event is written as (opcode, *values).
    """
    windows = source("id*:string,doc:string") + '<window-copy name="kept" index="pi_HASH"/>'
    windows += window(schema, body, f'index="{index}"')
    edges = '<edge source="in" target="kept"/><edge source="kept" target="out"/>'
    running = Kernel(read_project(xml(windows, edges)), published=["q/out"])
    events: list[Event] = []
    for opcode, *values in rows:
        events = publish(running, opcode, *values)
    assert running.take_refusals() == []
    return [(event.opcode, *event.values) for event in events]


def items(**values: int) -> str:
    parts = ",".join(f'{{"k":"{key}","v":{value}}}' for key, value in values.items())
    return f'{{"items":[{parts}]}}'


@pytest.mark.parametrize("index", ["pi_EMPTY", "pi_HASH"])
def test_an_update_changes_inserts_and_deletes_what_a_loop_has_made(index: str) -> None:
    rows = [("I", "x", items(a=1, b=2)), ("U", "x", items(b=3, c=4))]
    assert updated(JSON_LOOP, "id*:string,v:double", *rows, index=index) == [
        ("D", "x-a", 1.0),
        ("U", "x-b", 3.0),
        ("D", "x-b", 2.0),
        ("I", "x-c", 4.0),
    ]


@pytest.mark.parametrize("index", ["pi_EMPTY", "pi_HASH"])
def test_a_delete_deletes_what_a_loop_has_made(index: str) -> None:
    rows = [("I", "x", items(a=1, b=2)), ("D", "x", items())]
    assert updated(JSON_LOOP, "id*:string,v:double", *rows, index=index) == [
        ("D", "x-a", 1.0),
        ("D", "x-b", 2.0),
    ]


@pytest.mark.parametrize("index", ["pi_EMPTY", "pi_HASH"])
def test_an_update_that_changes_a_computed_key_is_a_delete_and_an_insert(index: str) -> None:
    rows = [("I", "x", "one"), ("U", "x", "two")]
    body = context({"doc": "toUpper($doc)"})
    assert updated(body, "doc*:string,id:string", *rows, index=index) == [
        ("D", "ONE", "x"),
        ("I", "TWO", "x"),
    ]


def test_an_update_into_and_out_of_what_generate_lets_through() -> None:
    body = context({"n": "stringLength($doc)"}) + "<generate>gt($n,3)</generate>"
    rows = [("I", "x", "ab"), ("U", "x", "long")]
    assert updated(body, "id*:string,n:int64", *rows) == [("I", "x", 4)]
    assert updated(body, "id*:string,n:int64", *rows, ("U", "x", "ab")) == [("D", "x", 4)]


def test_a_window_that_produces_only_inserts() -> None:
    windows = source("id*:int64,x:int64") + '<window-copy name="kept" index="pi_HASH"/>'
    windows += window(
        "n*:int64,x:int64", context({"n": "eventCounter()"}), 'produces-only-inserts="true"'
    )
    edges = '<edge source="in" target="kept"/><edge source="kept" target="out"/>'
    running = Kernel(read_project(xml(windows, edges)), published=["q/out"])
    assert publish(running, "I", 1, 5) == [Event("I", "N", (0, 5))]
    assert publish(running, "U", 1, 6) == [Event("I", "N", (1, 6))]
    assert publish(running, "D", 1, 6) == []


@pytest.mark.parametrize(
    ("word", "opcode"),
    [("upsert", "P"), ("Delete", "D"), ("i", "I"), ("SafeDelete", "SD"), (None, "U")],
)
def test_a_function_can_choose_the_opcode(word: str | None, opcode: str) -> None:
    running = kernel("id*:int64,op:string", "id*:int64", context({"__opcode": "$op"}))
    assert publish(running, "U", 1, word) == [Event(opcode, "N", (1,))]


def test_an_opcode_that_is_none_is_a_bad_record() -> None:
    running = kernel("id*:int64,op:string", "id*:int64", context({"__opcode": "$op"}))
    assert publish(running, "U", 1, "destroy") == []
    assert "the opcode is 'destroy'; use insert" in running.take_refusals()[0][1]


@pytest.mark.parametrize("text", ["upsert", "'upsert'", "if(equals($id,1),upsert,delete)"])
def test_the_opcode_can_be_an_element(text: str) -> None:
    running = kernel("id*:int64", "id*:int64", f"<opcode>{text}</opcode>")
    assert publish(running, "U", 1) == [Event("P", "N", (1,))]


@pytest.mark.parametrize(
    ("schema", "body", "reason"),
    [
        ("id*:int64", context({}, "<properties><property-set name='a'>$x,b</property-set>"
         "</properties>"), "column 3: , stands where the end should"),
        ("k*:int64", context({"x": "1"}), "key field 'k' is not in the input"),
        ("id*:int64", context({"": "1"}), "<function>: needs a name"),
        ("id*:int64", context({"a": "sum(1"}), 'line 4: <function name="a">: the end stands where'),
        ("id*:int64", "<generate>nothing()</generate>", "<generate>: there is no function"),
        ("id*:int64", "<function-context><rules/></function-context>", "<rules>: not supported"),
        ("id*:int64", context({}, "<properties><property-ini name='a'/></properties>"),
         "<property-ini name=\"a\">: not supported"),
        ("id*:int64", "<event-loops><event-loop-csv/></event-loops>", "<event-loop-csv>: not"),
        ("id*:int64", "<event-loops><event-loop-xml name='l'><xpath>/</xpath></event-loop-xml>"
         "</event-loops>", "needs a <use-xml> with the field"),
        ("id*:int64", "<event-loops><event-loop-xml name='l'><use-xml>$id</use-xml>"
         "</event-loop-xml></event-loops>", "needs a <xpath> that says"),
        ("id*:int64", "<event-loops><event-loop-xml name='l'><use-xml>$id</use-xml>"
         "<xpath>/[</xpath></event-loop-xml></event-loops>", "<xpath>: '/[' is not an XPath"),
        ("id*:int64", "<event-loops><event-loop-regex name='l'><use-text>$id</use-text>"
         "<regex>(</regex></event-loop-regex></event-loops>", "<regex>: '(' is not a regular"),
        ("id*:int64", "<event-loops><event-loop-json><use-json>$id</use-json>"
         "</event-loop-json></event-loops>", "<event-loop-json>: needs a name"),
        ("id*:int64", "<event-loops><event-loop-regex name='l' regex-group='1'><use-text>$id"
         "</use-text><regex>a</regex></event-loop-regex></event-loops>",
         "regex-group '1' is not a group of 'a'"),
    ],
)  # fmt: skip
def test_refused(schema: str, body: str, reason: str) -> None:
    with pytest.raises(ModelError) as caught:
        kernel("id*:int64", schema, body)
    assert reason in str(caught.value)


rows = st.tuples(
    st.sampled_from(["I", "U", "P", "D"]),
    st.sampled_from(["x", "y"]),
    st.one_of(
        st.none(),
        st.just("no json"),
        st.dictionaries(st.sampled_from("abc"), st.integers(0, 3), max_size=3).map(
            lambda values: items(**values)
        ),
    ),
    st.integers(0, 100_000),
)
DRAWS = {
    "n": "eventNumber()", "lot": "random(1,1000000)", "g": "guid()", "when": "timeStamp()",
    "v": "json($item,'v')",
}  # fmt: skip


@settings(max_examples=60)
@given(st.lists(rows, max_size=12), st.integers(0, 12))
def test_a_restored_window_goes_on_as_the_first_one(steps: list[Any], cut: int) -> None:
    body = JSON_LOOP.replace(
        "<functions>",
        "<functions>" + context(DRAWS).split("<functions>")[1].split("</functions>")[0],
    )
    schema = "id*:string,n:int64,lot:int64,g:string,when:string,v:double"
    whole, first, second = (kernel("id*:string,doc:string", schema, body) for _ in range(3))
    clock = 0
    for place, (opcode, *values, wait) in enumerate(steps):
        clock += wait
        if place == cut:
            second.restore(loads(dumps(first.state())))
        running = first if place < cut else second
        found = publish(running, opcode, *values, clock=clock)
        assert found == publish(whole, opcode, *values, clock=clock)
    assert (first if cut >= len(steps) else second).state() == whole.state()


def test_random_values_of_two_windows_differ() -> None:
    """Both see the same source event, so what tells them apart is their name."""
    body = context({"lot": "random(1,1000000000)"})
    windows = source("id*:int64") + window("id*:int64,lot:int64", body)
    windows += window("id*:int64,lot:int64", body).replace('name="out"', 'name="other"')
    edges = '<edge source="in" target="out other"/>'
    running = Kernel(read_project(xml(windows, edges)), published=["q/out", "q/other"])
    lots = [event.values[1] for event in publish(running, "I", 1) + publish(running, "I", 2)]
    assert len(set(lots)) == 4
