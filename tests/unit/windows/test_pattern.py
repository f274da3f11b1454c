"""Pattern windows: bindings, instances, indexes, time and outputs, event by event."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espha.kernel import Kernel
from espha.model import ModelError, model_digest
from espha.model.events import Event
from espha.reader import read_project
from espha.recovery.plain import dumps, loads
from support.models import SUB, source, xml

TRADE = "id*:int64,symbol:string,price:double,day:date"


def project(
    events: str,
    logic: str,
    output: str = '<field-selection node="e1" name="id"/>',
    *,
    schema: str = "nr*:int64,first:int64",
    pattern: str = "",
    times: str = "",
    before: str = "",
) -> Any:
    window = (
        f'<window-pattern name="out"><schema-string>{schema}</schema-string>{before}<patterns>\n'
        f'<pattern name="p" {pattern}><events>{events}</events><logic>{logic}</logic>'
        f"<output>{output}</output>{times}</pattern></patterns>{SUB}</window-pattern>"
    )
    sources = source(TRADE) + source("id*:int64,symbol:string,level:int32", name="news")
    edges = '<edge source="in news" target="out"/>'
    return read_project(xml(sources + window, edges))


def event(name: str, text: str, source_: str = "in") -> str:
    return f'<event name="{name}" source="{source_}"><![CDATA[{text}]]></event>'


class Run:
    """A kernel that takes trades and news, and returns the matches' values behind the number."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.kernel = Kernel(project(*args, **options))

    def trade(self, id_: int, price: Any = None, symbol: Any = "A", day: Any = None, *,
              clock: int = 0, opcode: str = "I") -> list[Any]:  # fmt: skip
        """Publish a trade."""
        given_ = Event(opcode, "N", (id_, symbol, price, day))
        return values(self.kernel.publish("q/in", given_, clock))

    def news(self, id_: int, symbol: Any = "A", level: Any = 1, *, clock: int = 0) -> list[Any]:
        """Publish a piece of news."""
        return values(self.kernel.publish("q/news", Event("I", "N", (id_, symbol, level)), clock))

    def advance(self, clock: int) -> list[Any]:
        """Let time pass."""
        return values(self.kernel.advance(clock))


def values(outputs: list[tuple[str, Event]]) -> list[Any]:
    assert {(event.opcode, event.flags) for _, event in outputs} <= {("I", "N")}
    return [event.values for _, event in outputs]


RISE = (
    event("e1", "(s == symbol) and (p0 == price)")
    + event("e2", "(s == symbol) and (p0 < price) and (p1 == price)")
    + event("e3", "(s == symbol) and (p1 < price)")
)
IDS = "".join(f'<field-selection node="e{n}" name="id"/>' for n in (1, 2, 3))
RISING = {"output": IDS, "schema": "nr*:int64,a:int64,b:int64,c:int64"}


def test_names_are_bound_on_first_use_and_compared_afterwards() -> None:
    run = Run(RISE, "fby(e1,e2,e3)", **RISING)
    assert run.trade(1, 10.0) == []
    assert run.trade(2, 10.0) == []  # not higher; it opens an instance of its own
    assert run.trade(3, 11.0, "B") == []  # another symbol
    assert run.trade(4, 11.0) == []
    assert run.trade(5, 10.5) == []  # higher than p0, not than p1
    assert run.trade(6, 12.0) == [(0, 1, 4, 6), (1, 2, 4, 6)]  # the older instance first
    assert run.trade(7, 13.0) == [(2, 4, 6, 7), (3, 5, 6, 7)]


def test_a_failed_expression_binds_nothing() -> None:
    run = Run(
        event("e1", "(p0 == price) and (symbol == 'A')") + event("e2", "price == p0"),
        "fby(e1,e2)",
    )
    assert run.trade(1, 5.0, "B") == []
    assert run.trade(2, 6.0) == []
    assert run.trade(3, 5.0) == []
    assert run.trade(4, 6.0) == [(0, 2)]


def test_a_name_can_be_bound_to_an_expression_from_either_side() -> None:
    run = Run(event("e1", "price * 2 + 1 == goal") + event("e2", "GOAL <= price"), "fby(e1,e2)")
    assert run.trade(1, 10.0) == []
    assert run.trade(2, 20.9) == []
    assert run.trade(3, 21.0) == [(0, 1)]


def test_null_is_never_bound() -> None:
    run = Run(event("e1", "p == price") + event("e2", "price > p"), "fby(e1,e2)")
    assert run.trade(1, None) == []
    assert run.trade(2, 1.0) == []
    assert run.trade(3, None) == []
    assert run.trade(4, 2.0) == [(0, 2)]


def test_one_name_goes_from_window_to_window() -> None:
    run = Run(
        event("e1", "s == symbol and l == level and level > 1", "news")
        + event("e2", "symbol == s and price > l"),
        "fby(e1,e2)",
        '<field-selection node="e2" name="symbol"/><field-expr node="e2">price * l</field-expr>'
        '<field-expr node="e1">"level " &amp; level</field-expr>',
        schema="s:string,nr*:int64,worth:double,about:string",
    )
    assert run.news(1, "A", 3) == []
    assert run.trade(2, 4.0, "B") == []
    assert run.trade(3, 3.0) == []
    assert run.trade(4, 4.0) == [("A", 0, 12.0, "level 3")]


def test_the_initializer_and_own_functions_can_be_used() -> None:
    before = (
        "<expr-initialize><initializer type='int32'><![CDATA[integer least least = 5]]>"
        "</initializer><udfs><udf name='twice' type='double'>return parameter(1) * 2</udf></udfs>"
        "</expr-initialize>"
    )
    run = Run(event("e1", "twice(price) > least"), "e1", before=before)
    assert run.trade(1, 2.0) == []
    assert run.trade(2, 3.0) == [(0, 2)]


def test_only_inserts_are_looked_at() -> None:
    run = Run(event("e1", "price > 0"), "e1")
    assert run.trade(1, 1.0, opcode="P") == [(0, 1)]
    for opcode in ("U", "D", "SD"):
        assert run.trade(1, 1.0, opcode=opcode) == []
    assert run.trade(2, 1.0) == [(1, 2)]


def test_the_index_keeps_instances_apart() -> None:
    events = event("e1", "price == 1") + event("e2", "level == 1", "news")
    run = Run(events, "fby(e1,is(e2))", pattern='index="symbol"')
    run.trade(1, 1.0, "A")
    run.trade(2, 1.0, "B")
    run.trade(3, 1.0, None)
    assert run.news(1, "B", 2) == []  # the next event of B is not e2
    assert run.news(2, "B", 1) == []
    assert run.news(3, "A", 1) == [(0, 1)]
    assert run.news(4, None, 1) == [(1, 3)]


FOLLOWED = event("e1", "price == 1") + event("e2", "price == 2")


def test_the_clock_ends_a_limit() -> None:
    run = Run(FOLLOWED, "fby{30 seconds}(e1,e2)")
    run.trade(1, 1.0, clock=1_000)
    assert run.kernel.due() == 31_001
    assert run.trade(2, 2.0, clock=31_000) == [(0, 1)]  # the last moment counts
    run.trade(3, 1.0, clock=40_000)
    assert run.trade(4, 2.0, clock=70_001) == []
    assert run.kernel.due() is None


def test_the_clock_completes_what_must_not_occur() -> None:
    run = Run(FOLLOWED, "fby{30 seconds}(e1,not(e2))")
    run.trade(1, 1.0, clock=1_000)
    run.trade(2, 1.0, clock=2_000)
    assert run.advance(31_000) == []
    assert run.advance(31_001) == [(0, 1)]
    run.trade(3, 2.0, clock=31_500)
    assert run.advance(99_000) == []
    run.trade(4, 1.0, clock=100_000)
    run.trade(5, 1.0, clock=100_001)
    # Matches of the time that has passed come before the event; it is too late to prevent them.
    assert run.trade(6, 2.0, clock=200_000) == [(1, 4), (2, 5)]


def test_two_patterns_end_in_the_order_of_their_limits() -> None:
    """However far the clock jumps."""

    def pattern(seconds: int) -> str:
        return (
            f"<pattern><events>{FOLLOWED}</events><logic>fby{{{seconds} seconds}}(e1,not(e2))"
            '</logic><output><field-selection node="e1" name="id"/></output></pattern>'
        )

    window = (
        '<window-pattern name="out"><schema-string>nr*:int64,first:int64</schema-string>'
        f"<patterns>{pattern(20)}{pattern(10)}</patterns>{SUB}</window-pattern>"
    )
    model = read_project(xml(source(TRADE) + window, '<edge source="in" target="out"/>'))
    by_steps, at_once = Kernel(model), Kernel(model)
    for kernel in (by_steps, at_once):
        for id_, clock in ((1, 0), (2, 15_000)):
            kernel.publish("q/in", Event("I", "N", (id_, "A", 1.0, None)), clock)
    steps_ = range(15_000, 40_000, 500)
    stepwise = [each for clock in steps_ for each in values(by_steps.advance(clock))]
    assert stepwise == values(at_once.advance(40_000)) == [(1, 1), (2, 2), (3, 2)]


def test_a_time_field_makes_data_tell_the_time() -> None:
    times = '<timefields><timefield field="day" source="in"/></timefields>'
    run = Run(FOLLOWED, "fby{30 seconds}(e1,e2)", times=times)
    run.trade(1, 1.0, day=100)
    assert run.advance(10**12) == []
    assert run.trade(2, 2.0, day=130) == [(0, 1)]
    run.trade(3, 1.0, day=140)
    assert run.trade(4, 2.0, day=171) == []
    run.trade(5, 1.0, day=None)
    assert run.kernel.take_refusals() == [("q/out", "the time field is null")]


def test_data_time_completes_what_must_not_occur() -> None:
    times = '<timefields><timefield field="day" source="in"/></timefields>'
    run = Run(FOLLOWED, "fby{30 seconds}(e1,not(e2))", times=times, pattern='index="symbol"')
    run.trade(1, 1.0, day=100)
    assert run.trade(2, 9.0, "B", day=130) == []
    assert run.trade(3, 9.0, "B", day=131) == [(0, 1)]  # time is one, whatever the index


def test_an_event_that_the_match_did_without_is_null() -> None:
    output = '<field-selection node="e1" name="id"/><field-expr node="e2">id + 1</field-expr>'
    run = Run(FOLLOWED, "or(e1,e2)", output, schema="nr*:int64,a:int64,b:int64")
    assert run.trade(1, 1.0) == [(0, 1, None)]
    assert run.trade(2, 2.0) == [(1, None, 3)]


def test_an_empty_expression_is_null() -> None:
    output = '<field-expr node="e1"></field-expr><field-selection node="e1" name="id"/>'
    run = Run(event("e1", "price > 0"), "e1", output, schema="nr*:int64,a:string,b:int64")
    assert run.trade(5, 1.0) == [(0, None, 5)]


def test_an_inactive_pattern_does_nothing() -> None:
    assert Run(FOLLOWED, "e1", pattern='active="false"').trade(1, 1.0) == []


def test_an_expression_that_does_not_end_is_not_true() -> None:
    run = Run(event("e1", "integer x x = 0 while x == 0 begin x = 0 end return 1"), "e1")
    assert run.trade(1, 1.0) == []


def test_spelling_does_not_change_the_digest() -> None:
    one = project(event("e1", "s==symbol and p0 == price"), "fby{60 seconds}(e1, is(e2))"
                  .replace(", is(e2)", ""))  # fmt: skip
    two = project(event("e1", "( S == symbol )  and (p0 ==price)"), "FBY{1 minute}( e1 )")
    assert model_digest(one) == model_digest(two)


@pytest.mark.parametrize(
    ("args", "options", "reason"),
    [
        ((event("e1", "price >"), "e1"), {}, '<event name="e1">: the expression ends too early'),
        ((event("e1", "what > 1"), "e1"), {}, "there is no field 'what'"),
        ((event("e1", "a == b"), "e1"), {}, "there is no field 'a'"),
        ((event("e1", "symbol"), "e1"), {}, "an event needs a condition, this gives string"),
        ((event("e1", "1", "no"), "e1"), {}, "no edge leads here from window 'no', only from:"),
        ((event("1", "1"), "e1"), {}, "the name '1': use letters, digits and _"),
        ((event("e1", "1") * 2, "e1"), {}, "event 'e1' is defined twice"),
        ((event("e1", "1"), "fby(e1,"), {}, "the logic ends too early"),
        (
            (event("e1", "1"), "e1"),
            {"schema": "nr*:string,a:int64"},
            "needs one key, of type int64",
        ),
        ((event("e1", "1"), "e1"), {"schema": "nr*:int64"}, "has 1 outputs for 0 fields"),
        ((event("e1", "1"), "e1", '<field-expr node="e9">1</field-expr>'), {}, "node 'e9' is no"),
        (
            (event("e1", "1"), "e1", '<field-selection node="e1" name="x"/>'),
            {},
            "field 'first': 'x' is not a field of the event e1",
        ),
        ((event("e1", "1"), "e1"), {"pattern": 'index="price"'}, ""),
        (
            (event("e1", "1") + event("e2", "1", "news"), "fby(e1,e2)"),
            {"pattern": 'index="price"'},
            "index field 'price' is not in news",
        ),
        (
            (event("e1", "1"), "e1"),
            {"times": '<timefields><timefield field="id" source="in"/></timefields>'},
            "field 'id' is int64; a time must be a date or a stamp",
        ),
    ],
)
def test_what_cannot_run_is_refused_with_its_place(args: Any, options: Any, reason: str) -> None:
    if not reason:
        assert project(*args, **options).windows["q/out"].patterns[0].index == ("price",)
        return
    with pytest.raises(ModelError) as caught:
        project(*args, **options)
    assert reason in str(caught.value)


def test_a_pattern_without_its_parts_is_refused() -> None:
    empty = '<window-pattern name="out"><schema-string>n*:int64</schema-string>%s</window-pattern>'
    for body, reason in (
        ("", "needs &lt;patterns>".replace("&lt;", "<")),
        ("<patterns/>", "has 0 patterns; give 1 to 1000"),
        ("<patterns><pattern/></patterns>", "needs <events>"),
    ):
        with pytest.raises(ModelError) as caught:
            read_project(xml(source(TRADE) + empty % body, '<edge source="in" target="out"/>'))
        assert reason in str(caught.value)


LOGICS = (
    "fby(e1,e2,e3)",
    "fby{5 seconds}(e1,e2,not(e3))",
    "fby{5 seconds}(e1,and(e2,e3))",
    "fby(e1,notoccur{3 seconds}(e2),is(e3))",
    "or(fby{2 seconds}(e1,e2),is:2(e3))",
)
steps = st.lists(
    st.tuples(st.sampled_from(["A", "B"]), st.sampled_from([1.0, 2.0, 3.0, None]),
              st.integers(0, 3000)),
    max_size=15,
)  # fmt: skip


@settings(max_examples=120)
@given(st.sampled_from(LOGICS), steps, st.integers(0, 15), st.booleans())
def test_a_restored_window_goes_on_as_the_first_one(
    logic: str, trades: list[tuple[str, Any, int]], cut: int, data_time: bool
) -> None:
    times = '<timefields><timefield field="day" source="in"/></timefields>' if data_time else ""
    model = project(RISE, logic, **RISING, times=times)
    whole, first, second = (Kernel(model) for _ in range(3))
    clock, expected, found = 0, [], []
    for number, (symbol, price, passed) in enumerate(trades):
        clock += passed
        if number == cut:
            second.restore(loads(dumps(first.state())))
        trade = Event("I", "N", (number, symbol, price, clock // 1000))
        expected += whole.publish("q/in", trade, clock)
        # Time that is let pass in between changes nothing.
        part = first if number < cut else second
        found += part.advance(clock - passed // 2)
        found += part.publish("q/in", trade, clock)
    assert found == expected
    if cut < len(trades):
        assert second.state() == whole.state()
