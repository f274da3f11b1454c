"""Counter windows: what is reported, and when."""

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

EDGES = '<edge source="a b" target="out"/>'
START = 1_000_000


def kernel(attributes: str = "", index: str = "pi_EMPTY") -> Kernel:
    windows = source("id*:int64", name="a") + source("id*:int64", name="b")
    counter = f'<window-counter name="out" index="{index}" {attributes}/>'
    return Kernel(read_project(xml(windows + counter, EDGES)), published=["q/out"])


def publish(running: Kernel, name: str, clock: int) -> list[Any]:
    """Publish an insert; return what leaves as (opcode, values)."""
    return found(running.publish(f"q/{name}", Event("I", "N", (1,)), START + clock))


def found(outputs: list[tuple[str, Event]]) -> list[Any]:
    return [(event.opcode, *event.values) for _, event in outputs]


def test_without_an_interval_every_event_is_reported() -> None:
    running = kernel()
    assert publish(running, "a", 0) == [("P", "a", 1, 0.0, 0.0, 1, 0.0, 0.0)]
    assert publish(running, "a", 500) == [("P", "a", 2, 0.5, 4.0, 1, 0.5, 2.0)]
    assert publish(running, "b", 500) == [("P", "b", 1, 0.0, 0.0, 1, 0.0, 0.0)]
    assert publish(running, "a", 2000) == [("P", "a", 3, 2.0, 1.5, 1, 1.5, 1 / 1.5)]


def test_with_an_interval_reports_come_at_fixed_times_even_without_events() -> None:
    running = kernel('count-interval="1 second"')
    assert [publish(running, "a", clock) for clock in (0, 100, 900)] == [[], [], []]
    assert running.due() == START + 1000
    assert publish(running, "a", 1700) == [("P", "a", 3, 1.0, 3.0, 3, 1.0, 3.0)]
    assert found(running.advance(START + 3999)) == [
        ("P", "a", 4, 2.0, 2.0, 1, 1.0, 1.0),
        ("P", "a", 4, 3.0, 4 / 3, 0, 1.0, 0.0),
    ]


def test_inputs_are_reported_in_the_order_of_time() -> None:
    running = kernel('count-interval="1 second"')
    publish(running, "b", 0)
    publish(running, "a", 500)
    rows = found(running.advance(START + 2500))
    assert [(row[1], row[3]) for row in rows] == [
        ("b", 1.0), ("a", 1.0), ("b", 2.0), ("a", 2.0),
    ]  # fmt: skip


def test_an_input_without_events_starts_anew() -> None:
    """The row goes to zero once, then nothing is reported until an event comes."""
    running = kernel('count-interval="2 seconds" clear-interval="5 seconds"')
    publish(running, "a", 0)
    rows = found(running.advance(START + 60_000))
    assert [row[2] for row in rows] == [1, 1, 0]
    assert rows[-1] == ("P", "a", 0, 0.0, 0.0, 0, 0.0, 0.0)
    assert running.due() is None
    publish(running, "a", 61_000)
    assert found(running.advance(START + 63_000)) == [("P", "a", 1, 2.0, 0.5, 1, 2.0, 0.5)]


def test_a_stateful_counter_has_one_row_an_input() -> None:
    running = kernel(index="pi_HASH")
    assert [row[0] for row in publish(running, "a", 0)] == ["I"]
    assert [row[0] for row in publish(running, "a", 1000)] == ["U", "D"]


def test_a_long_sleep_makes_no_flood() -> None:
    running = kernel('count-interval="100 ms"')
    publish(running, "a", 0)
    rows = found(running.advance(START + 86_400_000))
    assert len(rows) == 1001
    assert rows[-1][3] == 86_400.0
    assert running.due() == START + 86_400_100


@pytest.mark.parametrize("text", ["soon", "-1", "5 parsecs", "0", "10 ms", "999999 days"])
def test_a_wrong_interval_is_refused(text: str) -> None:
    with pytest.raises(ModelError, match="count-interval is"):
        kernel(f'count-interval="{text}"')


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3000)), max_size=25),
    st.integers(0, 25),
    st.sampled_from(["", 'count-interval="1"', 'count-interval="1" clear-interval="2 seconds"']),
)
def test_a_restored_counter_goes_on_as_the_first_one(
    steps: list[tuple[str, int]], cut: int, attributes: str
) -> None:
    whole, first, second = (kernel(attributes) for _ in range(3))
    clock, outputs, others = 0, [], []
    for place, (name, wait) in enumerate(steps):
        clock += wait
        if place == cut:
            second.restore(loads(dumps(first.state())))
        outputs += publish(whole, name, clock)
        others += publish(first if place < cut else second, name, clock)
    assert outputs == others


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3000)), max_size=15),
    st.lists(st.integers(0, 45_000), max_size=10),
)
def test_reports_do_not_depend_on_how_often_time_is_told(
    steps: list[tuple[str, int]], told: list[int]
) -> None:
    attributes = 'count-interval="700 ms" clear-interval="2 seconds"'
    one, other = kernel(attributes), kernel(attributes)
    times = sorted(told)
    clock, outputs, others = 0, [], []
    for name, wait in steps:
        clock += wait
        while times and times[0] <= clock:
            others += found(other.advance(START + times.pop(0)))
        outputs += publish(one, name, clock)
        others += publish(other, name, clock)
    assert outputs == others
