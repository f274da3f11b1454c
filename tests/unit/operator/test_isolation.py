"""What others own, refuse or poison: it is left alone, waited for, and harms nobody else."""

import copy
from dataclasses import replace
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException

from espha_operator.reconcile import observe
from espha_operator.reconcile.fleet import Keeper
from support.status import engine_status
from unit.operator import samples
from unit.operator.memory import MemoryCluster, Object, Play, refusal, status


def test_what_others_change_comes_back(cluster: MemoryCluster, steps: Play) -> None:
    steps.until_quiet()
    changed = cluster.objects["Service", "demo-kafka"]["metadata"]
    changed["labels"] = {**changed["labels"], "app.kubernetes.io/component": "other"}
    cluster.writes.clear()
    steps.clock.now += 20
    steps.step()
    assert cluster.writes == ["Service demo-kafka"]
    assert changed != cluster.objects["Service", "demo-kafka"]["metadata"]


def test_a_deployment_in_which_nothing_happens_costs_less_than_a_request_in_ten_seconds(
    cluster: MemoryCluster, steps: Play
) -> None:
    """What is watched costs nothing; all else is asked or written anew every few minutes."""
    steps.until_quiet()
    cluster.writes.clear()
    cluster.asked.clear()
    seconds = 3600
    for _ in range(seconds // 5):
        steps.clock.now += 5
        steps.step()
    assert len([*cluster.writes, *cluster.asked]) / seconds < 0.1


FOREIGN: Object = {
    "metadata": {"name": "", "uid": "theirs", "labels": {"app": "mine"}},
    "data": {"a": "b"},
}


@pytest.mark.parametrize("owner", [None, {"uid": "other", "kind": "EspHaDeployment", "name": "x"}])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("ConfigMap", "demo-model-9f2c00000000"),
        ("Service", "demo-kafka"),
        ("StatefulSet", "demo-input-memory"),
    ],
)
def test_what_the_operator_has_not_made_is_neither_changed_nor_deleted(
    cluster: MemoryCluster, steps: Play, kind: str, name: str, owner: Object | None
) -> None:
    there = copy.deepcopy({**FOREIGN, "kind": kind})
    there["metadata"] |= {
        "name": name,
        "generation": 1,
        "ownerReferences": [owner] if owner else [],
    }
    cluster.objects[kind, name] = copy.deepcopy(there)
    steps.until_quiet()
    cluster.objects["EspHaDeployment", "demo"]["spec"]["adapters"]["inputs"] = []
    steps.until_quiet()
    assert cluster.objects[kind, name] == there
    cluster.objects["EspHaDeployment", "demo"]["spec"] = {
        "model": {"inline": "<project/>"},
        **copy.deepcopy(samples.FULL),
    }
    steps.until_quiet()
    ready = status(cluster)["conditions"][-1]
    assert ready["reason"] == "ApplyFailed"
    assert f"{kind} {name} exists and is not this deployment's" in ready["message"]


def test_one_refused_object_holds_up_no_other_and_is_tried_seldom(
    cluster: MemoryCluster, steps: Play
) -> None:
    cluster.refuses["demo-kafka"] = refusal(403, "exceeded quota")
    steps.until_quiet()
    assert ("StatefulSet", "demo-zookeeper") in cluster.objects
    assert ("ConfigMap", "demo-model-9f2c00000000") in cluster.objects
    cluster.writes.clear()
    for _ in range(600):
        steps.clock.now += 1
        steps.step()
    kinds = ("ConfigMap", "Service", "PodDisruptionBudget", "StatefulSet")
    for kind in kinds:
        assert 1 <= cluster.writes.count(f"{kind} demo-kafka") <= 600 / 30
    assert "exceeded quota" in status(cluster)["conditions"][-1]["message"]
    cluster.refuses.clear()
    steps.clock.now += 200
    steps.until_quiet()
    assert status(cluster)["phase"] == "Ready"


def test_what_is_refused_does_not_keep_what_is_not_wanted(
    cluster: MemoryCluster, steps: Play
) -> None:
    """But a ConfigMap stays: the refused set's pods may still mount it."""
    steps.until_quiet()
    cluster.refuses["demo-engine"] = refusal(403, "exceeded quota")
    spec = cluster.objects["EspHaDeployment", "demo"]["spec"]
    spec["adapters"]["outputs"], spec["engines"] = [], {"replicas": 5}
    steps.until_quiet()
    assert ("StatefulSet", "demo-output-result") not in cluster.objects
    assert ("ConfigMap", "demo-output-result") in cluster.objects


@pytest.mark.parametrize("does_it", [True, False], ids=["it has gone", "it is wanted again"])
def test_a_deletion_that_was_refused_is_forgotten_when_nothing_is_left_to_delete(
    cluster: MemoryCluster, steps: Play, monkeypatch: pytest.MonkeyPatch, *, does_it: bool
) -> None:
    steps.until_quiet()
    adapters = cluster.objects["EspHaDeployment", "demo"]["spec"]["adapters"]
    outputs, adapters["outputs"] = adapters["outputs"], []
    delete = cluster.delete

    def late(*which: str, **how: Any) -> None:
        if does_it:
            delete(*which, **how)
        raise refusal(504, "it took too long")

    monkeypatch.setattr(cluster, "delete", late)
    steps.step()
    ready = status(cluster)["conditions"][-1]
    assert "demo-output-result cannot be deleted: it took too long" in ready["message"]
    adapters["outputs"] = [] if does_it else outputs
    steps.until_quiet()
    assert status(cluster)["phase"] == "Ready"


def test_a_pod_that_only_looks_like_an_engine_is_not_asked(
    cluster: MemoryCluster, steps: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps.until_quiet()
    spy = copy.deepcopy(cluster.objects["Pod", "demo-engine-0"])
    spy["metadata"] |= {"name": "spy", "ownerReferences": [{"uid": "mine"}]}
    cluster.objects["Pod", "spy"] = spy
    waits = copy.deepcopy(cluster.objects["Pod", "demo-engine-0"])
    waits["metadata"]["name"], waits["status"]["phase"] = "demo-engine-9", "Pending"
    cluster.objects["Pod", "demo-engine-9"] = waits
    asked: list[str] = []
    answer = observe.ask_engine

    def ask(pod: observe.Pod) -> Any:
        asked.append(pod.name)
        return answer(pod)

    monkeypatch.setattr(observe, "ask_engine", ask)
    steps.step()
    assert sorted(asked) == ["demo-engine-0", "demo-engine-1", "demo-engine-2"]
    assert "espha.dev/role" in spy["metadata"]["labels"]


def test_a_pod_that_always_finds_new_words_causes_few_writes(
    cluster: MemoryCluster, steps: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps.until_quiet()
    cluster.writes.clear()
    for number in range(600):
        words = {"in_sync": False, "message": f"word {number}"}
        monkeypatch.setattr(
            observe, "ask_engine", lambda pod, words=words: engine_status(pod.name, **words)
        )
        steps.clock.now += 1
        steps.step()
    assert 10 <= cluster.writes.count("status") <= 90


def test_two_deployments_do_not_share_an_order_log(cluster: MemoryCluster, steps: Play) -> None:
    """Whoever has it keeps it; the other one does nothing, also with a model of before."""
    servers = {"external": {"bootstrapServers": ["a:9092", "B:9092"]}}
    resource = cluster.objects["EspHaDeployment", "demo"]
    resource["spec"]["kafka"] = servers
    first = replace(samples.deployment(kafka=servers), uid="uid-0", name="first")
    steps.order_logs.claim(first, samples.MODEL.prefix)
    steps.until_quiet()
    reason, message = (status(cluster)["conditions"][0][key] for key in ("reason", "message"))
    assert reason == "Conflict"
    assert "shop/first" in message
    assert not [name for kind, name in cluster.objects if kind == "StatefulSet"]
    steps.order_logs.drop("uid-0")
    steps.until_quiet()
    assert status(cluster)["conditions"][0]["reason"] == "Valid"


def test_one_that_goes_in_the_middle_of_a_step_keeps_no_order_log(
    cluster: MemoryCluster, steps: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step goes on behind the word that it has gone, and nobody would say so again."""
    servers = {"external": {"bootstrapServers": ["a:9092"]}}
    cluster.objects["EspHaDeployment", "demo"]["spec"]["kafka"] = servers
    steps.until_quiet()

    def goes(pod: observe.Pod) -> None:
        cluster.objects.pop(("EspHaDeployment", "demo"), None)
        steps.order_logs.drop("uid-1")

    monkeypatch.setattr(observe, "ask_engine", goes)
    Keeper(("shop", "demo", "uid-1"), steps, lambda _: True).turn()
    successor = replace(samples.deployment(kafka=servers), uid="uid-2")
    assert steps.order_logs.claim(successor, samples.MODEL.prefix) == ""


def test_one_that_has_lost_its_order_log_is_not_changed_any_more(
    cluster: MemoryCluster, steps: Play
) -> None:
    """A move to servers where another one has it: nothing is made of it, nor of its old model."""
    resource = cluster.objects["EspHaDeployment", "demo"]
    here, there = ({"external": {"bootstrapServers": [f"{host}:9092"]}} for host in "ab")
    resource["spec"]["kafka"] = here
    steps.until_quiet()
    made = copy.deepcopy(cluster.objects["StatefulSet", "demo-engine"])
    other = replace(samples.deployment(kafka=there), uid="uid-0", name="other")
    assert steps.order_logs.claim(other, samples.MODEL.prefix) == ""
    resource["spec"]["kafka"] = there
    steps.until_quiet()
    assert status(cluster)["conditions"][0]["reason"] == "Conflict"
    assert cluster.objects["StatefulSet", "demo-engine"] == made


def test_an_operator_that_starts_lets_the_first_one_go_first(
    cluster: MemoryCluster, steps: Play
) -> None:
    resource = cluster.objects["EspHaDeployment", "demo"]
    resource["spec"]["kafka"] = {"external": {"bootstrapServers": ["a:9092"]}}
    resource["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    before = {"uid": "uid-0", "creationTimestamp": "2026-01-01T00:00:00Z"}
    steps.order_logs.expect([{"metadata": before}, resource])
    steps.step()
    assert cluster.writes == []
    steps.order_logs.seen("uid-0")
    steps.until_quiet()
    assert status(cluster)["conditions"][0]["reason"] == "Valid"


def test_a_refused_label_stops_nothing_and_is_told(cluster: MemoryCluster, steps: Play) -> None:
    cluster.refuses["patch demo-engine-0"] = refusal(403, "labels are not yours")
    for _ in range(5):
        steps.clock.now += 3.1
        steps.step()
    assert ("StatefulSet", "demo-output-result") in cluster.objects
    ready = next(one for one in status(cluster)["conditions"] if one["type"] == "Ready")
    assert (ready["status"], ready["message"]) == (
        "False",
        "Pod demo-engine-0: labels are not yours",
    )


def gone_unseen(cluster: MemoryCluster) -> None:
    """Have the deployment go, and what it is made of; no watch says so of the deployment."""
    cluster.gone.add("demo")
    only = ("EspHaDeployment", "demo")
    cluster.objects = {only: cluster.objects[only]}


def test_one_that_has_gone_unseen_is_not_made_again_and_again(
    cluster: MemoryCluster, steps: Play
) -> None:
    """What a step makes, garbage collection deletes, because its owner has gone."""
    steps.until_quiet()
    gone_unseen(cluster)
    Keeper(("shop", "demo", "uid-1"), steps, lambda _: True).turn()
    cluster.writes.clear()
    steps.clock.now += 60
    steps.step()
    assert cluster.writes == []


def test_one_whose_status_is_not_found_and_that_is_there_is_kept(
    cluster: MemoryCluster, steps: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An API server that has just started may not know the kind yet."""

    def unknown(*_: object) -> None:
        raise refusal(404, "the server could not find the requested resource")

    monkeypatch.setattr(cluster, "apply_status", unknown)
    with pytest.raises(ApiException):
        steps.step()
    assert steps.let_gone == []


def test_one_whose_name_another_has_now_does_nothing(cluster: MemoryCluster, steps: Play) -> None:
    """The other one has a thread of its own."""
    cluster.objects["EspHaDeployment", "demo"]["metadata"]["uid"] = "uid-2"
    steps.step()
    steps.failed("a step before")
    assert cluster.writes == []
    assert set(steps.let_gone) == {"uid-1"}
