"""A pod is replaced with its volume only when the others have all that it has."""

from typing import Any

import pytest

from espha.protocol.states import EngineState
from espha_operator.reconcile import replacing
from espha_operator.status import replacing as status
from espha_operator.status.facts import Facts
from espha_operator.status.replacing import Others, Replacement
from espha_operator.status.storage import Claim
from support.status import engine_status
from unit.operator.samples import deployment, healthy

Object = dict[str, Any]
CLAIMS = [
    Claim("data-demo-kafka-1", "kafka", "u-1"),
    Claim("data-demo-zookeeper-1", "zookeeper", "u-2"),
    Claim("snapshots-demo-engine-0", "engine", "u-3"),
]
SERVING = [f"demo-zookeeper-{number}" for number in range(3)]
WELL = Others(serving=SERVING)
PODS = {"demo-input-memory-0": "p-1", "demo-output-result-0": "p-2"}


def decide(
    request: str,
    facts: Facts,
    claims: list[Claim],
    others: Others,
    pods: dict[str, str] | None = None,
) -> Replacement:
    return status.decide(request, facts, claims, others, PODS if pods is None else pods)


@pytest.mark.parametrize("pod", ["demo-kafka-1", "demo-zookeeper-1", "demo-engine-0"])
def test_a_request_goes_from_its_name_to_a_new_volume(pod: str) -> None:
    begun = decide(pod, healthy(), CLAIMS, WELL)
    assert begun.action == "name"
    assert begun.value.startswith(f"{pod}@u-")
    assert decide(begun.value, healthy(), CLAIMS, Others()).action == "delete"
    fresh = [Claim(one.name, one.component, "new") for one in CLAIMS]
    assert decide(begun.value, healthy(), fresh, Others()).action == "done"
    assert decide(begun.value, healthy(), [], Others()).action == "done"


@pytest.mark.parametrize(
    ("pod", "others", "why"),
    [
        ("demo-kafka-1", Others(absent={1, 2}), "copies on the brokers 2 are behind"),
        ("demo-kafka-1", Others(error="no answer"), "not known: no answer"),
        ("demo-zookeeper-1", Others(serving=SERVING[:2]), "1 of 3 ZooKeeper servers serve"),
        ("demo-kafka-2", WELL, "has no volume data-demo-kafka-2"),
        ("demo-kafka-7", WELL, '"demo-kafka-7" is no pod of this deployment'),
        ("demo-input-memory-2", WELL, "is no pod of this deployment"),
        ("demo-input-other-0", WELL, "is no pod of this deployment"),
        ("demo-input-memory-1", WELL, "There is no pod demo-input-memory-1 now."),
        ("other-kafka-1", WELL, "is no pod of this deployment"),
    ],
)
def test_what_others_do_not_hold_stays(pod: str, others: Others, why: str) -> None:
    refused = decide(pod, healthy(), CLAIMS, others)
    assert refused.action == "refused"
    assert why in refused.message


@pytest.mark.parametrize("pod", PODS)
def test_a_pod_of_an_adapter_goes_alone(pod: str) -> None:
    """It has no volume of its own; the request names the pod, so the next one stays."""
    begun = decide(pod, healthy(), CLAIMS, Others(error="no answer"))
    assert (begun.action, begun.value, begun.claim) == ("name", f"{pod}@{PODS[pod]}", "")
    assert begun.message == f"{pod} is deleted, to be made anew."
    going = decide(begun.value, healthy(), CLAIMS, WELL)
    assert going == Replacement("delete", begun.value, pod)
    for after in ({pod: "p-9"}, {}):
        assert decide(begun.value, healthy(), CLAIMS, WELL, after).action == "done"


def test_a_broker_that_lags_itself_may_go() -> None:
    assert decide("demo-kafka-1", healthy(), CLAIMS, Others(absent={1})).action == "name"


def test_the_only_copy_stays() -> None:
    single = healthy(deployment=deployment(kafka={"replicas": 1}))
    claims = [Claim("data-demo-kafka-0", "kafka", "u")]
    assert "the only copy" in decide("demo-kafka-0", single, claims, WELL).message


def test_an_engine_stays_while_no_other_one_is_in_sync() -> None:
    engines = (
        engine_status("demo-engine-0", EngineState.ACTIVE),
        engine_status("demo-engine-1", EngineState.REPLAYING, in_sync=False),
    )
    refused = decide("demo-engine-0", healthy(engines=engines), CLAIMS, WELL)
    assert "no other engine is in sync" in refused.message


class _Cluster:
    """Writes down what is done."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    def patch(self, kind: str, namespace: str, name: str, change: Object) -> None:
        self.done.append(change["metadata"]["annotations"]["espha.dev/replace"])

    def delete(self, kind: str, namespace: str, name: str, **how: Any) -> None:
        self.done.append((kind, name, how))

    def create(self, made: Object) -> None:
        self.done.append((made["type"], made["reason"]))


def pod(**meta: Any) -> Object:
    return {"metadata": {"name": "demo-kafka-1", "namespace": "shop", "uid": "p-1", **meta}}


RESOURCE = {"metadata": {"name": "demo", "namespace": "shop", "uid": "uid-1"}}
DELETE = Replacement("delete", "demo-kafka-1@u-1", "demo-kafka-1", "data-demo-kafka-1")
CLAIM_GONE = ("PersistentVolumeClaim", "data-demo-kafka-1", {"uid": "u-1"})


@pytest.mark.parametrize(
    ("there", "done"),
    [
        (None, []),
        (pod(), [("Pod", "demo-kafka-1", {"uid": "p-1"})]),
        (pod(deletionTimestamp="2999-01-01T00:00:00Z"), []),
        # its node would have ended it long ago
        (
            pod(deletionTimestamp="2020-01-01T00:00:00Z"),
            [("Pod", "demo-kafka-1", {"uid": "p-1", "grace": 0})],
        ),
    ],
)
def test_pod_and_claim_go_by_force_where_the_node_is_dead(
    there: Object | None, done: list[Any]
) -> None:
    cluster = _Cluster()
    replacing.follow(cluster, RESOURCE, there, DELETE)  # type: ignore[arg-type]
    assert cluster.done == [CLAIM_GONE, *done]


def test_no_claim_goes_with_a_pod_of_an_adapter() -> None:
    """And by force it goes only where its node is overdue, like any other."""
    next_ = Replacement("delete", "demo-kafka-1@p-1", "demo-kafka-1")
    for there, how in (
        (pod(), {"uid": "p-1"}),
        (pod(deletionTimestamp="2020-01-01T00:00:00Z"), {"uid": "p-1", "grace": 0}),
    ):
        cluster = _Cluster()
        replacing.follow(cluster, RESOURCE, there, next_)  # type: ignore[arg-type]
        assert cluster.done == [("Pod", "demo-kafka-1", how)]


@pytest.mark.parametrize(
    ("next_", "done"),
    [
        (Replacement("name", "demo-kafka-1@u-1"), ["demo-kafka-1@u-1", ("Normal", "Replacing")]),
        (Replacement("done", message="x"), [None, ("Normal", "Replaced")]),
        (Replacement("refused", message="x"), [None, ("Warning", "ReplaceRefused")]),
    ],
)
def test_the_annotation_stays_until_it_is_done(next_: Replacement, done: list[Any]) -> None:
    cluster = _Cluster()
    replacing.follow(cluster, RESOURCE, None, next_)  # type: ignore[arg-type]
    assert cluster.done == done
