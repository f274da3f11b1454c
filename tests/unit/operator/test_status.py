"""The status: phases, columns, times of conditions, roles."""

from datetime import UTC, datetime, timedelta

import pytest

from espha.protocol.states import EngineState
from espha_operator.api import Condition, Status
from espha_operator.status.build import build, failed, roles
from espha_operator.status.facts import Promise
from support.status import engine_status
from unit.operator.samples import BROKEN, healthy, without

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)


CHANGED = {"demo-engine": Promise("another", "espha/engine:2")}
COMING = (
    engine_status("demo-engine-1", EngineState.ACTIVE),
    engine_status("demo-engine-2"),
    engine_status("demo-engine-0", EngineState.REPLAYING, in_sync=False),
)


def condition(status: Status, name: str) -> Condition:
    return next(one for one in status.conditions if one.type == name)


def test_the_columns_of_a_healthy_deployment() -> None:
    status = build(healthy(), Status(), NOW)
    assert (status.phase, status.active, status.engines) == ("Ready", "demo-engine-1", "3/3")
    assert (status.kafka, status.zookeeper) == ("3/3", "3/3")
    assert (status.model, status.failovers) == ("HA_Project@9f2c", 1)
    assert (status.engine_replicas, status.observed_generation) == (3, 7)


@pytest.mark.parametrize(
    ("changes", "phase"),
    [
        ({}, "Ready"),
        ({"model": BROKEN}, "Invalid"),
        ({"serving": 2}, "Degraded"),
        ({"model": BROKEN, "paused": True}, "Invalid"),
        ({"engines": ()}, "Unavailable"),
        ({"engines": (), "progressing": True}, "Starting"),
        ({"sets": without("demo-engine"), "engines": ()}, "Starting"),
        ({"promised": CHANGED}, "Updating"),
        ({"promised": CHANGED, "paused": True}, "Paused"),
        ({"engines": COMING}, "Recovering"),
        (
            {"engines": (*COMING[:2], engine_status("e", EngineState.DIVERGED, in_sync=False))},
            "Degraded",
        ),
        ({"engines": COMING, "serving": 2}, "Degraded"),
        ({"engines": COMING, "error": "no"}, "Degraded"),
        ({"engines": COMING, "progressing": True}, "Updating"),
    ],
)
def test_phases(changes: dict[str, object], phase: str) -> None:
    assert build(healthy(**changes), Status(), NOW).phase == phase


def test_a_condition_keeps_its_time_until_its_state_changes() -> None:
    first = build(healthy(serving=1), Status(), NOW)
    other_reason = build(healthy(serving=2), first, LATER)
    well = build(healthy(), other_reason, LATER)
    times = [
        condition(one, "ZooKeeperReady").last_transition_time for one in (first, other_reason, well)
    ]
    assert times == ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z", "2026-01-02T03:05:05Z"]
    assert condition(other_reason, "ZooKeeperReady").reason == "ServersMissing"


def test_nothing_new_gives_an_equal_status() -> None:
    """The operator writes only what has changed."""
    first = build(healthy(), Status(), NOW)
    read_back = Status.model_validate(first.model_dump(by_alias=True, exclude_none=True))
    assert build(healthy(), read_back, LATER) == read_back


def test_failovers_stay_while_no_engine_is_active() -> None:
    first = build(healthy(), Status(), NOW)
    between = build(healthy(engines=()), first, LATER)
    assert (between.failovers, between.active) == (1, None)


def test_after_a_failed_step_what_is_known_stays() -> None:
    first = build(healthy(), Status(), NOW)
    status = failed(first, "KeyError: 'spec'", 8, LATER)
    assert (status.phase, status.kafka, status.observed_generation) == ("Degraded", "3/3", 8)
    assert condition(status, "Ready").message == "KeyError: 'spec'"
    assert [one.type for one in status.conditions] == [one.type for one in first.conditions]
    assert failed(Status(), "KeyError: 'spec'", 8, LATER).conditions[-1].type == "Ready"


def test_the_newest_epoch_is_the_active_one() -> None:
    """For a moment after a take-over the frozen predecessor may still claim to be active."""
    engines = (
        engine_status("demo-engine-0", EngineState.ACTIVE, epoch=3),
        engine_status("demo-engine-1", EngineState.ACTIVE, epoch=2),
    )
    status = build(healthy(engines=engines), Status(), NOW)
    assert (status.active, status.failovers) == ("demo-engine-0", 2)


def test_only_changed_roles_are_labelled() -> None:
    labelled = {"demo-engine-0": "active", "demo-engine-1": None, "demo-engine-2": "standby"}
    assert roles(healthy(), labelled) == {"demo-engine-0": "standby", "demo-engine-1": "active"}


def test_a_late_answer_takes_the_service_from_nobody() -> None:
    """Until somebody says to be active, the label stays where it is."""
    labelled = {"demo-engine-0": "active", "demo-engine-1": None, "demo-engine-2": "standby"}
    assert roles(healthy(engines=()), labelled) == {"demo-engine-1": "standby"}
