"""Another version of the operator finds deployments that run."""

import copy
from typing import Any

import pytest

from espha_operator.api.images import ImagePolicy, Images, Upgrades
from espha_operator.reconcile import upgrades
from espha_operator.reconcile.turns import Turns
from espha_operator.reconcile.upgrades import Upgrader
from espha_operator.status.storage import DiskFacts
from unit.operator.memory import Disks, MemoryCluster, Play, status

Object = dict[str, Any]
NEW = Images(engine_image="engine:2", kafka_image="kafka:2", zookeeper_image="zoo:2")


def operator(
    cluster: MemoryCluster,
    images: Images = NEW,
    policy: ImagePolicy = "OnOperatorUpgrade",
    delay: float = 0,
) -> Play:
    """Return an operator of another version, just started."""
    return Play(
        cluster, upgrader=Upgrader(images, Upgrades(image_policy=policy, rollout_delay=delay))
    )


def pods(cluster: MemoryCluster) -> dict[str, Object]:
    return {
        name: copy.deepcopy(it) for (kind, name), it in cluster.objects.items() if kind == "Pod"
    }


def templates(cluster: MemoryCluster) -> dict[str, Object]:
    sets = ((name, it) for (kind, name), it in cluster.objects.items() if kind == "StatefulSet")
    return {name: copy.deepcopy(it["spec"]["template"]) for name, it in sets}


def images(cluster: MemoryCluster) -> set[str]:
    return {it["spec"]["containers"][0]["image"] for it in pods(cluster).values()}


def condition(cluster: MemoryCluster, name: str) -> tuple[str, str]:
    found = next(one for one in status(cluster)["conditions"] if one["type"] == name)
    return found["status"], found["reason"]


def spec(cluster: MemoryCluster) -> Object:
    found: Object = cluster.objects["EspHaDeployment", "demo"]["spec"]
    return found


def change(cluster: MemoryCluster) -> None:
    """Do what the API server does when a spec has been changed."""
    cluster.objects["EspHaDeployment", "demo"]["metadata"]["generation"] += 1


@pytest.fixture
def running(cluster: MemoryCluster, steps: Play) -> MemoryCluster:
    """A deployment that is ready, made by the operator of this version."""
    steps.until_quiet()
    return cluster


@pytest.fixture
def held(running: MemoryCluster, monkeypatch: pytest.MonkeyPatch) -> Play:
    """An operator with other templates, which hold back."""
    monkeypatch.setattr(upgrades, "build", lambda images: "another")
    return operator(running, policy="Manual")


OLD_STRATEGY = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}


def forget(cluster: MemoryCluster) -> None:
    """Make it look as if made by a version that kept no account of images."""
    del status(cluster)["images"]
    for (kind, _), one in cluster.objects.items():
        if kind == "StatefulSet":
            one["metadata"].pop("annotations", None)
            one["spec"]["updateStrategy"] = OLD_STRATEGY


def strategies(cluster: MemoryCluster) -> list[Object]:
    sets = (it for (kind, _), it in cluster.objects.items() if kind == "StatefulSet")
    return [one["spec"]["updateStrategy"] for one in sets]


def test_sets_that_kubernetes_rolled_are_taken_over(
    running: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API server refuses to apply OnDelete over a `rollingUpdate`, which nobody owns."""
    forget(running)
    apply = MemoryCluster.apply

    def strict(cluster: MemoryCluster, wanted: Object) -> Object:
        there = cluster.objects.get((wanted["kind"], wanted["metadata"]["name"]), {})
        left = there.get("spec", {}).get("updateStrategy", {})
        assert not left.get("rollingUpdate"), "spec.updateStrategy.rollingUpdate: Invalid value"
        return apply(cluster, wanted)

    monkeypatch.setattr(MemoryCluster, "apply", strict)
    play = operator(running, policy="Manual")
    play.until_quiet()
    assert strategies(running) == [OLD_STRATEGY] * 5
    operator(running).until_quiet()
    assert strategies(running) == [{"type": "OnDelete"}] * 5
    assert "engine:2" in images(running)


@pytest.mark.parametrize("old", [False, True], ids=["known", "of an older version"])
def test_manual_restarts_no_pod(running: MemoryCluster, old: bool) -> None:
    before, made = pods(running), templates(running)
    if old:
        forget(running)
    play = operator(running, policy="Manual")
    play.until_quiet()
    play.clock.now += 60
    play.until_quiet()
    assert (pods(running), templates(running)) == (before, made)
    assert condition(running, "UpToDate") == ("False", "KeptByPolicy")
    assert condition(running, "Ready") == ("True", "AllReady")
    assert status(running)["images"]["engine"] == Images().engine_image


def test_templates_of_a_new_version_with_the_same_images_are_held_too(
    running: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, made = pods(running), templates(running)
    monkeypatch.setattr(upgrades, "build", lambda images: "another")
    play = operator(running, Images(), policy="Manual")
    play.until_quiet()
    assert (pods(running), templates(running)) == (before, made)
    assert condition(running, "UpToDate") == ("False", "KeptByPolicy")


def test_the_deployments_own_policy_comes_first(running: MemoryCluster) -> None:
    spec(running)["imagePolicy"] = "Manual"
    operator(running).until_quiet()
    assert condition(running, "UpToDate") == ("False", "KeptByPolicy")
    spec(running)["imagePolicy"] = "OnOperatorUpgrade"
    change(running)
    operator(running, policy="Manual").until_quiet()
    assert images(running) == {"engine:2", "kafka:2", "zoo:2"}
    assert condition(running, "UpToDate") == ("True", "Current")
    spec(running)["imagePolicy"] = "Manual"
    change(running)
    operator(running).until_quiet()
    assert condition(running, "UpToDate") == ("True", "Current")


def test_scaling_restarts_nobody_while_templates_are_held(
    running: MemoryCluster, held: Play
) -> None:
    before, made = pods(running), templates(running)
    spec(running)["engines"] = {"replicas": 5}
    change(running)
    held.until_quiet()
    assert running.objects["StatefulSet", "demo-engine"]["spec"]["replicas"] == 5
    assert templates(running) == made
    assert {name: pods(running)[name] for name in before} == before
    assert images(running) == {
        Images().engine_image,
        Images().kafka_image,
        Images().zookeeper_image,
    }


def test_what_users_change_comes_at_once_with_the_old_images(running: MemoryCluster) -> None:
    play = operator(running, policy="Manual")
    play.until_quiet()
    before = templates(running)
    spec(running)["zookeeper"] = {"sessionTimeout": 900}
    change(running)
    play.until_quiet()
    assert templates(running)["demo-engine"] != before["demo-engine"]
    assert "engine:2" not in images(running)
    assert condition(running, "Ready") == ("True", "AllReady")
    assert condition(running, "UpToDate") == ("False", "KeptByPolicy")


def test_what_others_delete_comes_back_while_templates_are_held(
    running: MemoryCluster, held: Play
) -> None:
    held.until_quiet()
    del running.objects["Service", "demo-kafka"]
    del running.objects["StatefulSet", "demo-output-result"]
    held.clock.now += 60
    held.until_quiet()
    assert ("Service", "demo-kafka") in running.objects
    kept = templates(running)["demo-output-result"]["spec"]["containers"][0]["image"]
    assert kept == Images().engine_image


def test_files_that_others_delete_come_back_while_templates_are_held(
    running: MemoryCluster, held: Play
) -> None:
    """Pods could not start without them."""
    held.until_quiet()
    del running.objects["ConfigMap", "demo-kafka"]
    held.clock.now += 60
    held.until_quiet()
    assert ("ConfigMap", "demo-kafka") in running.objects


def test_a_broker_may_begin_with_an_empty_volume_while_templates_are_held(
    running: MemoryCluster, held: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    held.until_quiet()
    files = copy.deepcopy(running.objects["ConfigMap", "demo-kafka"]["data"])
    assert files["format"] != "2\n"
    known = DiskFacts(formatted=True, may_format=frozenset({2}))
    monkeypatch.setattr(Disks, "known", known)
    held.until_quiet()
    kept = running.objects["ConfigMap", "demo-kafka"]["data"]
    assert kept == {**files, "format": "2\n"}


def test_a_rollback_of_the_operator_brings_the_older_images_back(running: MemoryCluster) -> None:
    operator(running).until_quiet()
    assert "engine:2" in images(running)
    operator(running, Images()).until_quiet()
    assert "engine:2" not in images(running)
    assert condition(running, "Ready") == ("True", "AllReady")


def test_two_deployments_never_roll_at_once(running: MemoryCluster) -> None:
    """The second one waits until all pods of the first are up to date, and for the delay."""
    clock = _Clock()
    upgrader = Upgrader(NEW, Upgrades(rollout_delay=30))
    upgrader._turns = Turns(30, clock)
    other = copy.deepcopy(running)
    other.objects["EspHaDeployment", "demo"]["metadata"]["namespace"] = "b"
    Play(other, "b").until_quiet()
    plays = [Play(running, "shop", upgrader), Play(other, "b", upgrader)]
    for cluster in (running, other):
        cluster.held = True

    def step() -> list[bool]:
        for play in plays:
            play.clock.now += 3
            play.step()
        return ["engine:2" in str(templates(one)) for one in (running, other)]

    assert step() == [False, False]
    assert condition(running, "UpToDate") == ("False", "WaitsForTurn")
    assert condition(running, "Ready") == ("True", "AllReady")
    clock.now += 30
    assert step() == [True, False]
    for _ in range(10):
        clock.now += 30
        assert step() == [True, False]
    assert condition(other, "Ready") == ("True", "AllReady")
    for name in templates(running):
        running.roll(name)
    assert step() == [True, False]
    clock.now += 29
    assert step() == [True, False]
    clock.now += 1
    assert step() == [True, True]


class _Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_paused_deployment_takes_nothing_until_it_goes_on(running: MemoryCluster) -> None:
    meta = running.objects["EspHaDeployment", "demo"]["metadata"]
    meta["annotations"] = {"espha.dev/paused": "true"}
    before = templates(running)
    play = operator(running)
    play.until_quiet()
    assert templates(running) == before
    assert condition(running, "Ready") == ("True", "AllReady")
    meta["annotations"] = {}
    play.until_quiet()
    assert "engine:2" in images(running)
