"""Whole steps against an API server in memory; only pods and Kafka are played."""

import copy
from base64 import b64encode
from typing import Any

import pytest

from espha.protocol.states import EngineState
from espha_operator.api.images import Images
from espha_operator.reconcile import models, observe, reconciler, switchover
from espha_operator.reconcile.reconciler import Reconciler
from espha_operator.status.facts import TopicFacts
from espha_operator.status.switchover import Decision
from support.status import engine_status
from unit.operator import samples

Object = dict[str, Any]


class _MemoryCluster:
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

    def create(self, wanted: Object) -> None:
        kind, name = wanted["kind"], wanted["metadata"]["name"]
        self.writes.append(f"create {kind} {name}")
        assert (kind, name) not in self.objects
        made = copy.deepcopy(wanted)
        texts = made.pop("stringData", {})
        made["data"] = {key: b64encode(text.encode()).decode() for key, text in texts.items()}
        self.objects[kind, name] = made

    def apply_status(self, namespace: str, name: str, status: Object) -> None:
        self.writes.append("status")
        self.objects["EspHaDeployment", name]["status"] = status

    def patch(self, kind: str, namespace: str, name: str, change: Object) -> None:
        self.writes.append(f"patch {kind} {name}")
        meta = self.objects[kind, name]["metadata"]
        for group in ("labels", "annotations"):
            for key, value in change["metadata"].get(group, {}).items():
                if value is None:
                    meta[group].pop(key)
                else:
                    meta[group][key] = value

    def delete(self, kind: str, namespace: str, name: str) -> None:
        self.writes.append(f"delete {kind} {name}")
        del self.objects[kind, name]

    def _pod(self, name: str, labels: dict[str, str]) -> None:
        pod = {"metadata": {"name": name, "labels": dict(labels)}, "status": {"podIP": "10.0.0.1"}}
        self.objects.setdefault(("Pod", name), pod)


class _Keeper:
    """A Kafka whose topics are all there."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def ensure(self, *_: Any) -> TopicFacts:
        return TopicFacts(brokers=3)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> _MemoryCluster:
    monkeypatch.setattr(reconciler, "TopicKeeper", _Keeper)
    monkeypatch.setattr(
        models, "check", lambda xml, *_: samples.BROKEN if "bad" in xml else samples.MODEL
    )
    monkeypatch.setattr(observe, "ask_zookeeper", lambda pod: "follower")
    monkeypatch.setattr(
        observe,
        "ask_engine",
        lambda pod: engine_status(
            pod.name,
            EngineState.ACTIVE if pod.name.endswith("-0") else EngineState.STANDBY,
            epoch=1,
        ),
    )
    made = _MemoryCluster()
    made.objects["EspHaDeployment", "demo"] = {
        "metadata": {"name": "demo", "namespace": "shop", "uid": "uid-1", "generation": 1},
        "spec": {"model": {"inline": "<project/>"}, **copy.deepcopy(samples.FULL)},
    }
    return made


class _Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class _Play(Reconciler):
    """A reconciler with its cluster and clock at hand."""

    def __init__(self, cluster: _MemoryCluster) -> None:
        self.clock, self.cluster = _Clock(), cluster
        super().__init__(cluster, "shop", "demo", Images(), self.clock)  # type: ignore[arg-type]

    def until_quiet(self) -> None:
        for _ in range(20):
            self.cluster.writes.clear()
            self.clock.now += 3
            self.step()
            if not self.cluster.writes:
                return
        raise AssertionError(f"still writing: {self.cluster.writes}")


@pytest.fixture
def steps(cluster: _MemoryCluster) -> _Play:
    return _Play(cluster)


def status(cluster: _MemoryCluster) -> Object:
    found: Object = cluster.objects["EspHaDeployment", "demo"]["status"]
    return found


def test_a_deployment_becomes_ready_and_then_costs_no_writes(
    cluster: _MemoryCluster, steps: _Play
) -> None:
    steps.until_quiet()
    assert (status(cluster)["phase"], status(cluster)["active"]) == ("Ready", "demo-engine-0")
    labels = cluster.objects["Pod", "demo-engine-0"]["metadata"]["labels"]
    assert labels["espha.dev/role"] == "active"


def test_what_others_delete_comes_back(cluster: _MemoryCluster, steps: _Play) -> None:
    steps.until_quiet()
    del cluster.objects["Service", "demo-kafka"]
    steps.clock.now += 60
    steps.step()
    assert ("Service", "demo-kafka") in cluster.objects


def test_an_adapter_that_nobody_wants_any_more_goes(cluster: _MemoryCluster, steps: _Play) -> None:
    steps.until_quiet()
    foreign = {"metadata": {"name": "mine", "labels": {}, "ownerReferences": [{"uid": "other"}]}}
    cluster.objects["ConfigMap", "mine"] = foreign
    cluster.objects["EspHaDeployment", "demo"]["spec"]["adapters"]["outputs"] = []
    steps.step()
    assert ("StatefulSet", "demo-output-result") not in cluster.objects
    assert ("StatefulSet", "demo-input-memory") in cluster.objects
    assert ("ConfigMap", "mine") in cluster.objects


def test_a_model_that_becomes_invalid_changes_nothing_that_runs(
    cluster: _MemoryCluster, steps: _Play
) -> None:
    steps.until_quiet()
    running = {key for key in cluster.objects if key[0] == "StatefulSet"}
    cluster.objects["EspHaDeployment", "demo"]["spec"]["model"] = {"inline": "<bad/>"}
    steps.until_quiet()
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
    cluster: _MemoryCluster,
    steps: _Play,
    data: dict[str, str] | None,
    reason: str,
    message: str,
) -> None:
    cluster.objects["EspHaDeployment", "demo"]["spec"]["model"] = {"configMap": {"name": "m"}}
    if data is not None:
        cluster.objects["ConfigMap", "m"] = {"metadata": {"name": "m"}, "data": data}
    steps.until_quiet()
    first = status(cluster)["conditions"][0]
    assert (first["status"], first["reason"]) == ("False", reason)
    assert message in first["message"]
    assert not [key for key in cluster.objects if key[0] == "StatefulSet"]
    good = {"metadata": {"name": "m"}, "data": {"model.xml": "<project/>"}}
    cluster.objects["ConfigMap", "m"] = good
    steps.until_quiet()
    assert status(cluster)["phase"] == "Ready"


def test_a_spec_that_cannot_be_read_is_reported(cluster: _MemoryCluster, steps: _Play) -> None:
    cluster.objects["EspHaDeployment", "demo"]["spec"]["zookeeper"] = {"tickTime": 501}
    steps.step()
    ready = status(cluster)["conditions"][-1]
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "False", "InvalidSpec")
    assert "spec.zookeeper.tickTime" in ready["message"]


def test_a_deployment_that_is_going_is_left_alone(cluster: _MemoryCluster, steps: _Play) -> None:
    cluster.objects["EspHaDeployment", "demo"]["metadata"]["deletionTimestamp"] = "now"
    steps.step()
    assert cluster.writes == []


class _Engines:
    """Supervisors: whoever is asked in the right way makes the wished for engine active."""

    def __init__(self, cluster: _MemoryCluster) -> None:
        self.cluster, self.active = cluster, "demo-engine-0"
        self.asked: list[str] = []
        self.away = 0

    def tell(self, pod: observe.Pod) -> Any:
        state = EngineState.ACTIVE if pod.name == self.active else EngineState.STANDBY
        return engine_status(pod.name, state, epoch=1)

    def ask(self, address: str, to: str, proof: str) -> Decision:
        secret = self.cluster.objects["Secret", "demo-token"]["data"]["token"]
        assert b64encode(proof.encode()).decode() == secret
        self.asked.append(to)
        if self.away:
            self.away -= 1
            return Decision("wait", to)
        if to == "demo-engine-2":
            return Decision("refused", to, "The active engine refuses: no.")
        self.active = to
        return Decision("ask", to)

    def wish(self, to: str) -> None:
        meta = self.cluster.objects["EspHaDeployment", "demo"]["metadata"]
        meta["annotations"] = {"espha.dev/switchover-to": to}

    def events(self) -> list[tuple[str, str]]:
        objects = self.cluster.objects.items()
        return [(one["type"], one["reason"]) for (kind, _), one in objects if kind == "Event"]


@pytest.fixture
def engines(cluster: _MemoryCluster, monkeypatch: pytest.MonkeyPatch) -> _Engines:
    made = _Engines(cluster)
    monkeypatch.setattr(observe, "ask_engine", made.tell)
    monkeypatch.setattr(switchover, "ask", made.ask)
    return made


@pytest.mark.parametrize("wish", ["any", "demo-engine-1"])
@pytest.mark.parametrize("away", [0, 2])
def test_a_switchover_comes_true_once(
    steps: _Play, engines: _Engines, wish: str, away: int
) -> None:
    """Also when the active engine does not answer at first; then the wish goes."""
    steps.until_quiet()
    engines.wish(wish)
    engines.away = away
    for _ in range(6):
        steps.step()
    assert engines.asked == ["demo-engine-1"] * (1 + away)
    assert status(engines.cluster)["active"] == "demo-engine-1"
    assert engines.events() == [("Normal", "SwitchedOver")]
    assert not engines.cluster.objects["EspHaDeployment", "demo"]["metadata"]["annotations"]
    steps.until_quiet()


@pytest.mark.parametrize("wish", ["demo-engine-2", "demo-engine-7", "mine", ""])
def test_a_switchover_that_is_refused_is_said_and_goes(
    steps: _Play, engines: _Engines, wish: str
) -> None:
    steps.until_quiet()
    engines.wish(wish)
    steps.step()
    assert engines.events() == [("Warning", "SwitchoverRefused")]
    assert status(engines.cluster)["active"] == "demo-engine-0"
    steps.until_quiet()


def test_the_token_is_made_once_and_again_when_it_is_deleted(
    cluster: _MemoryCluster, steps: _Play
) -> None:
    steps.until_quiet()
    first = cluster.objects["Secret", "demo-token"]["data"]["token"]
    steps.clock.now += 60
    steps.step()
    assert cluster.objects["Secret", "demo-token"]["data"]["token"] == first
    del cluster.objects["Secret", "demo-token"]
    steps.clock.now += 60
    steps.step()
    assert cluster.objects["Secret", "demo-token"]["data"]["token"] not in ("", first)
