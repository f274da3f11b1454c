"""The interval between two commits, and what may break it."""

import threading
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from espha.engine.agreement import Agreement
from espha.engine.batch_size import BatchSize
from espha.engine.checkpoints import Checkpoints
from espha.engine.clock import LogClock
from espha.engine.inputs import Inputs
from espha.engine.leader import Leader, interval_behind
from espha.engine.position import Position
from espha.engine.quarantine import BLIND
from espha.pipeline.job import Batch, Input, Result
from espha.protocol.activity import Doing
from espha.protocol.checkpoint import CheckpointBegun, CheckpointOrder
from espha.protocol.order import OrderRecord, Range
from espha.protocol.states import Step

TOPIC = "t.I"
LONG_S = 1e6


class Site:
    """One row more each time; commits are counted."""

    limit_s = 60.0
    moved: Callable[[], None]

    def __init__(self) -> None:
        self.taken = 0
        self.commits: list[int] = []
        self.doing = Doing()
        self.steps: list[tuple[str, Step]] = []

    def take(self, limit: int, timeout: float) -> tuple[list[Range], list[Input]]:
        """Take a row."""
        self.taken += 1
        return [Range(TOPIC, self.taken - 1, self.taken)], [Input(TOPIC, self.taken - 1, b"x")]

    def next_offsets(self) -> Mapping[str, int]:
        """Say where the rows go on."""
        return {TOPIC: self.taken}

    def note(self, called: str) -> None:
        """Note what is called, and in which step."""
        told = self.doing.told()
        assert told
        self.steps.append((called, told.step))

    def begin(self) -> int:
        """Have no number."""
        self.note("begin")
        return 0

    def commit(self, result: Result, order_record: bytes) -> None:
        """Note how many records it has."""
        self.note("commit")
        self.commits.append(OrderRecord.model_validate_json(order_record).records or 0)

    def run(self, batches: list[Batch], transaction: int = 0) -> list[Result]:
        """Make nothing of them."""
        self.note("run")
        return [Result([], 0) for _ in batches]

    def checkpoint(self, order: CheckpointOrder) -> CheckpointBegun:
        """Take none."""
        return CheckpointBegun(error="none here")


def leader(site: Site, interval_s: float) -> Leader:
    made = Leader(
        site,
        cast("Inputs", site),
        cast("Any", site),
        Position(),
        name="e",
        model="m",
        runtime="r",
        acknowledge=lambda record: None,
        quarantine=BLIND,
        clock=LogClock(),
        agreement=Agreement(Checkpoints()),
        doing=site.doing,
        size=BatchSize(),
        interval_s=interval_s,
    )
    made.take_over()
    return made


def test_without_an_interval_each_step_commits() -> None:
    site = Site()
    active = leader(site, 0)
    assert [active.step() for _ in range(3)] == [True] * 3
    assert site.commits == [1] * 4


@pytest.mark.timeout(60)
def test_who_calls_is_not_kept_waiting_and_nothing_is_committed() -> None:
    site = Site()
    active = leader(site, LONG_S)
    answers: list[bool] = []
    resting = threading.Thread(target=lambda: answers.append(active.step()))
    resting.start()
    active.called.set()
    resting.join()
    assert (answers, site.commits) == ([False], [1])


def test_a_proof_does_not_wait() -> None:
    site = Site()
    active = leader(site, LONG_S)
    assert active.step(prove=True)
    active.hand_over("another")
    assert len(site.commits) == 3


def test_the_more_comes_the_more_share_a_commit() -> None:
    """Few inputs wait no longer than they must; many wait, but not without a bound."""
    intervals = [interval_behind(inputs, 0.025) for inputs in (0, 5, 500, 2_000, 5_000, 100_000)]
    assert intervals == pytest.approx([0.025, 0.02525, 0.05, 0.125, 0.2, 0.2])


def test_an_interval_that_is_set_is_never_shortened() -> None:
    assert interval_behind(5_000, 0) == 0
    assert interval_behind(5_000, 10) == 10


def test_what_a_publisher_does_first_is_no_batch() -> None:
    """It may have to fence, which Kafka may take long for; nobody computes then."""
    site = Site()
    leader(site, 0)
    assert site.steps == [
        ("begin", Step.FENCING),
        ("run", Step.RUNNING),
        ("commit", Step.COMMITTING),
    ]


def test_a_fence_that_waits_moves_only_where_the_main_loop_waits_for_it() -> None:
    """Its thread runs beside the main loop, whose steps it must not tell of."""
    site = Site()
    leader(site, 0)
    turns = []
    for step in (Step.FENCING, Step.REPLAYING):
        site.doing.begin(step)
        before = site.doing.told()
        site.moved()
        after = site.doing.told()
        assert before and after
        assert before.step is after.step is step
        turns.append(after.turn - before.turn)
    assert turns == [1, 0]
