"""Roll-outs step by step, against pods that only a test moves."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Event
from typing import Any, cast

import pytest
from kubernetes.client.exceptions import ApiException

from espha.protocol.states import EngineState
from espha.protocol.status import ReplicaStatus
from espha_operator.reconcile import brokers, observe, roller, switchover
from espha_operator.reconcile.cluster import Cluster
from espha_operator.reconcile.observe import Observed, Pod
from espha_operator.reconcile.roller import Roller
from espha_operator.reconcile.rolling import Brokers
from espha_operator.status.facts import Facts, SetFacts, TopicFacts
from espha_operator.status.storage import DiskFacts
from espha_operator.status.switchover import Decision
from support.replicas import LIMIT_S
from support.servers import wait_until
from support.status import engine_status
from unit.operator import samples

SETS = {"demo-zookeeper": "zookeeper", "demo-kafka": "kafka", "demo-engine": "engine"}
RESOURCE = {"metadata": {"name": "demo", "namespace": "shop", "uid": "uid-1"}}
WELL = Brokers(alive=(0, 1, 2), controller=1)


class World:
    """Pods, an API server that takes evictions, an active engine and a Kafka that are asked."""

    def __init__(self) -> None:
        self.revision = dict.fromkeys(SETS, "v1")
        self.pods = {f"{one}-{number}": "v1" for one in SETS for number in range(3)}
        self.trouble: dict[str, str] = {}
        self.active = "demo-engine-1"
        self.done: list[str] = []
        self.refusal: ApiException | None = None
        self.kafka, self.looks = WELL, 0
        self.answers = Event()
        self.now = 100.0
        self.roller = Roller(cast("Cluster", self), lambda _: "proof", lambda: self.now)

    def evict(self, namespace: str, pod: str, uid: str) -> None:
        """Take an eviction: the pod is back, up to date and ready at once."""
        assert (namespace, uid) == ("shop", f"uid of {pod}")
        if self.refusal:
            raise self.refusal
        self.done.append(pod)
        self.pods[pod] = self.revision[pod.rpartition("-")[0]]
        self.trouble.pop(pod, None)

    def create(self, wanted: dict[str, Any]) -> None:
        """Take an Event."""
        self.done.append(f"{wanted['kind']} {wanted['reason']}")

    def ask(self, address: str, to: str, _: str) -> Decision:
        """Hand over, as the active engine does."""
        assert address == f"address of {self.active}"
        self.done.append(f"switch to {to}")
        self.active = to
        return Decision("ask", to)

    def look(self, bootstrap: str, addresses: list[tuple[str, int]]) -> Brokers:
        """Answer as Kafka does: after the step that asks."""
        assert self.answers.wait(LIMIT_S)
        assert addresses == [(f"address of demo-kafka-{number}", 9092) for number in range(3)]
        self.looks += 1
        return self.kafka

    def count(self, one: str) -> int:
        """Return how many pods a set has."""
        return sum(name.rpartition("-")[0] == one for name in self.pods)

    def seen(self) -> Observed:
        """Return what the operator sees now."""
        sets = {
            name: SetFacts(self.count(name), 3, 3, revision=of)
            for name, of in self.revision.items()
        }
        pods = tuple(
            Pod(
                name,
                SETS[name.rpartition("-")[0]],
                f"address of {name}",
                None,
                uid=f"uid of {name}",
                set=name.rpartition("-")[0],
                revision=revision,
                ready=name not in self.trouble,
                trouble=self.trouble.get(name, ""),
            )
            for name, revision in self.pods.items()
        )
        engines = tuple(
            engine_status(name, EngineState.ACTIVE if name == self.active else EngineState.STANDBY)
            for name in self.pods
            if "engine" in name
        )
        modes = dict.fromkeys(("demo-zookeeper-0", "demo-zookeeper-1"), "follower")
        return Observed(sets, pods, engines, {**modes, "demo-zookeeper-2": "leader"})

    def step(self, **changes: Any) -> str:
        """Take a step; the sentence that comes of it."""
        seen = self.seen()
        facts = Facts(samples.deployment(), samples.MODEL, seen.sets, 3, seen.engines)
        self.now += 1
        with self._before_answers():
            return self.roller.step(RESOURCE, facts.replace(**changes), seen)

    def guarded(self, **changes: Any) -> frozenset[str]:
        """Return the components of which nobody may evict a pod."""
        seen = self.seen()
        facts = Facts(samples.deployment(), samples.MODEL, seen.sets, 3, seen.engines)
        with self._before_answers():
            return self.roller.guarded(facts.replace(**changes), seen)

    @contextmanager
    def _before_answers(self) -> Iterator[None]:
        """Keep what is asked in this block waiting until its end; return with the answer there."""
        self.answers.clear()
        try:
            yield
        finally:
            self.answers.set()
        asked = self.roller._asked
        wait_until(lambda: asked is None or asked.done(), LIMIT_S, "Kafka has answered")

    def until_done(self) -> list[str]:
        """Take steps to the end; what was done."""
        for _ in range(100):
            if not self.step():
                return self.done
        raise AssertionError(f"it does not end: {self.done}")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(switchover, "ask", made.ask)
    monkeypatch.setattr(brokers, "look", made.look)
    return made


def test_a_roll_out_of_all_components_costs_one_take_over(world: World) -> None:
    world.revision = dict.fromkeys(SETS, "v2")
    assert world.until_done() == [
        "demo-zookeeper-1",
        "demo-zookeeper-0",
        "demo-zookeeper-2",
        "demo-kafka-2",
        "demo-kafka-0",
        "demo-kafka-1",
        "demo-engine-2",
        "demo-engine-0",
        "Event HandingOver",
        "switch to demo-engine-0",
        "demo-engine-1",
    ]


def test_a_pod_whose_file_system_waits_for_it_is_restarted_once(world: World) -> None:
    """The uid is that of the pod that was there: the next one has another."""
    waiting = DiskFacts(waiting=frozenset({"uid of demo-engine-2"}))
    world.step(disks=waiting)  # Kafka is asked
    assert "demo-engine-2 is restarted" in world.step(disks=waiting)
    assert world.done == ["demo-engine-2"]
    assert world.step(disks=DiskFacts(waiting=frozenset({"uid of its predecessor"}))) == ""


def test_nothing_is_asked_and_done_when_all_is_up_to_date(world: World) -> None:
    assert world.step() == ""
    assert (world.done, world.looks) == ([], 0)


def test_a_broker_that_is_out_of_sync_stops_it_with_a_sentence(world: World) -> None:
    world.revision["demo-kafka"] = "v2"
    world.kafka = Brokers(alive=(0, 1, 2), controller=1, behind=("x.M",))
    assert world.step() == "3 pods are out of date; Kafka has not been asked yet."
    sentences = {world.step() for _ in range(6)}
    assert sentences == {"3 pods are out of date; copies are missing or behind: x.M."}
    assert world.done == []
    world.kafka = WELL
    assert len(world.until_done()) == 3


def test_a_kafka_that_does_not_answer_is_asked_seldom(world: World) -> None:
    world.revision["demo-kafka"] = "v2"
    world.kafka = Brokers(error="Kafka at k:9092 does not answer: timed out")
    said = [world.step() for _ in range(int(2 * roller.SILENT))]
    assert 1 <= world.looks <= 3
    assert said[-1] == "3 pods are out of date; Kafka at k:9092 does not answer: timed out."
    world.kafka = WELL
    assert len(world.until_done()) == 3


def test_each_broker_goes_on_an_answer_of_its_own(world: World) -> None:
    """What was true before an eviction says nothing about the time after it."""
    world.revision["demo-kafka"] = "v2"
    world.until_done()
    assert world.looks >= 3


@pytest.mark.parametrize("looks", [1, 2], ids=["asked", "answered"])
def test_what_was_true_before_a_roll_out_begins_decides_nothing(world: World, looks: int) -> None:
    """The budget's question was answered when all was well, an hour ago."""
    for _ in range(looks):
        world.guarded()
    world.now += 3600
    world.kafka = replace(WELL, behind=("x.M",))
    world.revision["demo-kafka"] = "v2"
    for _ in range(3):
        world.guarded()
        world.step()
    assert world.done == []


def test_a_budget_that_says_no_is_obeyed(world: World) -> None:
    world.revision["demo-zookeeper"] = "v2"
    world.refusal = ApiException(status=429)
    assert "Its disruption budget does not allow that now." in world.step()
    world.refusal = ApiException(status=409, reason="Conflict")
    assert "demo-zookeeper-1 is restarted" in world.step()
    world.refusal = ApiException(status=403, reason="Forbidden")
    assert "The API server refuses: 403 Forbidden" in world.step()
    world.refusal = None
    assert len(world.until_done()) == 3


def test_an_engine_that_does_not_hand_over_is_asked_again_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.pods["demo-engine-1"], world.revision["demo-engine"] = "v1", "v2"
    world.pods |= {"demo-engine-0": "v2", "demo-engine-2": "v2"}
    asked: list[str] = []

    def refuse(address: str, to: str, proof: str) -> Decision:
        asked.append(to)
        return Decision("refused", to, "The active engine refuses: no.")

    monkeypatch.setattr(switchover, "ask", refuse)
    for _ in range(int(2 * roller.AGAIN)):
        world.step()
    assert 1 <= len(asked) <= 3
    assert "demo-engine-1" not in world.done


def test_an_engine_that_knows_another_token_is_made_anew(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens have been changed since it began; it hands over by itself when its pod ends."""
    world.pods["demo-engine-1"], world.revision["demo-engine"] = "v1", "v2"
    world.pods |= {"demo-engine-0": "v2", "demo-engine-2": "v2"}

    def refuse(address: str, to: str, proof: str) -> Decision:
        return Decision("refused", to, "The active engine refuses: no.", locked=True)

    monkeypatch.setattr(switchover, "ask", refuse)
    wait_until(lambda: "another token" in world.step(), LIMIT_S, "the pod is made anew")
    assert world.done == ["Event HandingOver", "demo-engine-1"]


def test_of_a_pair_of_adapters_the_standby_goes_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the pair hands over once."""
    monkeypatch.setitem(SETS, "demo-input-a", "adapter")
    world.revision["demo-input-a"] = "v2"
    world.pods |= {"demo-input-a-0": "v1", "demo-input-a-1": "v1"}
    active = ReplicaStatus(name="demo-input-a-1", state=EngineState.ACTIVE)
    monkeypatch.setattr(observe, "ask_adapters", lambda pods: [active])
    world.step()
    world.step()
    assert world.done == ["demo-input-a-0"]


def test_a_budget_is_closed_until_all_servers_have_caught_up(world: World) -> None:
    """Ports are open, and pods ready, before that; what Kafka said before counts no more."""
    guarded = world.guarded
    away = {**world.seen().sets, "demo-kafka": SetFacts(3, 3, 2)}
    assert guarded() == {"kafka"}
    assert guarded() == frozenset()
    assert guarded(sets=away) == {"kafka"}
    world.kafka = Brokers(alive=(0, 1, 2), controller=1, behind=("x.M",))
    for _ in range(4):
        assert guarded() == {"kafka"}
    world.kafka = WELL
    wait_until(lambda: guarded() == frozenset(), 10, "it is open again")
    looks = world.looks
    assert guarded() == frozenset()
    assert world.looks == looks, "nobody is asked while all is well"
    assert guarded(topics=TopicFacts(brokers=3, under_replicated=("x.M",))) == {"kafka"}
    few = {**world.seen().sets, "demo-zookeeper": SetFacts(3, 3, 2)}
    assert "zookeeper" in guarded(sets=few)
    assert guarded(sets={}) == frozenset()


def test_scaling_down_asks_the_active_engine_first(world: World) -> None:
    world.active = "demo-engine-2"
    fewer = samples.deployment(engines={"replicas": 2})
    assert "it hands over to demo-engine-0" in world.step(deployment=fewer)
    assert world.done == ["Event HandingOver", "switch to demo-engine-0"]
    assert world.step(deployment=fewer) == ""


def test_an_engine_that_is_to_stay_is_mended_although_scaling_down_waits_for_it(
    world: World,
) -> None:
    """Its pod gets the template that cures it only when it is made anew."""
    world.revision["demo-engine"] = "v2"
    world.trouble["demo-engine-0"] = "ImagePullBackOff"
    waits = {
        "deployment": samples.deployment(engines={"replicas": 1}),
        "engines": (engine_status("demo-engine-1", EngineState.ACTIVE),),
    }
    held = "demo-engine-1 is active and too many; none of those that stay is in step."
    assert world.step(**waits) == f"{held} demo-engine-0 is replaced: ImagePullBackOff."
    assert world.step(**waits) == held
    assert world.done == ["demo-engine-0"]
