"""How many records a batch has, from what the ones before have taken."""

import pytest

from espha.engine.batch_size import BatchSize


def sizes(size: BatchSize, cost_s: float, batches: int, beside_s: float = 0.01) -> list[int]:
    """Fill so many batches; return how many records each one has."""
    found = []
    for _ in range(batches):
        found.append(size.limit)
        size.learn(size.limit, beside_s + size.limit * cost_s)
    return found


def test_light_records_are_soon_taken_by_the_thousand() -> None:
    """20,000 a second and more: the third batch has all that batches have."""
    assert sizes(BatchSize(), 50e-6, 5) == [512, 2048, 5000, 5000, 5000]


@pytest.mark.parametrize(
    ("cost_s", "first", "then"), [(0.012, 512, 415), (0.2, 512, 24), (3, 512, 1), (90, 512, 1)]
)
def test_heavy_records_are_taken_by_the_dozen_or_alone(
    cost_s: float, first: int, then: int
) -> None:
    """Some five seconds a batch; one at least."""
    assert sizes(BatchSize(), cost_s, 3) == [first, then, pytest.approx(then, abs=1)]


def test_a_few_records_that_come_now_and_then_say_what_a_backlog_would_cost() -> None:
    size = BatchSize()
    size.learn(1, 0.5)
    assert size.limit == 10


def test_a_pause_is_not_laid_on_the_records_for_long() -> None:
    """The machine, a snapshot or a tick of time takes a second: one small batch, and all is well.

    Of a batch without records nothing is learned.
    """
    size = BatchSize()
    size.learn(5, 1.0)
    assert sizes(size, 50e-6, 4) == [25, 512, 2048, 5000]
    size.learn(0, 40.0)
    assert size.limit == 5000


def test_heavy_records_are_remembered_behind_many_light_ones() -> None:
    """In the end they are forgotten."""
    size = BatchSize()
    sizes(size, 0.1, 3)
    light = sizes(size, 50e-6, 1500)
    assert light[10] < 100
    assert light == sorted(light)
    assert light[-1] == 5000


def replays(*costs_s: float) -> int:
    """Return how many records the first batch may have, after replays of ten records each."""
    size = BatchSize()
    for cost_s in costs_s:
        size.replayed(10, 10 * cost_s)
    size.begin()
    return size.limit


def test_a_take_over_begins_with_what_replays_have_shown() -> None:
    assert replays() == 512
    assert replays(0.001) == 512
    assert replays(0.5, 0.5) == 10
    assert replays(9.0) == 1


def test_one_slow_replay_says_nothing_of_records() -> None:
    """The engine may have been frozen in it."""
    assert replays(0.0005, 9.0) == 512
    assert replays(*[0.0005] * 8, *[0.5] * 7) == 512
    assert replays(0.0005, *[0.5] * 8) == 10


def test_what_was_known_when_it_led_before_is_forgotten() -> None:
    size = BatchSize()
    size.learn(1, 30.0)
    assert size.limit == 1
    size.begin()
    assert size.limit == 512
