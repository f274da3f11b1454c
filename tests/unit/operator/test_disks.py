"""Looks at volumes, and what comes of them, on an API server in memory; Kafka is played."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest

from espha.protocol.snapshots import KeptSnapshot
from espha.protocol.states import EngineState
from espha_operator.api.deployment import ModelVersion
from espha_operator.reconcile import disks, growth, plan, trimming
from espha_operator.reconcile.disks import DiskKeeper, Look, Scene
from espha_operator.reconcile.kafka_talk import Quorum, TalkError
from espha_operator.reconcile.observe import Pod
from espha_operator.resources import zookeeper
from support.status import engine_status
from unit.operator.memory import Clock, MemoryCluster, refusal
from unit.operator.samples import MODEL, deployment, healthy, without

Object = dict[str, Any]


def at_once(ask: Any) -> "Future[Look]":
    answer: Future[Look] = Future()
    try:
        answer.set_result(ask())
    except Exception as error:
        answer.set_exception(error)
    return answer


class _Talk:
    """A Kafka that answers."""

    def __init__(self) -> None:
        self.deleted: list[Mapping[str, int]] = []
        self.marked: list[str] = []
        self.known: set[bytes] = set()
        self.full = 0.5
        self.leader = 0
        self.ends = {0: 10, 1: -1, 2: 10}

    def rooms(self) -> dict[int, tuple[int, int]]:
        return {broker: (1000, int(1000 * self.full)) for broker in range(3)}

    def quorum(self) -> Quorum:
        return Quorum(self.leader, 10, self.ends)

    def absent(self) -> frozenset[int]:
        return frozenset({1})

    def ids(self, topics: Any) -> dict[str, str]:
        return dict.fromkeys(topics, "id")

    def delete_before(self, offsets: Mapping[str, int]) -> None:
        self.deleted.append(dict(offsets))

    def keys(self, topic: str) -> set[bytes]:
        return self.known

    def mark_trimmed(self, positions: str) -> None:
        self.marked.append(positions)


class _Play(DiskKeeper):
    """A keeper with its cluster, clock and Kafka at hand."""

    def __init__(self, cluster: MemoryCluster, clock: Clock, talk: _Talk) -> None:
        self.cluster, self.clock, self.talk = cluster, clock, talk
        super().__init__(cluster, clock, at_once)  # type: ignore[arg-type]

    def seen(self, resource: Object | None = None, **facts: Any) -> None:
        """Look, and take in what was seen."""
        pods = (Pod("demo-engine-0", "engine", "10.0.0.9", None, uid="p-0", made="2026-01-01"),)
        meta = {"name": "demo", "namespace": "shop", "uid": "uid-1"}
        whole = resource or {"metadata": meta}
        model = MODEL.__class__(**{**vars(MODEL), "input_topics": {"cq/memory": MODEL.topics[0]}})
        scene = Scene(whole, healthy(model=model, **facts), pods, lambda: "token")
        self.clock.now += 600
        self.look(scene)
        self.look(scene)


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> _Play:
    talk = _Talk()

    @contextmanager
    def connected(bootstrap: str) -> Iterator[_Talk]:
        yield talk

    monkeypatch.setattr(disks, "talk", connected)
    monkeypatch.setattr(disks, "four_letters", lambda *_: "")
    monkeypatch.setattr(trimming, "_kept", lambda address: ())
    return _Play(MemoryCluster(), Clock(), talk)


def claim(play: _Play, name: str, component: str, **labels: str) -> None:
    play.cluster.objects["PersistentVolumeClaim", name] = {
        "metadata": {
            "name": name,
            "uid": name,
            "labels": {"app.kubernetes.io/component": component, **labels},
        },
        "spec": {"resources": {"requests": {"storage": "1Gi"}}},
        "status": {"capacity": {"storage": "1Gi"}},
    }


def format_of(play: _Play) -> str:
    assert play.known is not None
    objects = plan.plan(healthy(disks=play.known)) or []
    made = next(one for one in objects if one["metadata"]["name"] == "demo-kafka")
    return str(made["data"]["format"])


def test_nothing_is_known_before_the_first_look(play: _Play) -> None:
    assert play.known is None
    play.seen()
    assert play.known is not None


def test_brokers_that_serve_are_no_longer_new(play: _Play) -> None:
    """Their claims say so, and outlive the deployment where they are kept."""
    for broker in range(3):
        claim(play, f"data-demo-kafka-{broker}", "kafka")
    play.seen(topics=None)
    assert format_of(play) == "new\n"
    play.seen()
    play.seen()
    assert format_of(play) == ""
    del play.cluster.objects["PersistentVolumeClaim", "data-demo-kafka-1"]
    claim(play, "data-demo-kafka-1", "kafka")
    play.seen(topics=None)
    assert format_of(play) == "1\n"
    play.talk.leader = -1
    play.seen(topics=None)
    assert format_of(play) == ""


def test_kept_volumes_of_a_smaller_kafka_are_named(play: _Play) -> None:
    claim(play, "data-demo-kafka-0", "kafka", **{"espha.dev/servers": "1"})
    play.seen()
    assert play.known is not None
    assert "of 1 servers" in play.known.foreign["kafka"]


BORN = {
    "metadata": {
        "name": "demo",
        "namespace": "shop",
        "uid": "uid-1",
        "creationTimestamp": "2026-02-01T00:00:00Z",
    }
}


def left(play: _Play, name: str, component: str, **labels: str) -> None:
    """Make a claim that is older than the deployment."""
    claim(play, name, component, **labels)
    meta = play.cluster.objects["PersistentVolumeClaim", name]["metadata"]
    meta["creationTimestamp"] = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize("component", ["kafka", "zookeeper"])
def test_servers_do_not_start_on_what_fewer_ones_have_left(play: _Play, component: str) -> None:
    """Two empty ones would elect one of themselves; no claim has a mark here."""
    left(play, f"data-demo-{component}-0", component)
    play.seen(BORN)
    assert play.known is not None
    assert "of 1 servers" in play.known.foreign[component]
    name = f"demo-{component}"
    objects = plan.plan(healthy(disks=play.known, sets=without(name))) or []
    assert name not in {one["metadata"]["name"] for one in objects}
    objects = plan.plan(healthy(disks=play.known)) or []
    assert name in {one["metadata"]["name"] for one in objects}


@pytest.mark.parametrize("component", ["kafka", "zookeeper"])
def test_a_first_try_that_failed_does_not_stand_in_the_way(play: _Play, component: str) -> None:
    """Its volumes are kept by default, and say that they have never served."""
    name = f"data-demo-{component}-0"
    claim(play, name, component)
    meta = play.cluster.objects["PersistentVolumeClaim", name]["metadata"]
    meta["creationTimestamp"] = "2026-02-01T00:00:09Z"
    play.seen(BORN, topics=None, serving=0)
    assert meta["labels"]["espha.dev/servers"] == "0"
    meta["creationTimestamp"] = "2026-01-01T00:00:00Z"
    play.seen(BORN, topics=None, serving=0)
    assert play.known is not None
    assert play.known.foreign == {}
    assert format_of(play) == "new\n"


def test_brokers_that_find_their_volumes_again_format_none(play: _Play) -> None:
    for broker in range(3):
        left(play, f"data-demo-kafka-{broker}", "kafka")
    play.seen(BORN, topics=None)
    assert format_of(play) == ""
    play.seen(BORN)
    labels = play.cluster.objects["PersistentVolumeClaim", "data-demo-kafka-1"]["metadata"][
        "labels"
    ]
    assert labels["espha.dev/servers"] == "3"


def test_a_broker_that_does_not_answer_any_more_is_still_full(
    play: _Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full volume ends a broker: that is when people want to know why."""
    play.talk.full = 0.97
    play.seen()

    @contextmanager
    def silent(bootstrap: str) -> Iterator[_Talk]:
        raise TalkError("no answer")
        yield

    monkeypatch.setattr(disks, "talk", silent)
    play.seen()
    assert play.known is not None
    assert [one.share for one in play.known.rooms] == [0.97] * 3


def test_a_look_that_fails_leaves_what_was_known(
    play: _Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    play.seen()
    before = play.known

    def broken(*_: Any) -> list[Object]:
        raise OSError("gone")

    monkeypatch.setattr(play.cluster, "list", broken)
    play.seen()
    assert play.known is before


def test_a_set_is_made_anew_once_its_claims_have_grown(play: _Play) -> None:
    wanted = zookeeper.zookeeper(deployment(zookeeper={"storage": {"size": "2Gi"}}))
    for one in zookeeper.zookeeper(deployment()):
        play.cluster.apply(one)
    there = play.cluster.objects["StatefulSet", "demo-zookeeper"]
    there["metadata"]["uid"] = "set-1"
    for server in range(3):
        claim(play, f"data-demo-zookeeper-{server}", "zookeeper")
    play.seen()
    assert (
        play.fit(deployment(), wanted)[0][-1]["spec"]["volumeClaimTemplates"]
        == (there["spec"]["volumeClaimTemplates"])
    )
    for server in range(3):
        made = play.cluster.objects["PersistentVolumeClaim", f"data-demo-zookeeper-{server}"]
        made["spec"]["resources"]["requests"]["storage"] = "2Gi"
    play.seen()
    there["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] = "Retain"
    assert play.fit(deployment(), wanted)[1] == {"demo-zookeeper"}
    assert play.cluster.writes.count("delete StatefulSet demo-zookeeper") == 1
    assert play.fit(deployment(), wanted) == (wanted, frozenset(), "")


def test_a_set_that_may_not_be_deleted_stays_and_is_said(play: _Play) -> None:
    """A policy may forbid it; all else is applied, and it is tried again after a pause."""
    wanted = zookeeper.zookeeper(deployment(zookeeper={"storage": {"size": "2Gi"}}))
    for one in wanted:
        play.cluster.apply(one)
    there = play.cluster.objects["StatefulSet", "demo-zookeeper"]
    there["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"] = "1Gi"
    there["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] = "Retain"
    for server in range(3):
        claim(play, f"data-demo-zookeeper-{server}", "zookeeper")
        made = play.cluster.objects["PersistentVolumeClaim", f"data-demo-zookeeper-{server}"]
        made["spec"]["resources"]["requests"]["storage"] = "2Gi"
    play.seen()
    play.cluster.refuses["delete demo-zookeeper"] = refusal(403, "sets are never deleted")
    tries = play.cluster.writes
    for _ in range(3):
        fitted, leaving, refused = play.fit(deployment(), wanted)
        assert fitted[-1]["spec"]["volumeClaimTemplates"] == there["spec"]["volumeClaimTemplates"]
        assert leaving == frozenset()
        assert refused == "StatefulSet demo-zookeeper cannot be made anew: sets are never deleted"
    assert tries.count("delete StatefulSet demo-zookeeper") == 1
    play.cluster.refuses.clear()
    play.clock.now += growth.AGAIN
    assert play.fit(deployment(), wanted)[1:] == (frozenset({"demo-zookeeper"}), "")


def test_topics_are_left_alone_while_no_snapshot_is_known(play: _Play) -> None:
    play.seen()
    assert play.known is not None
    assert "0 of 2 engines have a snapshot" in play.known.trim_held
    assert play.talk.deleted == [{}]


def test_while_a_model_runs_in_the_shadow_the_topics_of_the_one_that_leads_are_trimmed(
    play: _Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        '<project name="before"><contqueries><contquery name="cq"><windows>'
        '<window-source name="memory"><schema><fields>'
        '<field name="id" type="int64" key="true"/>'
        "</fields></schema></window-source></windows></contquery></contqueries></project>"
    )
    topic, log = "HAtopic1_31415.before.cq.memory.I", MODEL.order_log
    made = KeptSnapshot(
        sequence=5,
        made=0,
        model="leads",
        order_log=3,
        inputs={topic: 4},
        topics={topic: "id", log: "id"},
    )
    monkeypatch.setattr(trimming, "_kept", lambda address: (made,))
    active = engine_status("demo-engine-0", EngineState.ACTIVE, model_digest="leads")
    assert active.engine
    told = active.engine.model_copy(update={"log_model": "leads"})
    play.seen(
        deployment=deployment(topics={"prefix": MODEL.prefix}, engines={"replicas": 1}),
        versions=(ModelVersion("leads", text),),
        engines=(active.model_copy(update={"progress": told}),),
    )
    assert play.known is not None
    assert play.known.trim_held == ""
    assert play.talk.deleted == [{log: 3, topic: 4}]


@pytest.mark.parametrize("failing", ["delete_before", "ids"])
def test_why_logs_cannot_be_trimmed_is_said(
    play: _Play, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """What Kafka has said before stands: a broker may be replaced all the same."""

    def refused(_: Any) -> None:
        raise TalkError("Kafka at k:9092: not authorized")

    monkeypatch.setattr(play.talk, failing, refused)
    play.seen()
    assert play.known is not None
    assert play.known.trim_held == "Kafka at k:9092: not authorized."
    assert play._seen is not None
    assert (play._seen.others.error, play._seen.others.absent) == ("", {1})
    play.seen(paused=True)
    assert play.known.trim_held == ""


def test_of_an_external_kafka_nobody_asks_what_its_brokers_lack(
    play: _Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have so many topics that the answer takes too long."""

    def endless() -> frozenset[int]:
        raise TalkError("no end of answers")

    monkeypatch.setattr(play.talk, "absent", endless)
    external = {"external": {"bootstrapServers": ["k:9092"]}}
    play.seen(deployment=deployment(kafka=external))
    assert play.known is not None
    assert "0 of 2 engines have a snapshot" in play.known.trim_held


def test_volumes_that_never_tell_that_they_have_grown_are_looked_at_seldom(play: _Play) -> None:
    """It was each three seconds for ever, with a connection to Kafka each time."""
    wanted = zookeeper.zookeeper(deployment(zookeeper={"storage": {"size": "2Gi"}}))
    for server in range(3):
        claim(play, f"data-demo-zookeeper-{server}", "zookeeper")
        made = play.cluster.objects["PersistentVolumeClaim", f"data-demo-zookeeper-{server}"]
        made["spec"]["resources"]["requests"]["storage"] = "2Gi"
    play.fit(deployment(), wanted)
    play.seen()
    assert play.known is not None
    assert len(play.known.growing) == 3

    def pause() -> float:
        """Return how long it is to the next look, when one has been taken in just now."""
        scene = Scene(BORN, healthy(), (), lambda: "token")
        play.clock.now = play._due
        play.look(scene)
        play.look(scene)
        return play._due - play.clock.now

    assert pause() == disks.SOON
    play.clock.now += disks.GROWS
    assert [pause() for _ in range(60)][-1] == disks.USUALLY


def test_a_pod_whose_file_system_waits_for_it_is_known(play: _Play) -> None:
    claim(play, "snapshots-demo-engine-0", "engine")
    status = play.cluster.objects["PersistentVolumeClaim", "snapshots-demo-engine-0"]["status"]
    pending = {"type": "FileSystemResizePending", "status": "True"}
    status["conditions"] = [{**pending, "lastTransitionTime": "2026-02-01T00:00:00Z"}]
    play.seen()
    assert play.known is not None
    assert play.known.pending == ("snapshots-demo-engine-0",)
    assert play.known.waiting == {"p-0"}
