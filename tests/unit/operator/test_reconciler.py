"""Whole steps against an API server in memory; only pods and Kafka are played."""

import copy
from typing import Any

import pytest
from unit.operator import samples

from espha_operator.api.images import Images
from espha_operator.reconcile import models, observe, reconciler
from espha_operator.reconcile.reconciler import Reconciler
from espha_operator.status.facts import TopicFacts

Object = dict[str, Any]


class MemoryCluster:
    """Keeps objects by kind and name; an applied StatefulSet has all its pods ready at once."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Object] = {}
        self.writes: list[str] = []

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        return copy.deepcopy(self.objects.get((kind, name)))

    def list(self, kind: str, namespace: str, selector: str) -> list[Object]:
        return [copy.deepcopy(one) for (its, _), one in self.objects.items() if its == kind]

    def apply(self, wanted: Object) -> None:
        kind, name = wanted["kind"], wanted["metadata"]["name"]
        self.writes.append(f"{kind} {name}")
        made = copy.deepcopy(wanted)
        made["metadata"]["generation"] = 1
        if kind == "StatefulSet":
            count = wanted["spec"]["replicas"]
            made["status"] = {"observedGeneration": 1, "replicas": count, "readyReplicas": count}
            for ordinal in range(count):
                self._pod(f"{name}-{ordinal}", wanted["spec"]["template"]["metadata"]["labels"])
        self.objects[kind, name] = made

    def apply_status(self, namespace: str, name: str, status: Object) -> None:
        self.writes.append("status")
        self.objects["EspHaDeployment", name]["status"] = status

    def patch(self, kind: str, namespace: str, name: str, change: Object) -> None:
        self.writes.append(f"patch {kind} {name}")
        self.objects[kind, name]["metadata"]["labels"].update(change["metadata"]["labels"])

    def delete(self, kind: str, namespace: str, name: str) -> None:
        self.writes.append(f"delete {kind} {name}")
        del self.objects[kind, name]

    def _pod(self, name: str, labels: dict[str, str]) -> None:
        pod = {"metadata": {"name": name, "labels": dict(labels)}, "status": {"podIP": "10.0.0.1"}}
        self.objects.setdefault(("Pod", name), pod)


class Keeper:
    """A Kafka whose topics are all there."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def ensure(self, *_: Any) -> TopicFacts:
        return TopicFacts(brokers=3)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> MemoryCluster:
    monkeypatch.setattr(reconciler, "TopicKeeper", Keeper)
    monkeypatch.setattr(
        models, "check", lambda xml, *_: samples.BROKEN if "bad" in xml else samples.MODEL
    )
    monkeypatch.setattr(observe, "ask_zookeeper", lambda pod: True)
    monkeypatch.setattr(
        observe,
        "ask_engine",
        lambda pod: observe.engine_facts(
            pod.name,
            {
                "state": "active" if pod.name.endswith("-0") else "standby",
                "in_step": True,
                "epoch": 1,
            },
        ),
    )
    made = MemoryCluster()
    made.objects["EspHaDeployment", "demo"] = {
        "metadata": {"name": "demo", "namespace": "shop", "uid": "uid-1", "generation": 1},
        "spec": {"model": {"inline": "<project/>"}, **copy.deepcopy(samples.FULL)},
    }
    return made


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def steps(cluster: MemoryCluster, clock: Clock) -> Reconciler:
    return Reconciler(cluster, "shop", "demo", Images(), clock)  # type: ignore[arg-type]


def until_quiet(steps: Reconciler, cluster: MemoryCluster, clock: Clock) -> None:
    for _ in range(20):
        cluster.writes.clear()
        clock.now += 3
        steps.step()
        if not cluster.writes:
            return
    raise AssertionError(f"still writing: {cluster.writes}")


def status(cluster: MemoryCluster) -> Object:
    found: Object = cluster.objects["EspHaDeployment", "demo"]["status"]
    return found


def test_a_deployment_becomes_ready_and_then_costs_no_writes(
    cluster: MemoryCluster, steps: Reconciler, clock: Clock
) -> None:
    until_quiet(steps, cluster, clock)
    assert (status(cluster)["phase"], status(cluster)["active"]) == ("Ready", "demo-engine-0")
    labels = cluster.objects["Pod", "demo-engine-0"]["metadata"]["labels"]
    assert labels["espha.dev/role"] == "active"


def test_what_others_delete_comes_back(
    cluster: MemoryCluster, steps: Reconciler, clock: Clock
) -> None:
    until_quiet(steps, cluster, clock)
    del cluster.objects["Service", "demo-kafka"]
    clock.now += 60
    steps.step()
    assert ("Service", "demo-kafka") in cluster.objects


def test_an_adapter_that_nobody_wants_any_more_goes(
    cluster: MemoryCluster, steps: Reconciler, clock: Clock
) -> None:
    until_quiet(steps, cluster, clock)
    foreign = {"metadata": {"name": "mine", "labels": {}, "ownerReferences": [{"uid": "other"}]}}
    cluster.objects["ConfigMap", "mine"] = foreign
    cluster.objects["EspHaDeployment", "demo"]["spec"]["adapters"]["outputs"] = []
    steps.step()
    assert ("StatefulSet", "demo-output-result") not in cluster.objects
    assert ("StatefulSet", "demo-input-memory") in cluster.objects
    assert ("ConfigMap", "mine") in cluster.objects


def test_a_model_that_becomes_invalid_changes_nothing_that_runs(
    cluster: MemoryCluster, steps: Reconciler, clock: Clock
) -> None:
    until_quiet(steps, cluster, clock)
    running = {key for key in cluster.objects if key[0] == "StatefulSet"}
    cluster.objects["EspHaDeployment", "demo"]["spec"]["model"] = {"inline": "<bad/>"}
    until_quiet(steps, cluster, clock)
    assert {key for key in cluster.objects if key[0] == "StatefulSet"} == running
    assert cluster.objects["ConfigMap", "demo-model"]["data"]["model.xml"] == "<project/>"
    assert status(cluster)["phase"] == "Invalid"


@pytest.mark.parametrize(
    ("data", "reason", "message"),
    [
        (None, "NoConfigMap", 'There is no ConfigMap "m".'),
        ({"other": ""}, "NoKey", 'The ConfigMap "m" has no key "model.xml".'),
        ({"model.xml": "<bad/>"}, "InvalidModel", "line 3"),
    ],
)
def test_a_bad_config_map_starts_nothing_until_it_is_right(
    cluster: MemoryCluster,
    steps: Reconciler,
    clock: Clock,
    data: dict[str, str] | None,
    reason: str,
    message: str,
) -> None:
    cluster.objects["EspHaDeployment", "demo"]["spec"]["model"] = {"configMap": {"name": "m"}}
    if data is not None:
        cluster.objects["ConfigMap", "m"] = {"metadata": {"name": "m"}, "data": data}
    until_quiet(steps, cluster, clock)
    first = status(cluster)["conditions"][0]
    assert (first["status"], first["reason"]) == ("False", reason)
    assert message in first["message"]
    assert not [key for key in cluster.objects if key[0] == "StatefulSet"]
    good = {"metadata": {"name": "m"}, "data": {"model.xml": "<project/>"}}
    cluster.objects["ConfigMap", "m"] = good
    until_quiet(steps, cluster, clock)
    assert status(cluster)["phase"] == "Ready"


def test_a_spec_that_cannot_be_read_is_reported(cluster: MemoryCluster, steps: Reconciler) -> None:
    cluster.objects["EspHaDeployment", "demo"]["spec"]["zookeeper"] = {"tickTime": 501}
    steps.step()
    ready = status(cluster)["conditions"][-1]
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "False", "InvalidSpec")
    assert "spec.zookeeper.tickTime" in ready["message"]


def test_a_deployment_that_is_going_is_left_alone(
    cluster: MemoryCluster, steps: Reconciler
) -> None:
    cluster.objects["EspHaDeployment", "demo"]["metadata"]["deletionTimestamp"] = "now"
    steps.step()
    assert cluster.writes == []
