"""What goes over the wire between child, supervisor and whoever asks it."""

import json

import pytest
from pydantic import ValidationError

from espha.protocol.states import EndReason, EngineState, ExitCode, KillReason, Role
from espha.protocol.status import (
    ChildStatus,
    Counts,
    EngineProgress,
    InputProgress,
    Lag,
    OutputProgress,
    Progress,
    ReplicaStatus,
)

ENGINE = EngineProgress(
    sequence=9,
    epoch=2,
    active="engine-1",
    model="p@12ab",
    model_digest="12ab",
    replayed=4,
    batches=9,
    snapshot_sequence=7,
)


@pytest.mark.parametrize(
    "progress",
    [ENGINE, InputProgress(rows=3, line=4, offset=50), OutputProgress(rows=3, length=9), None],
)
def test_a_status_is_read_as_it_was_written(progress: Progress | None) -> None:
    child = ChildStatus(
        state=EngineState.FAILED, message="m", reason=EndReason.FENCED, progress=progress
    )
    assert ChildStatus.model_validate_json(child.encode()) == child
    replica = ReplicaStatus(
        name="a", role=Role.ACTIVE, kills={KillReason.SILENT: 2}, progress=progress
    )
    assert ReplicaStatus.model_validate_json(replica.model_dump_json()) == replica


def test_an_adapter_without_a_known_lag_shows_none() -> None:
    told = InputProgress(rows=3).with_lag(Lag(5, "bytes"))
    assert (told.lag, told.lag_unit) == (5, "bytes")
    assert told.with_lag(None) == InputProgress(rows=3)
    assert ReplicaStatus(name="a", progress=told).adapter == told
    assert ReplicaStatus(name="a", progress=ENGINE).adapter is None


def test_the_shown_status_is_flat() -> None:
    shown = json.loads(ReplicaStatus(name="a", progress=ENGINE).model_dump_json())
    assert (shown["name"], shown["state"], shown["sequence"]) == ("a", "starting", 9)
    assert (shown["component"], shown["snapshot_sequence"]) == ("engine", 7)
    assert "progress" not in shown


def test_a_newer_peer_may_say_more() -> None:
    told = ReplicaStatus(name="a", progress=ENGINE).model_dump() | {"weather": "fine"}
    assert ReplicaStatus.model_validate(told).engine == ENGINE


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"name": "a", "state": "dancing"},
        {"name": "a", "component": "engine"},
        {"name": "a", "component": "kettle"},
        {"name": "a", "in_sync": "perhaps"},
        [],
    ],
)
def test_what_is_no_status_is_not_taken_for_one(told: object) -> None:
    with pytest.raises(ValidationError):
        ReplicaStatus.model_validate_json(json.dumps(told))


def test_only_an_engine_has_the_progress_of_one() -> None:
    assert ReplicaStatus(name="a", progress=ENGINE).engine == ENGINE
    assert ReplicaStatus(name="a", progress=OutputProgress(rows=1)).engine is None
    assert ReplicaStatus(name="a").engine is None


def test_counts_grow_with_each_batch() -> None:
    once = Counts().plus(events_in=5, events_out=3, dead_letters=1)
    assert once.plus(events_in=1, events_out=0, dead_letters=0) == Counts(
        batches=2, events_in=6, events_out=3, dead_letters=1
    )


def test_an_end_says_in_which_state_and_with_which_code() -> None:
    assert (EndReason.MODEL.state, EndReason.MODEL.code) == (EngineState.REFUSED, ExitCode.REFUSED)
    assert {one.state for one in EndReason} == {one for one in EngineState if one.terminal}
