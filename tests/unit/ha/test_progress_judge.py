"""When a child that says that it lives does not get on any more."""

import threading
import time

import pytest

from espha.ha.family import Times
from espha.ha.progress_judge import ProgressJudge
from espha.protocol.states import KillReason, Step
from espha.protocol.status import Activity

TICK_S = 0.1


class Family:
    """Processes that compute, or not, as a test says."""

    def __init__(self) -> None:
        self.frozen: set[int] = set()
        self.busy = self.starved = False
        self._ran = self._waited = 0.0

    @property
    def stopped(self) -> set[int]:
        """Return who is frozen."""
        return self.frozen

    def tick(self) -> None:
        """Let a tick pass."""
        self._ran += TICK_S * self.busy
        self._waited += TICK_S * self.starved

    def times(self) -> dict[int, Times]:
        """Return what the one thread has used."""
        return {1: Times(self._ran, self._waited)}


class Scene:
    """A child, and the judge who hears of it."""

    def __init__(self) -> None:
        self.family = Family()
        self.begin(0.5)

    def begin(self, timeout_s: float) -> None:
        """Begin, with a time-out for failures."""
        self.judge = ProgressJudge(timeout_s, TICK_S)
        self.judge.begin(self.family)
        self.turn = 0

    def step(self, step: Step, ticks: int = 0, records: int = 0) -> None:
        """Let the child be in a step for so many ticks."""
        self.turn += 1
        self.judge.heard(Activity(step=step, turn=self.turn, records=records))
        for _ in range(ticks):
            self.judge.tick()

    def ticks_until(self, leads: bool = True, at_most: int = 5000) -> tuple[int, KillReason]:
        """Let time pass until there is a verdict."""
        for count in range(1, at_most):
            self.judge.tick()
            reason = self.judge.verdict(leads)
            if reason:
                return count, reason
        raise AssertionError("there is no verdict")


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_batch_in_which_nobody_computes_is_stuck(scene: Scene) -> None:
    scene.step(Step.RUNNING, records=4)
    assert scene.ticks_until() == (5, KillReason.STUCK)


def test_a_batch_in_which_somebody_computes_may_take_longer(scene: Scene) -> None:
    scene.family.busy = True
    scene.step(Step.RUNNING, records=4)
    assert scene.ticks_until() == (50, KillReason.STUCK)


def test_who_does_not_get_the_processor_has_more_time(scene: Scene) -> None:
    scene.family.starved = True
    scene.step(Step.RUNNING, records=4)
    count, reason = scene.ticks_until()
    assert reason is KillReason.STUCK
    assert 450 < count <= 500


def test_who_has_computed_and_hangs_now_is_stuck(scene: Scene) -> None:
    scene.family.busy = True
    scene.step(Step.RUNNING, ticks=20, records=4)
    assert scene.judge.verdict(leads=True) is None
    scene.family.busy = False
    count, reason = scene.ticks_until()
    assert reason is KillReason.STUCK
    assert count <= 5


def test_a_record_without_an_end_is_found_as_soon_in_a_large_batch(scene: Scene) -> None:
    """As in a page of records, the last sign of which was a while ago."""
    scene.family.busy = True
    for _ in range(3):
        scene.step(Step.RUNNING, ticks=2, records=5000)  # each a part of the same one
    count, reason = scene.ticks_until()
    assert reason is KillReason.STUCK
    assert 40 < count <= 60


def test_a_large_batch_may_take_for_ever_while_it_gets_on(scene: Scene) -> None:
    scene.family.busy = True
    for _ in range(2000):
        scene.step(Step.RUNNING, ticks=10, records=5000)
        assert scene.judge.verdict(leads=True) is None


def test_who_is_patient_waits_for_as_long_as_was_asked_for(scene: Scene) -> None:
    scene.begin(30)
    scene.step(Step.WAITING)
    ticks, _ = scene.ticks_until()
    assert ticks >= 300


def test_what_is_usual_is_no_fault(scene: Scene) -> None:
    for _ in range(3):
        scene.step(Step.RUNNING, ticks=4, records=4)
        scene.step(Step.COMMITTING)
    scene.step(Step.RUNNING, records=4)
    assert scene.ticks_until() == (16, KillReason.STUCK)


def test_records_that_take_long_give_their_batches_time(scene: Scene) -> None:
    scene.family.busy = True
    for _ in range(3):
        scene.step(Step.RUNNING, ticks=40, records=40)  # 0.1 s for each
    scene.step(Step.RUNNING, records=1000)
    count, _ = scene.ticks_until()
    page = 256
    assert count > page * 0.1 / TICK_S * 3


def test_a_few_records_that_had_to_wait_make_no_page_long(scene: Scene) -> None:
    """Four that took 0.3 s on a busy machine would give 512 of them two and a half minutes."""
    scene.family.busy = True
    for ticks in (0, 3, 0, 0, 3, 3, 3, 3, 3, 3, 3):
        scene.step(Step.RUNNING, ticks=ticks, records=4)
    scene.step(Step.RUNNING, records=512)
    count, _ = scene.ticks_until()
    assert 50 <= count < 60


@pytest.mark.parametrize("step", [Step.RUNNING, Step.REPLAYING])
def test_time_alone_may_take_as_long_as_a_whole_state_takes(scene: Scene, step: Step) -> None:
    """Nothing of it can be set aside: the next engine would have to compute it as well."""
    scene.family.busy = True
    scene.step(step, records=0)
    assert scene.ticks_until() == (1200, KillReason.STUCK)


def test_time_alone_in_which_nobody_computes_is_stuck(scene: Scene) -> None:
    scene.step(Step.RUNNING, records=0)
    assert scene.ticks_until() == (5, KillReason.STUCK)


def test_who_gets_on_is_never_judged(scene: Scene) -> None:
    for _ in range(500):
        scene.step(Step.WAITING, ticks=1)
        scene.step(Step.RUNNING, ticks=2, records=3)
        assert scene.judge.verdict(leads=True) is None
        scene.step(Step.COMMITTING, ticks=3)
        assert scene.judge.verdict(leads=True) is None


@pytest.mark.parametrize(("step", "ticks"), [(Step.SOURCE, 3000), (Step.TARGET, 9000)])
def test_an_adapter_whose_other_side_hangs_is_stuck(scene: Scene, step: Step, ticks: int) -> None:
    scene.step(step)
    assert scene.ticks_until(at_most=ticks + 2) == (ticks, KillReason.STUCK)


@pytest.mark.parametrize("step", Step)
def test_a_frozen_process_is_seen_in_every_step(scene: Scene, step: Step) -> None:
    scene.step(step)
    scene.family.frozen = {7}
    scene.family.busy = True
    assert scene.ticks_until() == (5, KillReason.STOPPED)


def test_a_process_that_is_stopped_for_a_moment_harms_nobody(scene: Scene) -> None:
    scene.step(Step.WAITING)
    for _ in range(5):
        scene.family.frozen = {7}
        for _ in range(4):
            scene.judge.tick()
        scene.family.frozen = set()
        scene.judge.tick()
        assert scene.judge.verdict(leads=True) is None
        scene.step(Step.WAITING)


def test_a_commit_waits_for_kafka_and_ends_by_itself(scene: Scene) -> None:
    scene.step(Step.COMMITTING, ticks=350, records=4)
    assert scene.judge.verdict(leads=True) is None


@pytest.mark.parametrize("step", [Step.COMMITTING, Step.FENCING, Step.READING_BACK])
def test_who_waits_for_kafka_without_an_end_is_given_up(scene: Scene, step: Step) -> None:
    """The limits of its own are in clients and in a JVM, which may hang."""
    scene.step(step)
    count, reason = scene.ticks_until()
    assert reason is KillReason.STUCK
    assert 300 < count < 600


def test_a_source_that_does_not_answer_is_given_up(scene: Scene) -> None:
    """A mount may be dead here only. What other threads of the adapter do does not count."""
    scene.family.busy = True
    scene.step(Step.SOURCE)
    assert scene.ticks_until() == (3000, KillReason.STUCK)


def test_a_source_that_is_slow_is_waited_for(scene: Scene) -> None:
    for _ in range(5):
        scene.step(Step.SOURCE, ticks=2900)
        assert scene.judge.verdict(leads=True) is None


def test_a_standby_whose_source_hangs_is_given_up_when_it_is_elected(scene: Scene) -> None:
    scene.step(Step.SOURCE, ticks=3001)
    assert scene.judge.verdict(leads=False) is None
    assert scene.judge.verdict(leads=True) is KillReason.STUCK


def test_nobody_waits_for_a_standby(scene: Scene) -> None:
    scene.step(Step.REPLAYING, records=4)
    assert scene.ticks_until(leads=False) == (100, KillReason.STUCK)


def test_a_start_has_an_alarm_of_its_own(scene: Scene) -> None:
    scene.step(Step.STARTING, ticks=4000)
    assert scene.judge.verdict(leads=False) is None


def test_the_next_child_begins_anew(scene: Scene) -> None:
    scene.step(Step.RUNNING, ticks=30)
    scene.judge.begin(Family())
    assert scene.judge.verdict(leads=True) is None


def test_who_tells_of_no_steps_is_judged_by_its_processes_alone(scene: Scene) -> None:
    scene.judge.heard(None)
    for _ in range(20_000):
        scene.judge.tick()
    assert scene.judge.verdict(leads=True) is None
    scene.family.frozen = {7}
    assert scene.ticks_until() == (5, KillReason.STOPPED)


def test_what_is_heard_while_it_is_judged_disturbs_nobody(scene: Scene) -> None:
    """A child's words come in one thread, and ticks in another."""
    ended = threading.Event()

    def tell() -> None:
        while not ended.is_set():
            scene.step(Step.RUNNING, records=4)

    teller = threading.Thread(target=tell)
    teller.start()
    try:
        until = time.monotonic() + 1
        while time.monotonic() < until:
            for _ in range(5):
                scene.judge.tick()
            scene.judge.verdict(leads=True)
    finally:
        ended.set()
        teller.join()
