"""What each window makes of each event, event by event."""

import math
from typing import Any

import pytest

from espha.kernel import Kernel
from espha.model.events import BadRecord, Event
from espha.reader import read_project
from support.models import SUB, TRADES, behind, source, xml

SCHEMA = "id*:int64,x:int64"


def text(event: Event) -> str:
    """Write an event as short as `U 1,5`; flags only when they are not N."""
    flags = "" if event.flags == "N" else f"/{event.flags}"
    return f"{event.opcode}{flags} " + ",".join(
        "-" if value is None else str(value) for value in event.values
    )


def event(words: str) -> Event:
    """Read `U/P 1,-`: whole numbers, a dash is null."""
    head, _, tail = words.partition(" ")
    opcode, _, flags = head.partition("/")
    values = tuple(None if cell == "-" else int(cell) for cell in tail.split(","))
    return Event(opcode, flags or "N", values)


def play(kernel: Kernel, steps: list[tuple[str, str]], path: str = "q/in") -> None:
    """Publish each event; expect the outputs, and refusals written as `! reason` behind them."""
    for given, expected in steps:
        before = kernel.state()
        try:
            found = [text(each) for _, each in kernel.publish(path, event(given), 0)]
        except BadRecord as refusal:
            found = [f"! {refusal.reason}"]
            assert kernel.state() == before, given
        found += [f"! {reason}" for _, reason in kernel.take_refusals()]
        assert "; ".join(found) == expected, given


def alone(schema: str = SCHEMA, attributes: str = "", index: str = "pi_HASH") -> Kernel:
    return Kernel(read_project(xml(source(schema, attributes, body=SUB), index=index)))


def test_a_stateful_source_keeps_its_rows() -> None:
    play(
        alone(),
        [
            ("I 1,5", "I 1,5"),
            ("I 1,6", "! insert of key 1, which exists"),
            ("U 1,6", "U 1,6; D 1,5"),
            ("U 2,6", "! update of key 2, which does not exist"),
            ("P 2,7", "I 2,7"),
            ("P 2,8", "U 2,8; D 2,7"),
            ("U/P 2,-", "U 2,8; D 2,8"),
            ("P/P 3,-", "I 3,-"),
            ("U 2,-", "U 2,-; D 2,8"),
            ("D 1,-", "D 1,6"),
            ("D 1,-", "! delete of key 1, which does not exist"),
            ("SD 1,-", ""),
            ("SD 2,9", "D 2,-"),
            ("I 1,1", "I 1,1"),
            ("I -,1", "! key field id is null"),
        ],
    )


def test_collapsed_updates_are_still_update_blocks() -> None:
    play(
        alone(attributes='collapse-updates="true"'),
        [("I 1,5", "I 1,5"), ("U 1,6", "U 1,6; D 1,5"), ("D 1,-", "D 1,6")],
    )


def test_a_stateless_source_passes_events_on_as_they_are() -> None:
    steps = ["I 1,5", "I 1,5", "U 2,6", "U/P 2,-", "P 2,7", "D 9,-", "SD 9,-"]
    play(alone(index="pi_EMPTY"), [(step, step) for step in steps])


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (Event("X", "N", (1, 2)), "opcode 'X' is not one of I, U, P, D, SD"),
        (Event("I", "Z", (1, 2)), "flags 'Z' is not one of N, P, R"),
        (Event("I", "P", (1, 2)), "flag P (partial) with opcode I"),
        (Event("D", "R", (1, 2)), "flag R is for retention"),
        (Event("I", "N", (1,)), "1 values for 2 fields"),
        (Event("I", "N", (1, "2")), "field x: '2' is not a whole number (int64)"),
        (Event("I", "N", (1, 2**63)), "field x: 9223372036854775808 is too large for int64"),
        (Event("I", "N", (True, 2)), "field id: True is not a whole number"),
        (Event("I", "N", (1, 2.0)), "field x: 2.0 is not a whole number"),
    ],
)
def test_a_source_refuses_what_does_not_fit(bad: Event, reason: str) -> None:
    kernel = alone()
    before = kernel.state()
    with pytest.raises(BadRecord) as caught:
        kernel.publish("q/in", bad, 0)
    assert reason in caught.value.reason
    assert caught.value.window == "q/in"
    assert kernel.state() == before


def test_keys_are_numbered_from_zero_and_refusals_take_no_number() -> None:
    play(
        alone(attributes='insert-only="true" autogen-key="true"', index="pi_EMPTY"),
        [
            ("I -,5", "I 0,5"),
            ("I 7,5", "I 1,5"),
            ("U -,5", "! opcode U for a window that takes inserts only"),
            ("I -,6", "I 2,6"),
        ],
    )


def test_a_text_key_is_numbered_too() -> None:
    kernel = alone("id*:string,x:int64", 'insert-only="true" autogen-key="true"')
    ((_, first),) = kernel.publish("q/in", Event("I", "N", (None, 5)), 0)
    assert first.values == ("0", 5)


def test_nan_is_null_and_a_whole_number_is_a_double() -> None:
    kernel = alone("id*:int64,d:double")
    for given, expected in [(math.nan, None), (3, 3.0), (-0.0, -0.0)]:
        ((_, out),) = kernel.publish("q/in", Event("P", "N", (1, given)), 0)[:1]
        assert out.values[1] == expected
        assert type(out.values[1]) is type(expected)


FILTER = f'<window-filter name="out" {{}}><expression>x > 3</expression>{SUB}</window-filter>'


def test_an_update_can_enter_and_leave_a_stateless_filter() -> None:
    project = behind(SCHEMA, FILTER.format('index="pi_EMPTY"'), index="pi_HASH")
    play(
        Kernel(project),
        [
            ("I 1,5", "I 1,5"),
            ("U 1,6", "U 1,6; D 1,5"),
            ("U 1,1", "D 1,6"),
            ("U 1,2", ""),
            ("U 1,9", "I 1,9"),
            ("U 1,-", "D 1,9"),
            ("D 1,-", ""),
            ("I 2,4", "I 2,4"),
            ("D 2,-", "D 2,4"),
        ],
    )


def test_a_stateful_filter_knows_its_rows() -> None:
    """Collapsed updates and upserts of a source that keeps nothing are told right all the same."""
    project = behind(SCHEMA, FILTER.format('index="pi_HASH"'))
    play(
        Kernel(project),
        [
            ("I 1,5", "I 1,5"),
            ("I 1,5", "! insert of key 1, which exists"),
            ("U 1,6", "U 1,6; D 1,5"),
            ("U 1,1", "D 1,6"),
            ("U 1,2", ""),
            ("P 1,7", "I 1,7"),
            ("P 1,0", "D 1,7"),
            ("D 1,-", ""),
            ("I 2,1", ""),
        ],
    )


def test_compute_computes_old_and_new_rows() -> None:
    window = (
        '<window-compute name="out" index="pi_EMPTY">'
        "<schema-string>y:double,id*:int64,z:int32</schema-string>"
        "<output><field-expr>x / 2</field-expr><field-expr>x * 1000000000</field-expr></output>"
        f"{SUB}</window-compute>"
    )
    play(
        Kernel(behind(SCHEMA, window, index="pi_HASH")),
        [
            ("I 1,1", "I 0.5,1,1000000000"),
            ("U 1,5", "U 2.5,1,-; D 0.5,1,1000000000"),
            ("U 1,-", "U -,1,-; D 2.5,1,-"),
            ("D 1,-", "D -,1,-"),
        ],
    )


def test_a_copy_resolves_what_a_stateless_source_passes_on() -> None:
    window = f'<window-copy name="out" index="pi_RBTREE">{SUB}</window-copy>'
    play(
        Kernel(behind(SCHEMA, window)),
        [
            ("P 1,5", "I 1,5"),
            ("P/P 1,-", "U 1,5; D 1,5"),
            ("U 1,6", "U 1,6; D 1,5"),
            ("SD 2,-", ""),
            ("D 2,-", "! delete of key 2, which does not exist"),
            ("D 1,-", "D 1,6"),
        ],
    )


def test_functional_passes_fields_on_by_name() -> None:
    window = (
        '<window-functional name="out"><schema-string>x:int64,id*:int64</schema-string>'
        f"<function-context/>{SUB}</window-functional>"
    )
    play(Kernel(behind("id*:int64,y:int64,x:int64", window)), [("I 1,2,3", "I 3,1")])


NAMES = ["n", "nmiss", "min", "max", "sum", "mean", "std", "var", "css", "uss", "stderr", "cv"]


def summary(length: int, type_: str = "int64", schema_of_counts: str = "int64") -> Kernel:
    fields = [
        f"{name}:{schema_of_counts if name in ('n', 'nmiss') else 'double'}" for name in NAMES
    ]
    outputs = "".join(f'<property name="{name}Out">{name}</property>' for name in NAMES)
    window = (
        '<window-calculate name="out" algorithm="Summary">'
        f"<schema-string>id*:int64,x:{type_},{','.join(fields)}</schema-string>"
        f'<parameters><properties><property name="windowLength">{length}</property></properties>'
        '</parameters><input-map><properties><property name="input">x</property></properties>'
        f"</input-map><output-map><properties>{outputs}</properties></output-map>"
        f"{SUB}</window-calculate>"
    )
    return Kernel(behind(f"id*:int64,x:{type_}", window))


def statistics(kernel: Kernel, value: Any, opcode: str = "I") -> dict[str, Any]:
    ((_, out),) = kernel.publish("q/in", Event(opcode, "N", (1, value)), 0)
    return dict(zip(NAMES, out.values[2:], strict=True))


def test_summary_by_hand() -> None:
    kernel = summary(3)
    one = statistics(kernel, 2)
    assert one == {
        "n": 1, "nmiss": 0, "min": 2.0, "max": 2.0, "sum": 2.0, "mean": 2.0, "std": None,
        "var": None, "css": 0.0, "uss": 4.0, "stderr": None, "cv": None,
    }  # fmt: skip
    two = statistics(kernel, 4)
    assert two["var"] == 2.0
    assert two["std"] == math.sqrt(2)
    assert two["stderr"] == 1.0
    assert two["cv"] == pytest.approx(100 * math.sqrt(2) / 3)
    null = statistics(kernel, None)
    assert null == {**two, "nmiss": 1}
    fourth = statistics(kernel, 10)  # the 2 has left, the null is still there
    assert (fourth["n"], fourth["nmiss"], fourth["sum"]) == (2, 1, 14.0)
    assert (fourth["css"], fourth["uss"]) == (18.0, 116.0)
    assert {type(value) for value in fourth.values()} == {int, float}


def test_summary_of_nothing_is_null() -> None:
    found = statistics(summary(2), None)
    assert (found.pop("n"), found.pop("nmiss")) == (0, 1)
    assert set(found.values()) == {None}


def test_summary_takes_updates_as_observations_and_no_deletes() -> None:
    kernel = summary(5)
    assert statistics(kernel, 1)["sum"] == 1.0
    assert statistics(kernel, 2, "U")["sum"] == 3.0
    assert kernel.publish("q/in", Event("D", "N", (1, 2)), 0) == []
    assert statistics(kernel, 4, "P")["sum"] == 7.0


def test_summary_keeps_no_error_of_what_has_left() -> None:
    kernel = summary(2, "double")
    for value in (1e308, 1e308, 1e16, 0.1):
        found = statistics(kernel, value)
    assert found["sum"] == 1e16 + 0.1
    assert statistics(kernel, 0.2)["sum"] == 0.1 + 0.2


def test_summary_beyond_the_largest_double_is_null() -> None:
    kernel = summary(2, "double")
    statistics(kernel, 1.7e308)
    found = statistics(kernel, 1.7e308)
    assert found["max"] == 1.7e308
    assert (found["sum"], found["uss"], found["var"]) == (None, None, 0.0)


def test_whole_numbers_add_up_exactly() -> None:
    kernel = summary(3)
    big = 2**53
    statistics(kernel, big)
    statistics(kernel, 1)
    assert statistics(kernel, 1)["sum"] == float(big + 2)


def test_trades_go_through_compute_filter_and_copy() -> None:
    """Depth first: all that one window does to an event leaves before the next window's events."""
    kernel = Kernel(read_project(TRADES))

    def step(opcode: str, *values: Any) -> list[str]:
        out = kernel.publish("q/trade", Event(opcode, "N", values), 0)
        return [f"{path.split('/')[1]} {text(event)}" for path, event in out]

    assert step("I", 1, "abc", 10, 5.0) == ["priced I 1,ABC,50.0"]
    assert step("U", 1, "abc", 30, 5.0) == [
        "priced U 1,ABC,150.0",
        "priced D 1,ABC,50.0",
        "large I 1,ABC,150.0",
        "kept I 1,ABC,150.0",
    ]
    assert step("P", 1, "abc", 40, 5.0) == [
        "priced U 1,ABC,200.0",
        "priced D 1,ABC,150.0",
        "large U 1,ABC,200.0",
        "large D 1,ABC,150.0",
        "kept U 1,ABC,200.0",
        "kept D 1,ABC,150.0",
    ]
    assert step("D", 1, None, None, None) == [
        "priced D 1,ABC,200.0",
        "large D 1,ABC,200.0",
        "kept D 1,ABC,200.0",
    ]


def test_a_refusal_behind_others_is_of_that_window_alone() -> None:
    """The other windows have processed the event that the copy refuses."""
    windows = (
        source("id*:int64,x:int64", "", body=SUB)
        + '<window-calculate name="sum" algorithm="Summary"><schema-string>'
        "id*:int64,total:double</schema-string><parameters><properties>"
        '<property name="windowLength">2</property></properties></parameters><input-map>'
        '<properties><property name="input">x</property></properties></input-map><output-map>'
        '<properties><property name="sumOut">total</property></properties></output-map>'
        f"{SUB}</window-calculate>"
        f'<window-copy name="keep" index="pi_HASH">{SUB}</window-copy>'
    )
    edges = '<edge source="in" target="sum keep"/>'
    kernel = Kernel(read_project(xml(windows, edges)))
    play(
        kernel,
        [
            ("I 1,5", "I 1,5; I 1,5.0; I 1,5"),
            ("I 2,6", "I 2,6; I 2,11.0; I 2,6"),
            ("I 1,9", "I 1,9; I 1,15.0; ! insert of key 1, which exists"),
            ("I 3,1", "I 3,1; I 3,10.0; I 3,1"),
        ],
    )
    kernel.publish("q/in", event("I 1,9"), 0)
    assert kernel.take_refusals() == [("q/keep", "insert of key 1, which exists")]
    assert kernel.take_refusals() == []


def test_there_is_no_such_source() -> None:
    with pytest.raises(KeyError):
        Kernel(read_project(TRADES)).publish("q/priced", event("I 1,2"), 0)
