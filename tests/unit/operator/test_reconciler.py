"""Whole steps against an API server in memory; only pods and Kafka are played."""

from base64 import b64encode
from typing import Any

import pytest

from espha.protocol.states import EngineState
from espha_operator.reconcile import observe, switchover
from espha_operator.status.switchover import Decision
from support.status import engine_status
from unit.operator.memory import TOKEN, MemoryCluster, Play, status


def test_a_deployment_becomes_ready_and_then_costs_no_writes(
    cluster: MemoryCluster, steps: Play
) -> None:
    steps.until_quiet()
    assert (status(cluster)["phase"], status(cluster)["active"]) == ("Ready", "demo-engine-0")
    labels = cluster.objects["Pod", "demo-engine-0"]["metadata"]["labels"]
    assert labels["espha.dev/role"] == "active"


def test_what_others_delete_comes_back(cluster: MemoryCluster, steps: Play) -> None:
    steps.until_quiet()
    del cluster.objects["Service", "demo-kafka"]
    steps.clock.now += 60
    steps.step()
    assert ("Service", "demo-kafka") in cluster.objects


def test_sets_that_are_made_anew_together_keep_the_services_of_their_pods(
    cluster: MemoryCluster, steps: Play
) -> None:
    """ZooKeeper's and the engines' volumes grow at once: for a step, neither has a set."""
    steps.until_quiet()
    sets = [key for key in cluster.objects if key[0] == "StatefulSet" and "kafka" not in key[1]]
    for key in sets:
        del cluster.objects[key]
    cluster.held = True
    steps.clock.now += 3.1
    steps.step()
    assert [what for what in cluster.writes if what.startswith("delete")] == []
    assert [key for key in sets if key not in cluster.objects] == []


def test_an_adapter_that_nobody_wants_any_more_goes(cluster: MemoryCluster, steps: Play) -> None:
    steps.until_quiet()
    foreign = {"metadata": {"name": "mine", "labels": {}, "ownerReferences": [{"uid": "other"}]}}
    cluster.objects["ConfigMap", "mine"] = foreign
    cluster.objects["EspHaDeployment", "demo"]["spec"]["adapters"]["outputs"] = []
    steps.step()
    assert ("StatefulSet", "demo-output-result") not in cluster.objects
    assert ("StatefulSet", "demo-input-memory") in cluster.objects
    assert ("ConfigMap", "mine") in cluster.objects


def test_a_model_that_becomes_invalid_changes_no_model_that_runs(
    cluster: MemoryCluster, steps: Play
) -> None:
    steps.until_quiet()
    running = {key for key in cluster.objects if key[0] == "StatefulSet"}
    cluster.objects["EspHaDeployment", "demo"]["spec"]["model"] = {"inline": "<bad/>"}
    steps.until_quiet()
    assert {key for key in cluster.objects if key[0] == "StatefulSet"} == running
    assert (
        cluster.objects["ConfigMap", "demo-model-9f2c00000000"]["data"]["model.xml"] == "<project/>"
    )
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
    steps: Play,
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


def test_a_spec_that_cannot_be_read_is_reported(cluster: MemoryCluster, steps: Play) -> None:
    cluster.objects["EspHaDeployment", "demo"]["spec"]["zookeeper"] = {"tickTime": 501}
    steps.step()
    ready = status(cluster)["conditions"][-1]
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "False", "InvalidSpec")
    assert "spec.zookeeper.tickTime" in ready["message"]


def test_a_deployment_that_is_going_is_left_alone(cluster: MemoryCluster, steps: Play) -> None:
    cluster.objects["EspHaDeployment", "demo"]["metadata"]["deletionTimestamp"] = "now"
    steps.step()
    assert cluster.writes == []


class _Engines:
    """Supervisors: whoever is asked in the right way makes the wished for engine active."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self.cluster, self.active = cluster, "demo-engine-0"
        self.asked: list[str] = []
        self.away = 0

    def tell(self, pod: observe.Pod) -> Any:
        state = EngineState.ACTIVE if pod.name == self.active else EngineState.STANDBY
        return engine_status(pod.name, state, epoch=1)

    def ask(self, address: str, to: str, proof: str) -> Decision:
        secret = self.cluster.objects["Secret", TOKEN]["data"]["token"]
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
        every = [(one["type"], one["reason"]) for (kind, _), one in objects if kind == "Event"]
        return [one for one in every if one[1].startswith("Switch")]


@pytest.fixture
def engines(cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch) -> _Engines:
    made = _Engines(cluster)
    monkeypatch.setattr(observe, "ask_engine", made.tell)
    monkeypatch.setattr(switchover, "ask", made.ask)
    return made


@pytest.mark.parametrize("wish", ["any", "demo-engine-1"])
@pytest.mark.parametrize("away", [0, 2])
def test_a_switchover_comes_true_once(steps: Play, engines: _Engines, wish: str, away: int) -> None:
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
    steps: Play, engines: _Engines, wish: str
) -> None:
    steps.until_quiet()
    engines.wish(wish)
    steps.step()
    assert engines.events() == [("Warning", "SwitchoverRefused")]
    assert status(engines.cluster)["active"] == "demo-engine-0"
    steps.until_quiet()


def test_the_token_is_made_once_and_the_same_again_when_it_is_deleted(
    cluster: MemoryCluster, steps: Play
) -> None:
    """A running engine has read the first one, and would not know another."""
    steps.until_quiet()
    first = cluster.objects.pop(("Secret", TOKEN))["data"]["token"]
    steps.clock.now += 1000
    steps.step()
    assert cluster.objects["Secret", TOKEN]["data"]["token"] == first != ""
