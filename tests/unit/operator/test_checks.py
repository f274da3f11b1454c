"""Each check with the facts that make it fail, and what a user then reads."""

from typing import Any

import pytest

from espha.protocol.states import EngineState
from espha_operator.status.checks import judge
from espha_operator.status.facts import SetFacts, TopicFacts
from support.status import engine_status
from unit.operator.samples import BROKEN, FULL, deployment, healthy, without

ENGINES = healthy().engines
SHORT = {**FULL, "topics": {"prefix": "p", "retention": "1h"}}


# Conditions that are true for what is out of the ordinary.
UNUSUAL = ("Progressing", "Stalled", "Paused", "StorageLow")


def test_a_healthy_deployment_is_ready() -> None:
    verdicts = judge(healthy())
    usual = {name: name not in UNUSUAL for name in verdicts}
    assert {name: verdict.ok for name, verdict in verdicts.items()} == usual
    assert (verdicts["Ready"].reason, verdicts["Ready"].message) == (
        "AllReady",
        "demo-engine-1 is active.",
    )


CASES: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "broken model": ("ModelValid", {"model": BROKEN}, "InvalidModel", "line 3: <window-join"),
    "no quorum": ("ZooKeeperReady", {"serving": 1}, "NoQuorum", "1 of 3 servers serve; a majority"),
    "a server missing": ("ZooKeeperReady", {"serving": 2}, "ServersMissing", "2 of 3"),
    "a broker missing": (
        "KafkaReady",
        {"sets": {**healthy().sets, "demo-kafka": SetFacts(3, 3, 2)}},
        "BrokersMissing",
        "2 of 3 brokers are ready",
    ),
    "a broker has not joined": (
        "KafkaReady",
        {"topics": TopicFacts(brokers=2)},
        "BrokersMissing",
        "2 of 3 brokers have joined",
    ),
    "Kafka does not answer": (
        "KafkaReady",
        {"topics": TopicFacts(error="Kafka at k:9092: timed out")},
        "Unreachable",
        "timed out",
    ),
    "copies behind": (
        "KafkaReady",
        {"topics": TopicFacts(brokers=3, under_replicated=("p.M",))},
        "UnderReplicated",
        "p.M",
    ),
    "topics not asked for": ("TopicsReady", {"topics": None}, "WaitingForKafka", "when Kafka is"),
    "topics missing": (
        "TopicsReady",
        {"topics": TopicFacts(brokers=3, missing=("p.M",))},
        "Missing",
        "p.M",
    ),
    "too few brokers": (
        "TopicsReady",
        {"topics": TopicFacts(brokers=2, missing=("p.M",))},
        "TooFewBrokers",
        "Topics need 3 brokers, Kafka has 2.",
    ),
    "a topic with other settings": (
        "TopicsReady",
        {"topics": TopicFacts(brokers=3, wrong=("p.M: has 2 partitions, must have 1.",))},
        "WrongSettings",
        "p.M: has 2 partitions",
    ),
    "engines not started": ("EnginesReady", {"sets": without("demo-engine")}, "Waiting", "Starts"),
    "no engine active": (
        "EnginesReady",
        {"engines": (ENGINES[0], ENGINES[2])},
        "NoActiveEngine",
        "No engine is active",
    ),
    "an engine missing": (
        "EnginesReady",
        {"sets": {**healthy().sets, "demo-engine": SetFacts(3, 3, 2)}},
        "EnginesMissing",
        "2 of 3 engines are ready",
    ),
    "input that nobody can read": (
        "EnginesReady",
        {
            "engines": (
                *(one for one in ENGINES if one.state is not EngineState.ACTIVE),
                engine_status("demo-engine-1", EngineState.ACTIVE).model_copy(
                    update={"held_topic": "p.I", "held_s": 42.0}
                ),
            )
        },
        "InputHeld",
        "on topic p.I, for more than 30 s",
    ),
    "an engine replays": (
        "ReplicasInSync",
        {
            "engines": (
                *ENGINES[:2],
                engine_status("demo-engine-2", EngineState.REPLAYING, in_sync=False),
            )
        },
        "Behind",
        "demo-engine-2 (replaying)",
    ),
    "an engine says what it lacks": (
        "ReplicasInSync",
        {
            "engines": (
                *ENGINES[:2],
                engine_status("e2", EngineState.FAILED, in_sync=False, message="offset 5 is gone"),
            )
        },
        "Behind",
        "e2 (failed: offset 5 is gone)",
    ),
    "an engine is silent": ("ReplicasInSync", {"engines": ENGINES[:2]}, "NoAnswer", "2 of 3"),
    "an engine has diverged": (
        "ReplicasInSync",
        {
            "engines": (
                *ENGINES[:2],
                engine_status(
                    "e2",
                    EngineState.DIVERGED,
                    in_sync=False,
                    message="record 5",
                    diverged="record 5",
                ),
            )
        },
        "Diverged",
        "e2 (diverged: record 5)",
    ),
    "no snapshot, and records go": (
        "SnapshotsInReach",
        {"deployment": deployment(**SHORT)},
        "NoSnapshot",
        "Topics keep records for 1h, and no engine has a snapshot",
    ),
    "all snapshots are too old": (
        "SnapshotsInReach",
        {
            "deployment": deployment(**SHORT),
            "engines": tuple(one.model_copy(update={"snapshot_age_s": 3601.0}) for one in ENGINES),
        },
        "TooOld",
        "Topics keep records for 1h, and the newest snapshot is older",
    ),
    "an adapter is missing": (
        "AdaptersReady",
        {"sets": {**healthy().sets, "demo-input-memory": SetFacts(2, 2, 1)}},
        "AdaptersMissing",
        "input-memory (1 of 2)",
    ),
}


@pytest.mark.parametrize(
    ("condition", "changes", "reason", "message"), CASES.values(), ids=CASES.keys()
)
def test_what_is_amiss_is_named(
    condition: str, changes: dict[str, Any], reason: str, message: str
) -> None:
    verdicts = judge(healthy(**changes))
    assert not verdicts[condition].ok
    assert verdicts[condition].reason == reason
    assert message in verdicts[condition].message
    assert not verdicts["Ready"].ok


def test_ready_names_the_first_thing_amiss() -> None:
    verdicts = judge(healthy(serving=1, engines=()))
    assert verdicts["Ready"].reason == "NoQuorum"


def test_what_the_api_server_refuses_is_named() -> None:
    verdicts = judge(healthy(error="StatefulSet demo-kafka: forbidden"))
    assert (verdicts["Ready"].reason, verdicts["Ready"].message) == (
        "ApplyFailed",
        "StatefulSet demo-kafka: forbidden",
    )


def test_external_servers_need_no_pods() -> None:
    spec = {
        **FULL,
        "zookeeper": {"external": {"servers": ["zk:2181"]}},
        "kafka": {"external": {"bootstrapServers": ["k:9092"]}},
    }
    sets = without("demo-zookeeper", "demo-kafka")
    verdicts = judge(healthy(deployment=deployment(**spec), sets=sets, serving=0))
    assert verdicts["Ready"].ok
    assert verdicts["KafkaReady"].reason == verdicts["ZooKeeperReady"].reason == "External"


def test_nothing_waits_for_adapters_that_nobody_wants() -> None:
    assert judge(healthy(deployment=deployment()))["AdaptersReady"].ok


def test_one_snapshot_in_reach_is_enough() -> None:
    """The other engines can take it."""
    engines = (*ENGINES[:2], engine_status("demo-engine-2", snapshot_age_s=60.0))
    verdict = judge(healthy(deployment=deployment(**SHORT), engines=engines))["SnapshotsInReach"]
    assert (verdict.ok, verdict.reason) == (True, "InReach")


def test_a_divergence_stays_visible_when_it_is_over() -> None:
    engines = (*ENGINES[:2], engine_status("demo-engine-2", diverged="order record 7 differs"))
    verdict = judge(healthy(engines=engines))["ReplicasInSync"]
    assert verdict.ok
    assert "demo-engine-2 had diverged and was rebuilt (order record 7 differs)" in verdict.message
