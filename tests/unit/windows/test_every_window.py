"""All window types together: what must hold of a kernel whatever is in the model."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from espha.kernel import Kernel
from espha.model.events import BadRecord, Event
from espha.reader import read_project
from espha.recovery.plain import digest, dumps, loads
from espha.windows.shared.one_by_one import OneByOne
from espha.windows.types import WINDOWS
from support.every import TEXT, example

PROJECT = read_project(TEXT)
PATHS = list(PROJECT.windows)

small = st.integers(-1, 4) | st.none()
numbers = st.sampled_from([0.5, -2.25, 3.0, 1e300, 0.1, None, float("nan")])
texts = st.sampled_from(["a", "b", "", "ä", None])
rows = st.tuples(
    st.sampled_from("IIIIUUPPDS"), st.integers(0, 5), small, small | st.just(7), numbers, texts
)
steps = st.one_of(
    st.builds(lambda row: ("ev", _opcode(row[0]), row[1:]), rows),
    st.builds(lambda row: ("ev", _opcode(row[0]), row[1:]), rows),
    st.tuples(
        st.just("table"),
        st.sampled_from(["I", "U", "P", "SD"]),
        st.tuples(st.integers(0, 3), texts),
    ),
    st.tuples(st.just("log"), st.just("I"), st.tuples(st.none(), texts)),
    st.tuples(st.just("places"), st.just("P"), st.tuples(st.integers(0, 2), numbers, numbers)),
    st.tuples(
        st.just("fences"),
        st.sampled_from(["P", "P", "SD"]),
        st.tuples(
            st.sampled_from("fg"),
            st.just(0.0),
            st.just(1.0),
            st.sampled_from([1.0, 500.0]),
            st.sampled_from([None, "0 0 2 0 2 2 0 2 0 0"]),
            texts,
        ),
    ),
)
runs = st.lists(st.tuples(steps, st.sampled_from([0, 1, 700, 2_500])), min_size=1, max_size=25)


def _opcode(letter: str) -> str:
    return "SD" if letter == "S" else letter


class Run:
    """A kernel and everything that has come out of it."""

    def __init__(self) -> None:
        self.kernel = Kernel(PROJECT, published=PATHS)
        self.clock = 1_700_000_000_000
        self.seen: list[Any] = []

    def pass_time(self) -> None:
        """Let time pass alone."""
        self.seen += [*self.kernel.advance(self.clock), *self.kernel.take_refusals()]

    def block(self, events: list[tuple[str, Event]]) -> None:
        """Publish events together."""
        for (path, _), (outputs, bad, refused) in zip(
            events, self.kernel.publish_block(events, self.clock), strict=True
        ):
            self.seen += [str(BadRecord(bad, path))] if bad is not None else outputs
            self.seen += refused

    def step(self, step: tuple[Any, int]) -> None:
        """Let time pass and publish an event."""
        (window, opcode, values), passed = step
        self.clock += passed
        self.pass_time()
        try:
            outputs = self.kernel.publish(f"q/{window}", Event(opcode, "N", values), self.clock)
        except BadRecord as refusal:
            outputs = [str(refusal)]  # type: ignore[list-item]
        self.seen += [*outputs, *self.kernel.take_refusals()]

    def go_on_in_a_new_kernel(self) -> None:
        """Take a snapshot and restore it."""
        state = loads(dumps(self.kernel.state()))
        self.kernel = Kernel(PROJECT, published=PATHS)
        self.kernel.restore(state)


def straight(run: list[Any]) -> Run:
    result = Run()
    for step in run:
        result.step(step)
    return result


@pytest.mark.parametrize("name", WINDOWS)
def test_the_project_has_every_window_type(name: str) -> None:
    assert example(name).findall(f"windows/window-{name}")
    assert name in {window.type for window in PROJECT.windows.values()}


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(runs, st.integers(0, 24))
def test_a_restored_kernel_goes_on_as_the_first_one(run: list[Any], cut: int) -> None:
    expected, restored = straight(run), Run()
    for place, step in enumerate(run):
        if place == cut % len(run):
            restored.go_on_in_a_new_kernel()
        restored.step(step)
    assert restored.seen == expected.seen
    assert digest(restored.kernel.state()) == digest(expected.kernel.state())


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(runs)
def test_nothing_happens_where_no_time_passes(run: list[Any]) -> None:
    """`espha skip` writes an order record without input, at the last clock: it has no outputs."""
    made = Run()
    for step in run:
        made.step(step)
        due = made.kernel.due()
        assert due is None or due > made.clock
        assert made.kernel.advance(made.clock) == []
        assert made.kernel.take_refusals() == []


def test_a_kernel_restored_between_any_two_events_is_the_same() -> None:
    """To the last bit of its state, each time."""
    expected, restored = Run(), Run()
    for step in long_run():
        restored.go_on_in_a_new_kernel()
        assert digest(restored.kernel.state()) == digest(expected.kernel.state())
        expected.step(step)
        restored.step(step)
    assert restored.seen == expected.seen


def test_no_state_holds_a_set() -> None:
    """The order of its members would be another one in each process."""
    kernel = straight_once().kernel
    kernel.settle()
    assert list(sets(kernel.state())) == []


def sets(state: Any, place: str = "state") -> Iterator[str]:
    if isinstance(state, set | frozenset):
        yield place
    if isinstance(state, dict):
        for key, each in state.items():
            yield from sets(key, f"{place}[{key!r}]")
            yield from sets(each, f"{place}[{key!r}]")
    elif isinstance(state, tuple | list | OneByOne):
        for number, each in enumerate(state):
            yield from sets(each, f"{place}[{number}]")


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(runs, st.lists(st.integers(0, 24)))
def test_results_do_not_depend_on_how_events_are_cut_into_batches(
    run: list[Any], ends: list[int]
) -> None:
    """A batch ends with a state that is taken, and begins with time that passes."""
    expected, batched = straight(run), Run()
    for place, step in enumerate(run):
        if place in ends:
            batched.kernel.state()
            batched.seen += [*batched.kernel.advance(batched.clock)]
        batched.step(step)
    assert batched.seen == expected.seen
    assert digest(batched.kernel.state()) == digest(expected.kernel.state())


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(runs, st.lists(st.integers(0, 24)))
def test_blocks_of_events_do_what_single_events_do(run: list[Any], ends: list[int]) -> None:
    expected, blocks = straight(run), Run()
    waiting: list[tuple[str, Event]] = []
    for place, ((window, opcode, values), passed) in enumerate(run):
        if passed or place in ends:
            blocks.block(waiting)
            waiting = []
            blocks.clock += passed
            blocks.pass_time()
        waiting.append((f"q/{window}", Event(opcode, "N", values)))
    blocks.block(waiting)
    assert blocks.seen == expected.seen
    assert digest(blocks.kernel.state()) == digest(expected.kernel.state())


def long_run() -> list[Any]:
    """A run in which every window says something."""
    run: list[Any] = [
        (("table", "I", (1, "one")), 0),
        (("fences", "P", ("f", 0.0, 1.0, 500.0, None, "circle")), 1),
        (("places", "P", (1, 0.0, 1.0)), 700),
        (("log", "I", (None, "x")), 700),
    ]
    for at in range(12):
        row = (at % 5, at % 3, at % 4, at / 2, "ab"[at % 2])
        run.append((("ev", "P", row), 700))
    run += [(("ev", "SD", (at, None, None, None, None)), 2_500) for at in range(3)]
    return run


@pytest.mark.parametrize("path", PATHS)
def test_every_window_says_something(path: str) -> None:
    assert any(each[0] == path for each in straight_once().seen)


_ONCE: list[Run] = []


def straight_once() -> Run:
    if not _ONCE:
        _ONCE.append(straight(long_run()))
    return _ONCE[0]
