"""A change of the model, as the operator sees it: what it asks for, says, makes and keeps."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from espha.model import model_digest
from espha.protocol.model_change import ModelAction
from espha.protocol.states import EngineState
from espha.protocol.status import ReplicaStatus
from espha.reader import read_project
from espha_operator.api.deployment import ModelVersion
from espha_operator.api.status import Status
from espha_operator.reconcile import models, versions
from espha_operator.resources import adapters, engines
from espha_operator.status.build import build
from espha_operator.status.facts import Facts, Verdict
from espha_operator.status.model_change import Change, decide, kept, model_rolled_out, running
from espha_operator.status.reasons import Reason
from support.models import SAMPLE
from support.status import engine_status
from unit.operator.samples import FULL, MODEL, deployment, healthy

NEW, OLD, OTHER = MODEL.digest, "01d0" + 60 * "0", "07e5" + 60 * "0"
ACTIVE, STANDBY, SHADOW = EngineState.ACTIVE, EngineState.STANDBY, EngineState.SHADOW


def engine(ordinal: int, state: EngineState, model: str = OLD, **fields: Any) -> ReplicaStatus:
    """An engine that runs a model, and what the order log says to it."""
    message = fields.pop("message", "")
    made = engine_status(
        f"demo-engine-{ordinal}",
        state,
        in_sync=state is not SHADOW,
        model_digest=model,
        message=message,
    )
    seen = {"events_in": 9, "batches": 9} if state is SHADOW else {}
    told = {"log_model": OLD, "wanted": model, **seen, **fields}
    assert made.engine
    return made.model_copy(update={"progress": made.engine.model_copy(update=told)})


def facts(*told: ReplicaStatus, **spec: Any) -> Facts:
    made = healthy(engines=told)
    return made.replace(deployment=deployment(**{**FULL, **spec}))


A, B = engine(0, ACTIVE), engine(1, STANDBY)


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        ([A, B, engine(2, STANDBY)], Change()),
        ([A, B, engine(2, EngineState.REPLAYING, NEW)], Change()),
        ([A, B, engine(2, SHADOW, NEW)], Change(ModelAction.SWITCH, NEW)),
        ([A, B, engine(2, SHADOW, NEW, dead_letters=8)], Change(ModelAction.SWITCH, NEW)),
        ([A, B, engine(2, SHADOW, NEW, dead_letters=9)], Change()),
        ([A, B, engine(2, SHADOW, NEW, dead_letters=18)], Change()),
        ([A, B, engine(2, SHADOW, NEW, events_in=0, batches=1)], Change()),
        (
            [A, B, engine(2, SHADOW, NEW, events_in=0, batches=2)],
            Change(ModelAction.SWITCH, NEW),
        ),
        ([A, B, engine(2, SHADOW, OTHER)], Change()),
        ([engine(0, ACTIVE, shadow=OTHER), B], Change(ModelAction.END, OTHER)),
        ([engine(0, ACTIVE, NEW, log_model=NEW, shadow=OLD)], Change(ModelAction.END, OLD)),
        ([engine(0, ACTIVE, NEW, log_model=NEW)], Change()),
        ([B, engine(2, SHADOW, NEW)], Change()),
    ],
    ids=[
        "nobody has it yet",
        "it catches up",
        "in step",
        "it takes something of its input",
        "it refuses all input",
        "two windows refuse all input",
        "it has had no input",
        "no input comes",
        "another one is in step",
        "another one is the next one",
        "what was next is wanted no more",
        "done",
        "nobody leads",
    ],
)
def test_what_is_asked_for(told: list[ReplicaStatus], wanted: Change) -> None:
    assert decide(facts(*told)) == wanted


def test_a_single_engine_goes_over_when_its_pod_has_the_new_model() -> None:
    alone = facts(engine(0, ACTIVE, wanted=NEW), engines={"replicas": 1})
    assert decide(alone) == Change(ModelAction.SWITCH, NEW, blind=True)
    assert decide(facts(engine(0, ACTIVE, wanted=OLD), engines={"replicas": 1})) == Change()


@pytest.mark.parametrize(
    ("told", "reason", "said"),
    [
        ([A, B], Reason.NO_SHADOW, "No engine has been given model 9f2c yet. demo-engine-0 stays"),
        (
            [A, B, engine(2, EngineState.REPLAYING, NEW, lag_records=7)],
            Reason.IN_SHADOW,
            "demo-engine-2 runs model 9f2c in the shadow: 7 order records behind.",
        ),
        (
            [A, B, engine(2, EngineState.FAILED, NEW, message="offset 3: ZeroDivisionError")],
            Reason.SHADOW_FAILED,
            "demo-engine-2 cannot run model 9f2c: offset 3: ZeroDivisionError. demo-engine-0 stays "
            "active with model 01d0.",
        ),
        (
            [A, B, engine(2, SHADOW, NEW, events_in=2345, dead_letters=2345)],
            Reason.SHADOW_FAILED,
            "demo-engine-2 runs model 9f2c in the shadow, and has made 2000 or more dead letters "
            "of 2000 or more input records. demo-engine-0 stays active with model 01d0.",
        ),
        (
            [A, B, engine(2, SHADOW, NEW, events_in=0, batches=0)],
            Reason.IN_SHADOW,
            "Model 9f2c is in step, and has had no input yet. demo-engine-0 stays active",
        ),
        ([A, B, engine(2, SHADOW, NEW)], Reason.SWITCHING, "Model 9f2c is in step"),
        (
            [engine(2, ACTIVE, NEW, log_model=NEW), B],
            Reason.FOLLOWING,
            "HA_Project@9f2c leads; demo-engine-1 go over to it.",
        ),
        (
            [engine(2, ACTIVE, NEW, log_model=NEW), engine(1, STANDBY, NEW, log_model=NEW)],
            Reason.ROLLED_OUT,
            "All engines that answer run HA_Project@9f2c.",
        ),
        (
            [engine(2, ACTIVE, NEW, log_model=NEW, since=7)],
            Reason.ROLLED_OUT,
            "run HA_Project@9f2c. Its state began empty behind order record 7.",
        ),
    ],
)
def test_how_far_it_is(told: list[ReplicaStatus], reason: Reason, said: str) -> None:
    verdict = model_rolled_out(facts(*told))
    assert (verdict.reason, verdict.ok) == (reason, reason is Reason.ROLLED_OUT)
    assert said in verdict.message


def test_the_status_names_the_model_that_leads() -> None:
    """Also while another one is wanted, and cannot lead."""
    seen, now = facts(A, B), datetime.now(UTC)
    known = seen.replace(versions=(ModelVersion(OLD, "<project/>"),))
    assert build(known, Status(), now).model == "p@01d0"
    assert build(seen, Status(), now).model == MODEL.label


def test_a_comment_changes_nothing() -> None:
    """It restarted all engines and adapters."""
    commented = SAMPLE.replace("<windows>", "<!-- a word --> <windows>")
    made = deployment(**FULL)
    first = models.check(SAMPLE, "x", made)
    again = models.check(commented, "x", made)
    assert not isinstance(first, Verdict) and not isinstance(again, Verdict)
    known = (ModelVersion(first.digest, first.xml, "1"),)
    again = versions.settled(again, known)
    assert again == first
    assert engines.engines(made, again) == engines.engines(made, first)
    assert adapters.adapters(made, again.digest) == adapters.adapters(made, first.digest)
    assert first.digest == model_digest(read_project(commented))


def test_a_version_cannot_be_changed_and_has_its_own_name() -> None:
    """Pods of the old model must never read the new one."""
    made = deployment()
    old = replace(MODEL, digest=OLD)
    first, second = engines.model(made, MODEL, [ModelVersion(OLD, "<old/>")])
    assert {one["metadata"]["name"] for one in (first, second)} == {
        "demo-model-9f2c00000000",
        "demo-model-01d000000000",
    }
    assert first["immutable"] is second["immutable"] is True
    mounts = [_config(one) for one in (engines.engines(made, old), engines.engines(made, MODEL))]
    assert mounts == ["demo-model-01d000000000", "demo-model-9f2c00000000"]


def _config(objects: list[dict[str, Any]]) -> str:
    (pods,) = (one for one in objects if one["kind"] == "StatefulSet")
    volumes = pods["spec"]["template"]["spec"]["volumes"]
    return str(next(one for one in volumes if one["name"] == "config")["configMap"]["name"])


def test_adapters_stay_with_the_model_that_leads() -> None:
    known = (ModelVersion(NEW, "<new/>", "2"), ModelVersion(OLD, "<old/>", "1"))
    before = facts(A, B, engine(2, SHADOW, NEW)).replace(versions=known)
    assert running(before) == OLD
    assert running(facts(engine(2, ACTIVE, NEW, log_model=NEW)).replace(versions=known)) == NEW
    assert running(facts()) == NEW
    assert running(before.replace(engines=(B,), led=OLD)) == OLD
    assert running(facts(engine(2, ACTIVE, NEW, log_model=NEW)).replace(led=OLD)) == NEW


def test_versions_that_somebody_needs_stay() -> None:
    many = tuple(ModelVersion(f"{number:064x}", "<x/>", str(number)) for number in range(9, 0, -1))
    used = ModelVersion(OLD, "<old/>", "0")
    stay = kept(facts(A).replace(versions=(*many, used)))
    assert stay == (*many[:5], used)
    assert kept(facts().replace(versions=(*many, used), led=OLD)) == stay


VERSIONS = (ModelVersion(NEW, "<new/>", "2"), ModelVersion(OLD, "<old/>", "1"))


@pytest.mark.parametrize("asked", ["01d0", OLD[:12], OLD])
def test_a_roll_back_runs_an_earlier_version(asked: str) -> None:
    made = replace(deployment(), rollback=asked)
    assert versions.rolled_back(made, VERSIONS) == ("<old/>", "model 01d000000000")


@pytest.mark.parametrize("asked", ["01", "ffff", "previous"])
def test_a_roll_back_to_nothing_says_what_there_is(asked: str) -> None:
    verdict = versions.rolled_back(replace(deployment(), rollback=asked), VERSIONS)
    assert isinstance(verdict, Verdict)
    assert verdict.reason is Reason.UNKNOWN_VERSION
    assert "there are: 9f2c00000000, 01d000000000" in verdict.message


@pytest.mark.parametrize(
    ("label", "digest"), [("p@01d0", OLD), ("p@beef", ""), ("", ""), (None, "")]
)
def test_the_status_tells_which_model_led(label: str | None, digest: str) -> None:
    assert versions.named(VERSIONS, label) == digest


def test_without_the_annotation_the_spec_counts() -> None:
    assert versions.rolled_back(deployment(), VERSIONS) is None
