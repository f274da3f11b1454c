"""What is wanted at which stage."""

from typing import Any

import pytest

from espha_operator.reconcile.plan import plan
from espha_operator.status.facts import Facts, TopicFacts
from unit.operator.samples import BROKEN, healthy, without

WORKERS = ("demo-engine", "demo-input-memory", "demo-output-result")


def sets(facts: Facts) -> list[str]:
    wanted = plan(facts)
    assert wanted is not None
    return [one["metadata"]["name"] for one in wanted if one["kind"] == "StatefulSet"]


def start(**changes: Any) -> Facts:
    return healthy(**{"sets": without(*WORKERS), "engines": (), **changes})


@pytest.mark.parametrize("facts", [start(model=BROKEN), healthy(model=BROKEN)], ids=["new", "runs"])
def test_an_invalid_model_changes_nothing(facts: Facts) -> None:
    assert plan(facts) is None


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
