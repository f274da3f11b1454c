"""Conditions of the whole: in service, on its way, stuck, held, whole."""

from typing import Any

import pytest

from espha.protocol.states import EndReason, EngineState
from espha_operator.status.checks import judge
from espha_operator.status.facts import Facts, Promise, SetFacts, TopicFacts, Verdict
from espha_operator.status.reasons import Reason
from support.status import engine_status
from unit.operator.samples import BROKEN, MODEL, healthy, without

WANTED = Promise("new", "espha/engine:2")
ACTIVE = engine_status("demo-engine-1", EngineState.ACTIVE)


def shown(facts: Facts) -> dict[str, tuple[bool, str]]:
    """Conditions of the whole, with their reasons."""
    verdicts = judge(facts)
    every = ("Available", "Progressing", "Stalled", "Paused", "Ready")
    return {name: (verdicts[name].ok, verdicts[name].reason.value) for name in every}


def engines(**of: Any) -> Facts:
    """A deployment that is healthy, but for its StatefulSet of engines."""
    facts = {"wanted": 3, "exist": 3, "ready": 3, "applied": "new", **of}
    sets = {**healthy().sets, "demo-engine": SetFacts(**facts)}
    return healthy(sets=sets, promised={"demo-engine": WANTED})


def test_a_healthy_deployment() -> None:
    assert shown(engines()) == {
        "Available": (True, "Committing"),
        "Progressing": (False, "Complete"),
        "Stalled": (False, "Moving"),
        "Paused": (False, "NotPaused"),
        "Ready": (True, "AllReady"),
    }


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (engines(applied="old"), "demo-engine is not yet what the spec says."),
        (engines(applied=""), "demo-engine is not yet what the spec says."),
        (engines(behind=2), "demo-engine: 1 of 3 pods are up to date."),
        (
            engines(behind=2).replace(rolling="demo-engine-1 is restarted."),
            "demo-engine-1 is restarted. demo-engine: 1 of 3 pods are up to date.",
        ),
        (engines(exist=4), "demo-engine: 4 pods are there, 3 are wanted."),
        (
            engines().replace(images={"demo-engine-2": "espha/engine:1", "demo-kafka-0": "k"}),
            "demo-engine-2 runs the image espha/engine:1.",
        ),
        (
            engines().replace(
                engines=(
                    *healthy().engines[:2],
                    engine_status("demo-engine-2", model_digest="aaaa"),
                )
            ),
            "demo-engine-2 runs the model p@aaaa.",
        ),
    ],
)
def test_what_does_not_run_everywhere_is_not_ready(facts: Facts, message: str) -> None:
    seen = shown(facts)
    assert seen["Available"] == (True, "Committing")
    assert seen["Progressing"] == (True, "RollingOut")
    assert seen["Ready"] == (False, "RollingOut")
    assert judge(facts)["Ready"].message == message


def test_an_engine_that_has_not_spoken_yet_runs_no_other_model() -> None:
    silent = engine_status("demo-engine-2", EngineState.STARTING, in_sync=False)
    facts = engines().replace(
        engines=(*healthy().engines[:2], silent.model_copy(update={"progress": None}))
    )
    assert shown(facts)["Progressing"] == (False, "Complete")


def test_a_standby_that_comes_back_leaves_the_deployment_in_service() -> None:
    replaying = engine_status("demo-engine-2", EngineState.REPLAYING, in_sync=False)
    seen = shown(engines().replace(engines=(*healthy().engines[:2], replaying)))
    assert seen == {
        "Available": (True, "Committing"),
        "Progressing": (False, "Complete"),
        "Stalled": (False, "Moving"),
        "Paused": (False, "NotPaused"),
        "Ready": (False, "Behind"),
    }


def test_a_deployment_is_on_its_way_until_it_was_ready_once() -> None:
    started = engines(ready=2).replace(progressing=True)
    assert shown(started)["Progressing"] == (True, "Starting")
    assert shown(engines().replace(progressing=True))["Progressing"] == (False, "Complete")
    assert shown(healthy(sets=without("demo-engine")))["Progressing"] == (True, "Starting")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"engines": ()}, "NoAnswer"),
        ({"engines": (healthy().engines[0],)}, "NoActiveEngine"),
        ({"sets": without("demo-engine"), "engines": ()}, "NoActiveEngine"),
        ({"engines": (ACTIVE.model_copy(update={"kafka_reachable": False}),)}, "NotCommitting"),
        (
            {"engines": (ACTIVE, healthy().engines[0].model_copy(update={"unordered_s": 10.5}))},
            "NotCommitting",
        ),
    ],
)
def test_what_does_not_commit_is_not_available(changes: dict[str, Any], reason: str) -> None:
    assert shown(healthy(**changes))["Available"] == (False, reason)


def test_input_may_wait_as_long_as_a_failover_takes() -> None:
    waiting = healthy().engines[0].model_copy(update={"unordered_s": 2.0})
    assert shown(healthy(engines=(ACTIVE, waiting)))["Available"] == (True, "Committing")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model": BROKEN}, "InvalidModel"),
        ({"model": BROKEN, "last_good": MODEL}, "InvalidModel"),
        ({"model": Verdict(Reason.NO_CONFIG_MAP, "none"), "last_good": MODEL}, "NoConfigMap"),
        ({"error": "StatefulSet demo-kafka: forbidden"}, "ApplyFailed"),
        ({"topics": TopicFacts(brokers=3, wrong=("p.M: …",))}, "WrongSettings"),
        (
            {
                "engines": (
                    ACTIVE,
                    engine_status("e", EngineState.DOWN, in_sync=False).model_copy(
                        update={"reason": EndReason.MODEL}
                    ),
                )
            },
            "EnginesRefuse",
        ),
    ],
)
def test_what_needs_somebody_is_stalled(changes: dict[str, Any], reason: str) -> None:
    seen = shown(healthy(**changes).replace(progressing=True))
    assert seen["Stalled"] == (True, reason)
    assert seen["Progressing"] == (False, reason)
    assert seen["Ready"] == (False, reason)
    assert seen["Available"][0]


def test_a_pause_hides_nothing() -> None:
    """What was ready stays ready, until something else is wanted."""
    seen = shown(engines().replace(paused=True))
    assert (seen["Paused"], seen["Ready"]) == ((True, "Paused"), (True, "AllReady"))
    changed = shown(engines(applied="old").replace(paused=True))
    assert changed["Ready"] == (False, "Paused")
    assert changed["Progressing"] == (False, "Paused")
    assert changed["Available"] == (True, "Committing")


def test_long_lists_are_cut() -> None:
    facts = engines().replace(images={f"demo-engine-{number}": "x:1" for number in range(5)})
    assert judge(facts)["Ready"].message.endswith("demo-engine-2 runs the image x:1. And 2 more.")
