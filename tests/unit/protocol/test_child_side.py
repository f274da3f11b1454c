"""What a child tells of itself while its main loop stands still, and when it was frozen."""

import json
import os
import select
import subprocess
import sys
import time

import pytest

from espha.protocol.activity import Doing
from espha.protocol.child_side import Control
from espha.protocol.order import Range
from espha.protocol.states import Step

HANGS = """
import time
from espha.protocol.child_side import Control
from espha.protocol.order import Range
from espha.protocol.states import EngineState, Step
control = Control()
control.report(EngineState.ACTIVE, True)
control.doing.begin(Step.RUNNING, 8, 3, [Range("t.I", 4, 7)])
time.sleep(1000)
"""


def test_a_main_loop_that_hangs_is_seen_in_the_heartbeats() -> None:
    """It lives, and says so; what it says also tells that it does not get on, and where."""
    status, reported = os.pipe()
    child = subprocess.Popen(
        [sys.executable, "-c", HANGS],
        stdin=subprocess.PIPE,
        pass_fds=(reported,),
        env={**os.environ, "ESPHA_STATUS_FD": str(reported)},
    )
    os.close(reported)
    try:
        with os.fdopen(status, "rb") as lines:
            told = [json.loads(next(lines)) for _ in range(6)]
    finally:
        child.kill()
        child.wait()
    activities = [line["activity"] for line in told[2:]]
    assert {activity["turn"] for activity in activities} == {0}
    ages = [activity["age_ms"] for activity in activities]
    assert ages == sorted(set(ages)), "it grows"
    assert activities[-1]["step"] == "running"
    assert (activities[-1]["sequence"], activities[-1]["records"]) == (8, 3)
    assert activities[-1]["inputs"] == [["t.I", 4, 7]]


STALLED = """
import sys
from espha.protocol.child_side import Control
from espha.protocol.states import EngineState
control = Control()
for number in range(3000):
    control.report(EngineState.ACTIVE, bool(number % 2))
print("goes on", flush=True)
sys.stdin.read()
"""


def test_a_supervisor_that_does_not_listen_does_not_hold_its_child_up() -> None:
    """It is frozen, or waits for a processor; what it misses the next heartbeat says again."""
    unread, reported = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", STALLED],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=(reported,),
        env={**os.environ, "ESPHA_STATUS_FD": str(reported)},
    ) as child:
        os.close(reported)
        assert child.stdout is not None
        try:
            assert select.select([child.stdout], [], [], 20)[0], "it waits for its supervisor"
        finally:
            child.kill()
            os.close(unread)


def test_a_step_within_another_one_ends() -> None:
    doing = Doing()
    doing.begin(Step.WAITING)
    with doing.within(Step.REPLAYING, 4, 2, (Range("t.I", 0, 2),)):
        within = doing.told()
    assert within
    assert (within.step, within.inputs) == (Step.REPLAYING, (Range("t.I", 0, 2),))
    behind = doing.told()
    assert behind
    assert (behind.step, behind.turn) == (Step.WAITING, 2)


def test_a_long_step_that_gets_on_counts_as_begun_anew() -> None:
    doing = Doing()
    doing.moved()
    assert doing.told() is None
    doing.begin(Step.RUNNING, 7, 5000, (Range("t.I", 0, 5000),))
    before = doing.told()
    doing.moved()
    after = doing.told()
    assert before is not None
    assert after is not None
    assert after.turn == before.turn + 1
    same = {"turn": 0, "age_ms": 0}
    assert after.model_copy(update=same) == before.model_copy(update=same)


def test_who_notes_no_steps_tells_of_none() -> None:
    """An adapter: its supervisor goes by its heartbeat."""
    assert Doing().told() is None


def test_who_was_frozen_since_the_election_has_overslept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ESPHA_STATUS_FD", raising=False)
    control = Control()
    control._beat -= 60
    assert not control.overslept, "nobody elects it"
    control._fd = 99
    assert control.overslept, "its heartbeat has not come yet, since it woke up"
    control._beat = time.monotonic()
    assert not control.overslept
    control._woke_at = time.monotonic()
    assert control.overslept
    control._elected_at = time.monotonic()
    assert not control.overslept, "it was elected after it woke up"
