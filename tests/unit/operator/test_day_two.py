"""Whole steps on the second day: roll-outs, bad models, other versions, failures, a pause."""

import copy
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from espha.protocol.states import EngineState, KillReason
from espha.protocol.status import ReplicaStatus
from espha_operator.reconcile import observe, topic_view
from espha_operator.reconcile.fleet import Keeper
from espha_operator.reconcile.reconciler import Reconciler
from espha_operator.status.facts import TopicFacts
from espha_operator.status.storage import DiskFacts, Room
from support.status import engine_status
from unit.operator import memory
from unit.operator.memory import TOKEN, MemoryCluster, Play, status

GOOD = {"model": {"inline": "<project/>"}}
BAD = {"model": {"inline": "<bad/>"}}
NO_MODEL = {"model": {"configMap": {"name": "gone"}}}


def resource(cluster: MemoryCluster) -> dict[str, Any]:
    return cluster.objects["EspHaDeployment", "demo"]


def change(cluster: MemoryCluster, **spec: Any) -> None:
    """Give the deployment another spec, as a user does."""
    resource(cluster)["spec"].update(spec)
    resource(cluster)["metadata"]["generation"] += 1


def condition(cluster: MemoryCluster, name: str) -> tuple[str, str]:
    found = next(one for one in status(cluster)["conditions"] if one["type"] == name)
    return found["status"], found["reason"]


def message(cluster: MemoryCluster, name: str) -> str:
    return next(str(one["message"]) for one in status(cluster)["conditions"] if one["type"] == name)


def events(cluster: MemoryCluster) -> list[tuple[str, str, str]]:
    """Events so far, which are forgotten then."""
    keys = [key for key in cluster.objects if key[0] == "Event"]
    found = [cluster.objects.pop(key) for key in keys]
    return [(one["type"], one["reason"], one["message"]) for one in found]


def restarted(cluster: MemoryCluster) -> Play:
    """An operator that remembers nothing."""
    return Play(cluster)


def orphaned(cluster: MemoryCluster, name: str) -> None:
    """Delete a StatefulSet without its pods, as for larger volumes."""
    del cluster.objects["StatefulSet", name]
    pods = [one for key, one in cluster.objects.items() if key[0] == "Pod" and name in key[1]]
    for pod in pods:
        pod["metadata"]["ownerReferences"] = []


# Ready


def test_ready_waits_for_the_last_pod(cluster: MemoryCluster, steps: Play) -> None:
    steps.until_quiet()
    cluster.held = True
    change(cluster, engines={"image": "espha/engine:2"})
    for updated in (0, 1, 2):
        for _ in range(2):
            steps.clock.now += 3
            steps.step()
            assert status(cluster)["observedGeneration"] == 2
            assert condition(cluster, "Ready") == ("False", "RollingOut")
            assert condition(cluster, "Progressing") == ("True", "RollingOut")
            assert condition(cluster, "Available") == ("True", "Committing")
            assert status(cluster)["phase"] == "Updating"
        cluster.roll("demo-engine", updated)
        for name in ("demo-input-memory", "demo-output-result"):
            cluster.roll(name)
    cluster.roll("demo-engine")
    steps.until_quiet()
    assert condition(cluster, "Ready") == ("True", "AllReady")
    assert condition(cluster, "Progressing") == ("False", "Complete")


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"image": "espha/engine:2"}, id="image"),
        pytest.param({"pod": {"env": [{"name": "A", "value": "1"}]}}, id="what no pod tells"),
    ],
)
def test_the_step_that_applies_does_not_claim_to_be_ready(
    cluster: MemoryCluster, steps: Play, changed: dict[str, Any]
) -> None:
    """Even when all pods follow at once: the step has looked before."""
    steps.until_quiet()
    change(cluster, engines={"replicas": 3, **changed})
    steps.step()
    assert status(cluster)["observedGeneration"] == 2
    assert condition(cluster, "Ready") == ("False", "RollingOut")
    steps.until_quiet()
    assert condition(cluster, "Ready") == ("True", "AllReady")


def test_an_engine_that_runs_another_model_is_not_ready(
    cluster: MemoryCluster, steps: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tell(pod: observe.Pod) -> ReplicaStatus:
        first = pod.name.endswith("-0")
        digest = "0" * 64 if pod.name.endswith("-2") else "9f2c" + 60 * "0"
        state = EngineState.ACTIVE if first else EngineState.STANDBY
        return engine_status(pod.name, state, model_digest=digest)

    monkeypatch.setattr(observe, "ask_engine", tell)
    steps.until_quiet()
    assert condition(cluster, "Ready") == ("False", "RollingOut")
    assert message(cluster, "Ready") == "demo-engine-2 runs the model p@0000."


def test_a_quiet_deployment_costs_no_status(cluster: MemoryCluster, steps: Play) -> None:
    steps.until_quiet()
    for _ in range(10):
        steps.clock.now += 1
        steps.step()
    told = [one for one in cluster.writes if one == "status" or "Event" in one]
    assert told == []


# A model that is not valid


@pytest.mark.parametrize("bad", [BAD, NO_MODEL])
@pytest.mark.parametrize("operator", [lambda steps: steps, lambda steps: restarted(steps.cluster)])
def test_scaling_and_healing_go_on_with_the_last_good_model(
    cluster: MemoryCluster, steps: Play, bad: dict[str, Any], operator: Callable[[Play], Play]
) -> None:
    """Also with an operator that has just started."""
    steps.until_quiet()
    steps = operator(steps)
    change(cluster, **bad, engines={"replicas": 5})
    del cluster.objects["Service", "demo-kafka"]
    steps.clock.now += 60
    steps.until_quiet()
    assert cluster.objects["StatefulSet", "demo-engine"]["spec"]["replicas"] == 5
    assert ("Service", "demo-kafka") in cluster.objects
    assert (
        cluster.objects["ConfigMap", "demo-model-9f2c00000000"]["data"]["model.xml"] == "<project/>"
    )
    assert status(cluster)["model"] == "HA_Project@9f2c"
    assert condition(cluster, "ModelValid")[0] == "False"
    assert condition(cluster, "Ready")[0] == "False"
    assert condition(cluster, "Stalled")[0] == "True"
    assert condition(cluster, "Available") == ("True", "Committing")
    change(cluster, **GOOD)
    steps.until_quiet()
    assert condition(cluster, "Ready") == ("True", "AllReady")


def test_a_model_that_was_never_valid_starts_nothing(cluster: MemoryCluster, steps: Play) -> None:
    change(cluster, **BAD)
    steps.until_quiet()
    assert not [key for key in cluster.objects if key[0] == "StatefulSet"]


def test_a_foreign_config_map_is_no_model_of_ours(cluster: MemoryCluster, steps: Play) -> None:
    change(cluster, **BAD)
    cluster.objects["ConfigMap", "theirs"] = {
        "metadata": {"name": "theirs", "ownerReferences": [{"uid": "another"}]},
        "data": {"model.xml": "<project/>"},
    }
    steps.until_quiet()
    assert not [key for key in cluster.objects if key[0] == "StatefulSet"]


# Other versions


@pytest.mark.parametrize(
    "written",
    [
        {"phase": "Hibernated"},
        {"newField": {"a": 1}},
        {"conditions": [{"type": "Ready", "status": "Maybe"}, "x", None, {}]},
        {"conditions": "none"},
        {"failovers": "many", "active": 7},
    ],
)
def test_a_status_of_another_version_stops_nothing(
    cluster: MemoryCluster, steps: Play, written: dict[str, Any]
) -> None:
    steps.until_quiet()
    status(cluster).update(written)
    steps.until_quiet()
    assert status(cluster)["phase"] == "Ready"
    assert condition(cluster, "Ready") == ("True", "AllReady")
    assert status(cluster)["failovers"] == 0


@pytest.mark.parametrize("written", [None, [], "x", 5])
def test_a_status_that_is_none_is_made_anew(
    cluster: MemoryCluster, steps: Play, written: object
) -> None:
    resource(cluster)["status"] = written
    steps.until_quiet()
    assert status(cluster)["phase"] == "Ready"


def test_fields_that_a_newer_version_has_are_named_and_ignored(
    cluster: MemoryCluster, steps: Play
) -> None:
    change(cluster, hibernate=True, engines={"replicas": 2, "shards": [1]})
    resource(cluster)["spec"]["adapters"]["inputs"][0]["parallel"] = 4
    steps.until_quiet()
    assert cluster.objects["StatefulSet", "demo-engine"]["spec"]["replicas"] == 2
    assert condition(cluster, "SpecUnderstood") == ("False", "UnknownFields")
    for field in ("spec.hibernate", "spec.engines.shards", "spec.adapters.inputs.0.parallel"):
        assert field in message(cluster, "SpecUnderstood")
    assert condition(cluster, "Ready") == ("True", "AllReady")
    assert resource(cluster)["spec"]["hibernate"] is True, "the user's own is left alone"


def test_a_spec_that_cannot_be_read_hides_nothing_that_runs(
    cluster: MemoryCluster, steps: Play, engines: "_Engines"
) -> None:
    """The Service of the active engine follows a failover all the same."""
    steps.until_quiet()
    change(cluster, zookeeper={"tickTime": 501}, engines={"replicas": "x"})
    engines.active, engines.epoch = "demo-engine-1", 3
    steps.until_quiet()
    assert condition(cluster, "Ready") == ("False", "InvalidSpec")
    assert condition(cluster, "Stalled") == ("True", "InvalidSpec")
    assert condition(cluster, "Available") == ("True", "Committing")
    assert (status(cluster)["phase"], status(cluster)["active"]) == ("Invalid", "demo-engine-1")
    labels = cluster.objects["Pod", "demo-engine-1"]["metadata"]["labels"]
    assert labels["espha.dev/role"] == "active"
    assert "FailedOver" in [one[1] for one in events(cluster)]
    change(cluster, zookeeper={"tickTime": 400}, engines={"replicas": 3})
    steps.until_quiet()
    assert condition(cluster, "Ready") == ("True", "AllReady")


def test_a_spec_that_cannot_be_read_makes_no_volume_emptier(
    cluster: MemoryCluster, steps: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = DiskFacts(rooms=(Room("demo-kafka-0", 100, 95),))
    monkeypatch.setattr(memory.Disks, "known", full)
    steps.until_quiet()
    events(cluster)
    change(cluster, zookeeper={"tickTime": 501})
    steps.until_quiet()
    assert condition(cluster, "StorageLow") == ("True", "Critical")
    assert condition(cluster, "VolumesFit") == ("True", "AsWanted")
    assert not {one[1] for one in events(cluster)} & {"Enough", "VolumesFit"}


def test_a_spec_of_which_nothing_can_be_read_is_reported(
    cluster: MemoryCluster, steps: Play
) -> None:
    resource(cluster)["spec"] = {"model": 7, "engines": [], "kafka": "x"}
    steps.until_quiet()
    assert condition(cluster, "Ready") == ("False", "InvalidSpec")
    assert not [key for key in cluster.objects if key[0] == "StatefulSet"]


# What nobody has foreseen


def handled(steps: Reconciler) -> bool:
    return Keeper(("shop", "demo", "uid-1"), steps, lambda _: True).turn()


def test_a_step_that_fails_unexpectedly_says_so_and_is_tried_again(
    cluster: MemoryCluster, steps: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps.until_quiet()
    with monkeypatch.context() as patch:
        patch.setattr(observe, "ask_zookeeper", lambda pod: {"a": pod}["mode"])
        for _ in range(3):
            assert not handled(steps)
        assert condition(cluster, "Stalled") == ("True", "ReconcileFailed")
        assert condition(cluster, "Ready") == ("False", "ReconcileFailed")
        assert message(cluster, "Ready") == "KeyError: 'mode'"
        assert condition(cluster, "Available")[0] == "True", "nobody has looked since"
        assert cluster.writes == ["status", *cluster.writes[1:]]
        assert [one[:2] for one in events(cluster) if one[1] == "ReconcileFailed"] == [
            ("Warning", "ReconcileFailed")
        ]
    assert handled(steps)
    assert condition(cluster, "Ready") == ("True", "AllReady")


def test_what_cannot_even_be_said_does_not_end_the_task(
    cluster: MemoryCluster, steps: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "get", lambda *_: 1 / 0)
    assert not handled(steps)


# A pause


def test_a_pause_leaves_everything_as_it_is(cluster: MemoryCluster, steps: Play) -> None:
    steps.until_quiet()
    events(cluster)
    resource(cluster)["metadata"]["annotations"] = {"espha.dev/paused": "true"}
    change(cluster, engines={"image": "espha/engine:2"})
    fixed = cluster.objects["StatefulSet", "demo-kafka"]["spec"]
    fixed["replicas"] = 4
    del cluster.objects["Service", "demo-kafka"]
    del cluster.objects["Secret", TOKEN]
    seen = copy.deepcopy(cluster.objects)
    for _ in range(30):
        steps.clock.now += 5
        steps.step()
    del seen["EspHaDeployment", "demo"]
    now = {key: value for key, value in cluster.objects.items() if key[0] != "Event"}
    del now["EspHaDeployment", "demo"]
    assert now == seen
    assert condition(cluster, "Paused") == ("True", "Paused")
    assert condition(cluster, "Ready") == ("False", "Paused")
    assert condition(cluster, "Available") == ("True", "Committing")
    assert status(cluster)["phase"] == "Paused"
    assert [one[1] for one in events(cluster)] == ["Paused"]


def test_a_paused_deployment_still_tells_who_is_active(
    cluster: MemoryCluster, steps: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps.until_quiet()
    resource(cluster)["metadata"]["annotations"] = {"espha.dev/paused": "true"}
    monkeypatch.setattr(
        observe,
        "ask_engine",
        lambda pod: engine_status(
            pod.name, EngineState.ACTIVE if pod.name.endswith("-1") else EngineState.STANDBY
        ),
    )
    steps.until_quiet()
    assert status(cluster)["active"] == "demo-engine-1"
    labels = cluster.objects["Pod", "demo-engine-1"]["metadata"]["labels"]
    assert labels["espha.dev/role"] == "active"


def test_after_a_pause_what_was_wanted_is_done(cluster: MemoryCluster, steps: Play) -> None:
    steps.until_quiet()
    resource(cluster)["metadata"]["annotations"] = {"espha.dev/paused": "true"}
    change(cluster, engines={"replicas": 5})
    steps.until_quiet()
    events(cluster)
    resource(cluster)["metadata"]["annotations"] = {"espha.dev/paused": "false"}
    steps.until_quiet()
    assert cluster.objects["StatefulSet", "demo-engine"]["spec"]["replicas"] == 5
    assert condition(cluster, "Ready") == ("True", "AllReady")
    assert [one[1] for one in events(cluster)] == [
        "NotPaused",
        "RolloutStarted",
        "RolloutFinished",
    ]


# Events


def test_a_start_is_told(cluster: MemoryCluster, steps: Play) -> None:
    steps.until_quiet()
    assert [one[:2] for one in events(cluster)] == [
        ("Normal", "RolloutStarted"),
        ("Normal", "TopicsReady"),
        ("Normal", "ModelRolledOut"),
        ("Normal", "Available"),
        ("Normal", "RolloutFinished"),
    ]


def test_what_has_been_told_is_not_told_again(cluster: MemoryCluster, steps: Play) -> None:
    steps.until_quiet()
    change(cluster, **BAD)
    steps.until_quiet()
    told = [one[:2] for one in events(cluster)]
    assert told[5:] == [("Warning", "InvalidModel")]
    restarted(cluster).until_quiet()
    assert events(cluster) == []


class _Engines:
    """Engines that a test lets take over and diverge."""

    def __init__(self) -> None:
        self.active, self.epoch = "demo-engine-0", 2
        self.of: dict[str, dict[str, Any]] = {}

    def tell(self, pod: observe.Pod) -> ReplicaStatus | None:
        state = EngineState.ACTIVE if pod.name == self.active else EngineState.STANDBY
        told = engine_status(pod.name, state, epoch=self.epoch)
        more = dict(self.of.get(pod.name, {}))
        if more.pop("silent", False):
            return None
        progress = told.engine.model_copy(update=more.pop("progress", {})) if told.engine else None
        return told.model_copy(update={"progress": progress, **more})


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch, cluster: MemoryCluster) -> _Engines:
    made = _Engines()
    monkeypatch.setattr(observe, "ask_engine", made.tell)
    return made


TAKEN = {"taken_from": "demo-engine-0", "takeover_gap_ms": 412}


@pytest.mark.parametrize(
    ("old", "new", "event"),
    [
        (
            {"kills": {KillReason.STUCK: 1}, "in_sync": False},
            TAKEN,
            (
                "Warning",
                "FailedOver",
                "demo-engine-1 has taken over from demo-engine-0 (epoch 3); demo-engine-0 was "
                "killed by its supervisor: The child has not got on with what it does for much "
                "longer than usual; 412 ms between the last commit before and the first one after.",
            ),
        ),
        (
            {"silent": True},
            TAKEN,
            (
                "Warning",
                "FailedOver",
                "demo-engine-1 has taken over from demo-engine-0 (epoch 3); demo-engine-0 does not "
                "answer; 412 ms between the last commit before and the first one after.",
            ),
        ),
        (
            {},
            {**TAKEN, "taken_as_planned": True},
            (
                "Normal",
                "TakenOver",
                "demo-engine-1 has taken over from demo-engine-0 (epoch 3); as asked for; 412 ms "
                "between the last commit before and the first one after.",
            ),
        ),
        (
            {"restarts": 1},
            {},
            (
                "Warning",
                "FailedOver",
                "demo-engine-1 has taken over from demo-engine-0 (epoch 3); the process of "
                "demo-engine-0 has ended.",
            ),
        ),
    ],
)
def test_a_failover_is_told_with_its_reason_and_gap(
    steps: Play,
    engines: _Engines,
    old: dict[str, Any],
    new: dict[str, Any],
    event: tuple[str, str, str],
) -> None:
    cluster = steps.cluster
    steps.until_quiet()
    events(cluster)
    engines.active, engines.epoch = "demo-engine-1", 3
    engines.of = {"demo-engine-0": old, "demo-engine-1": {"progress": new}}
    steps.until_quiet()
    assert events(cluster) == [event]
    restarted(cluster).until_quiet()
    assert events(cluster) == []


def test_an_operator_that_starts_doubts_nothing_before_it_has_looked(
    cluster: MemoryCluster, steps: Play
) -> None:
    """Neither volumes nor topics are new, and the deployment is as ready as it was."""
    steps.until_quiet()
    events(cluster)
    was, answer = status(cluster), Future[TopicFacts]()
    with pytest.MonkeyPatch.context() as blind:
        blind.setattr(topic_view, "submit", lambda *_, **__: answer)
        blind.setattr(memory.Disks, "known", None)
        new = restarted(cluster)
        new.step()
        assert (status(cluster), events(cluster)) == (was, [])
    answer.set_result(TopicFacts(brokers=3))
    new.until_quiet()
    assert (status(cluster)["phase"], events(cluster)) == ("Ready", [])


def test_an_operator_that_starts_behind_a_change_does_not_say_that_it_is_done(
    cluster: MemoryCluster, steps: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it is applied before volumes are known."""
    steps.until_quiet()
    change(cluster, engines={"image": "espha/engine:2"})
    monkeypatch.setattr(memory.Disks, "known", None)
    restarted(cluster).step()
    assert status(cluster)["observedGeneration"] == 2
    assert condition(cluster, "Ready")[0] == "False"


def test_volumes_that_nobody_can_look_at_are_not_said_to_fit_for_ever(
    cluster: MemoryCluster, steps: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is applied before they are known."""
    steps.until_quiet()
    monkeypatch.setattr(memory.Disks, "known", None)
    new = restarted(cluster)
    new.step()
    new.clock.now += 61
    new.step()
    assert condition(cluster, "VolumesFit") == ("False", "Waiting")
    assert condition(cluster, "Ready") == ("False", "Waiting")


@pytest.mark.parametrize("topics", [{}, {"retention": "1h"}])
def test_engines_whose_set_is_made_anew_are_seen(
    cluster: MemoryCluster, steps: Play, engines: _Engines, topics: dict[str, str]
) -> None:
    """It is deleted without them, and for a moment nobody owns them."""
    change(cluster, topics={"prefix": "p", **topics})
    engines.of = {"demo-engine-1": {"snapshot_age_s": 10.0}}
    steps.until_quiet()
    events(cluster)
    orphaned(cluster, "demo-engine")
    stranger = {"name": "demo-engine-7", "uid": "7", "labels": {}}
    cluster.objects["Pod", "demo-engine-7"] = {"metadata": stranger}
    steps.step()
    assert status(cluster)["active"] == "demo-engine-0"
    assert condition(cluster, "Available") == ("True", "Committing")
    assert {one[1] for one in events(cluster)} <= {"RolloutStarted"}
    steps.until_quiet()
    assert {one[1] for one in events(cluster)} <= {"RolloutFinished"}


def test_a_failover_while_the_operator_was_away_is_told(
    cluster: MemoryCluster, steps: Play, engines: _Engines
) -> None:
    steps.until_quiet()
    events(cluster)
    engines.active, engines.epoch = "demo-engine-1", 3
    restarted(cluster).until_quiet()
    assert [one[:2] for one in events(cluster)] == [("Warning", "FailedOver")]


def test_a_divergence_is_told_once(cluster: MemoryCluster, steps: Play, engines: _Engines) -> None:
    steps.until_quiet()
    events(cluster)
    engines.of = {"demo-engine-2": {"diverged_total": 1, "diverged": "record 7 differs"}}
    steps.until_quiet()
    assert events(cluster) == [
        ("Warning", "Diverged", "demo-engine-2 is rebuilt: record 7 differs.")
    ]
    restarted(cluster).until_quiet()
    assert events(cluster) == []


def test_a_topic_with_other_settings_is_told(
    cluster: MemoryCluster, steps: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps.until_quiet()
    events(cluster)
    wrong = TopicFacts(brokers=3, wrong=("p.M: has 2 partitions, must have 1.",))
    with monkeypatch.context() as patch:
        patch.setattr(memory.Keeper, "ensure", lambda *_, **__: wrong)
        steps.clock.now += 60
        steps.until_quiet()
        told = ("Warning", "WrongSettings", "p.M: has 2 partitions, must have 1.")
        assert events(cluster) == [told]
        assert condition(cluster, "Stalled") == ("True", "WrongSettings")
    steps.clock.now += 60
    steps.until_quiet()
    assert [one[:2] for one in events(cluster)] == [("Normal", "TopicsReady")]


def test_events_are_bounded(cluster: MemoryCluster, steps: Play, engines: _Engines) -> None:
    steps.until_quiet()
    events(cluster)
    for count in range(100):
        engines.of = {"demo-engine-2": {"diverged_total": count, "diverged": "again"}}
        steps.clock.now += 0.1
        steps.step()
    assert len(events(cluster)) == 5
