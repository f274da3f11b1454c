"""State: copied, restored, taken back, at any point of a run."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espha.kernel import Kernel
from espha.model.events import BadRecord, Event
from espha.reader import read_project
from espha.recovery.plain import dumps, loads
from support.models import SAMPLE, TRADES

TRADES_PROJECT = read_project(TRADES)
SAMPLE_PROJECT = read_project(SAMPLE)

trades = st.builds(
    Event,
    st.sampled_from(["I", "U", "P", "P", "D", "SD", "X"]),
    st.sampled_from(["N", "N", "N", "P"]),
    st.tuples(
        st.integers(0, 3) | st.none(),
        st.sampled_from(["a", "b", None]),
        st.integers(0, 40) | st.none(),
        st.sampled_from([0.5, 5.0, None, float("nan")]),
    ),
)
rows = st.builds(
    Event,
    st.sampled_from(["I", "I", "I", "U"]),
    st.just("N"),
    st.tuples(
        st.none(), st.integers(-(2**63), 2**63) | st.none(), st.just(1), st.just(2), st.just(3)
    ),
)


def run(kernel: Kernel, path: str, events: list[Event]) -> list[Any]:
    """Publish; a refusal is an output too, so that runs with the same refusals compare equal."""
    results: list[Any] = []
    for event in events:
        try:
            results.append(kernel.publish(path, event, 0))
        except BadRecord as refusal:
            results.append(str(refusal))
    return results


@settings(max_examples=150)
@given(st.lists(trades, max_size=40), st.integers(0, 40))
def test_a_restored_kernel_goes_on_as_the_first_one(events: list[Event], cut: int) -> None:
    whole, first, second = (Kernel(TRADES_PROJECT) for _ in range(3))
    expected = run(whole, "q/trade", events)
    before = run(first, "q/trade", events[:cut])
    second.restore(loads(dumps(first.state())))
    assert before + run(second, "q/trade", events[cut:]) == expected
    assert second.state() == whole.state()


@settings(max_examples=80)
@given(st.lists(rows, max_size=60), st.integers(0, 60))
def test_the_sample_goes_on_after_a_restore(events: list[Event], cut: int) -> None:
    whole, first, second = (Kernel(SAMPLE_PROJECT) for _ in range(3))
    expected = run(whole, "cq/memory", events)
    before = run(first, "cq/memory", events[:cut])
    second.restore(first.state())
    assert before + run(second, "cq/memory", events[cut:]) == expected


@settings(max_examples=80)
@given(st.lists(trades, max_size=30))
def test_a_refused_event_leaves_no_trace(events: list[Event]) -> None:
    with_bad, without = Kernel(TRADES_PROJECT), Kernel(TRADES_PROJECT)
    for event in events:
        try:
            outputs = with_bad.publish("q/trade", event, 0)
        except BadRecord:
            continue
        assert without.publish("q/trade", event, 0) == outputs
    assert with_bad.state() == without.state()


@settings(max_examples=50)
@given(st.lists(trades, max_size=30))
def test_what_leaves_is_a_history_of_rows(events: list[Event]) -> None:
    """Replaying what the last window published gives exactly the rows that it holds."""
    kernel = Kernel(TRADES_PROJECT)
    rows_seen: dict[Any, Any] = {}
    replaced: Any = None
    for result in run(kernel, "q/trade", events):
        for path, event in result if isinstance(result, list) else []:
            if path != "q/kept":
                continue
            key = event.values[0]
            if replaced is not None:  # the second half of an update block
                assert event.opcode == "D"
                assert replaced == event.values
                replaced = None
                continue
            assert (key in rows_seen) == (event.opcode in {"U", "D"})
            if event.opcode == "D":
                assert rows_seen.pop(key) == event.values
            else:
                replaced = rows_seen.get(key)
                rows_seen[key] = event.values
    assert {values[0]: values for values in kernel.state()["windows"]["q/kept"][0].values()} == (
        rows_seen
    )


def test_twenty_rows_are_summed() -> None:
    outputs = run(
        Kernel(SAMPLE_PROJECT),
        "cq/memory",
        [Event("I", "N", (None, number, 1, 2, 3)) for number in range(1, 101)],
    )
    for number, ((path, event),) in enumerate(outputs, start=1):
        assert path == "cq/outbound"
        total = sum(range(max(1, number - 19), number + 1))
        assert event == Event("I", "N", (number - 1, number, 1, 2, 3, float(total)))


def test_state_of_another_model_is_refused() -> None:
    with pytest.raises(ValueError, match="the state is of model"):
        Kernel(SAMPLE_PROJECT).restore(Kernel(TRADES_PROJECT).state())
