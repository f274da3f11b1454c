"""What is wanted at which stage."""

from dataclasses import replace
from typing import Any

import pytest

from espha_operator.reconcile.plan import kept, plan
from espha_operator.status.facts import Facts, TopicFacts
from unit.operator.samples import BROKEN, MODEL, healthy, without

WORKERS = ("demo-engine", "demo-input-memory", "demo-output-result")


def sets(facts: Facts) -> list[str]:
    wanted = plan(facts)
    assert wanted is not None
    return [one["metadata"]["name"] for one in wanted if one["kind"] == "StatefulSet"]


def start(**changes: Any) -> Facts:
    return healthy(**{"sets": without(*WORKERS), "engines": (), **changes})


@pytest.mark.parametrize("facts", [start(model=BROKEN), healthy(model=BROKEN)], ids=["new", "runs"])
def test_without_any_valid_model_nothing_changes(facts: Facts) -> None:
    assert plan(facts) is None


def test_what_runs_goes_on_with_the_model_that_was_valid_last() -> None:
    assert plan(healthy(model=BROKEN, last_good=MODEL)) == plan(healthy())


def test_an_adapter_that_does_not_fit_the_last_model_is_left_as_it_is() -> None:
    facts = healthy(model=BROKEN, last_good=replace(MODEL, outputs=("cq/other",)))
    assert sets(facts) == ["demo-zookeeper", "demo-kafka", "demo-engine", "demo-input-memory"]
    assert kept(facts) == {"demo-output-result", "demo-adapter-headless"}
    assert kept(healthy()) == frozenset()


@pytest.mark.parametrize(
    "changes",
    [
        {"topics": None},
        {"topics": TopicFacts(brokers=3, missing=("p.M",))},
        {"topics": TopicFacts(error="no answer")},
        {"topics": TopicFacts(brokers=3, wrong=("p.M: …",))},
        {"serving": 1},
    ],
    ids=["not asked", "missing", "no Kafka", "wrong", "no quorum"],
)
def test_engines_wait_for_topics_and_quorum(changes: dict[str, Any]) -> None:
    assert sets(start(**changes)) == ["demo-zookeeper", "demo-kafka"]


def test_engines_start_before_adapters() -> None:
    assert sets(start()) == ["demo-zookeeper", "demo-kafka", "demo-engine"]


def test_adapters_start_when_an_engine_is_active() -> None:
    facts = healthy(sets=without("demo-input-memory", "demo-output-result"))
    assert sets(facts) == ["demo-zookeeper", "demo-kafka", *WORKERS]


@pytest.mark.parametrize(
    "changes",
    [{"serving": 0}, {"topics": TopicFacts(error="no answer")}, {"engines": ()}],
    ids=["no quorum", "no Kafka", "no engine"],
)
def test_what_runs_stays(changes: dict[str, Any]) -> None:
    assert sets(healthy(**changes)) == ["demo-zookeeper", "demo-kafka", *WORKERS]


@pytest.mark.parametrize(
    "changes",
    [{"serving": 1}, {"topics": TopicFacts(brokers=3, wrong=("p.M: …",))}],
    ids=["no quorum", "wrong"],
)
def test_what_has_started_stays_while_its_set_is_made_anew(changes: dict[str, Any]) -> None:
    """Its pods have no owner then, so nobody sees them; their Service is still there."""
    started = start(services=frozenset(["demo-engine-headless", "demo-adapter-headless"]))
    assert sets(started.replace(**changes)) == ["demo-zookeeper", "demo-kafka", *WORKERS]


def test_a_guarded_components_budget_allows_nothing() -> None:
    def budgets(facts: Facts) -> dict[str, int]:
        return {
            thing["metadata"]["name"]: thing["spec"]["maxUnavailable"]
            for thing in plan(facts) or []
            if thing["kind"] == "PodDisruptionBudget"
        }

    usual = budgets(healthy())
    assert set(usual.values()) == {1}
    guarded = budgets(healthy(guarded=frozenset(["kafka"])))
    assert guarded == {**usual, "demo-kafka": 0}
