"""Which pod is brought up to date next: tables, and whole roll-outs against a played cluster."""

import random
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from espha.protocol.brokers import LEADER
from espha.protocol.states import EngineState
from espha.protocol.status import ReplicaStatus
from espha_operator.reconcile.rolling import (
    STANDS,
    STUCK,
    Brokers,
    RollPod,
    RollSet,
    Scene,
    Step,
    decide,
    engines_kept,
    needs_brokers,
    retreat,
)
from espha_operator.status.facts import Facts, SetFacts
from support.status import engine_status
from unit.operator import samples

SETS = {"demo-zookeeper": "zookeeper", "demo-kafka": "kafka", "demo-engine": "engine"}
MODES = {"demo-zookeeper-0": "follower", "demo-zookeeper-1": "leader"} | {
    "demo-zookeeper-2": "follower"
}
BROKERS = Brokers(alive=(0, 1, 2), controller=1)


def engines(active: int | None = 1, **behind: str) -> tuple[ReplicaStatus, ...]:
    """Three engines; those named are not in step, with a message."""
    return tuple(
        engine_status(
            f"demo-engine-{number}",
            EngineState.ACTIVE if number == active else EngineState.STANDBY,
            in_sync=f"engine_{number}" not in behind,
        )
        for number in range(3)
    )


def waiting(seconds: float) -> tuple[ReplicaStatus, ...]:
    """Engines of which one has read input so long ago that no order record names."""
    first, *others = engines()
    return first.model_copy(update={"unordered_s": seconds}), *others


def scene(*old: str, **changes: Any) -> Scene:
    """All is well, but these pods, or all pods of these sets, are out of date."""
    pods = [
        RollPod(name, one, "v1" if name in old or one in old else "v2")
        for one in SETS
        for name in (f"{one}-{number}" for number in range(3))
    ]
    sets = tuple(RollSet(name, component, 3, "v2") for name, component in SETS.items())
    made = Scene(sets, tuple(pods), engines(), MODES, BROKERS)
    return replace(made, **changes)


def with_pod(made: Scene, name: str, **changes: Any) -> Scene:
    pods = (replace(pod, **changes) if pod.name == name else pod for pod in made.pods)
    return replace(made, pods=tuple(pods))


def without_pod(made: Scene, name: str) -> Scene:
    return replace(made, pods=tuple(pod for pod in made.pods if pod.name != name))


def test_nothing_is_done_when_all_is_up_to_date() -> None:
    assert decide(scene()) == Step("none")
    assert decide(with_pod(scene(), "demo-engine-0", ready=False)) == Step("none")


def test_a_pod_whose_file_system_waits_for_it_is_restarted_like_one_that_is_out_of_date() -> None:
    """One at a time, and the active engine last, after a switchover."""
    made = scene()
    for number in range(3):
        made = with_pod(made, f"demo-engine-{number}", stale=True)
    first = decide(made)
    assert (first.action, first.pod) == ("evict", "demo-engine-2")
    assert first.message == (
        "3 pods are to start again, for a larger volume; demo-engine-2 is restarted."
    )
    for number in (0, 2):
        made = with_pod(made, f"demo-engine-{number}", stale=False)
    last = decide(made)
    assert (last.action, last.pod, last.to) == ("switch", "demo-engine-1", "demo-engine-0")
    held = with_pod(made, "demo-kafka-0", stale=True, ready=False, unready_s=STUCK + 1)
    assert (decide(held).action, decide(held).pod) == ("evict", "demo-kafka-0")


def test_a_template_that_its_controller_has_not_seen_yet_restarts_nobody() -> None:
    made = scene("demo-kafka")
    sets = tuple(replace(one, revision="") for one in made.sets)
    assert decide(replace(made, sets=sets)) == Step("none")


@pytest.mark.parametrize(
    ("old", "pod"),
    [
        (("demo-zookeeper", "demo-kafka", "demo-engine"), "demo-zookeeper-2"),
        (("demo-zookeeper-1", "demo-zookeeper-0", "demo-engine"), "demo-zookeeper-0"),
        (("demo-zookeeper-1", "demo-kafka"), "demo-zookeeper-1"),
        (("demo-kafka", "demo-engine"), "demo-kafka-2"),
        (("demo-kafka-0", "demo-kafka-1", "demo-engine"), "demo-kafka-0"),
        (("demo-kafka-1", "demo-engine"), "demo-kafka-1"),
        (("demo-engine",), "demo-engine-2"),
        (("demo-engine-0", "demo-engine-1"), "demo-engine-0"),
    ],
)
def test_who_comes_next(old: tuple[str, ...], pod: str) -> None:
    """The leader of ZooKeeper, the active controller and the active engine are the last ones."""
    step = decide(scene(*old))
    assert (step.action, step.pod) == ("evict", pod)
    assert pod in step.message


def test_the_active_engine_hands_over_to_one_that_is_up_to_date() -> None:
    step = decide(scene("demo-engine-1"))
    assert (step.action, step.pod, step.to) == ("switch", "demo-engine-1", "demo-engine-0")
    after = decide(scene("demo-engine-1", engines=engines(active=0)))
    assert (after.action, after.pod) == ("evict", "demo-engine-1")


def test_the_newest_epoch_tells_who_is_active() -> None:
    """Two may claim it for a moment."""
    two = (
        engine_status("demo-engine-0", EngineState.ACTIVE, epoch=3),
        engine_status("demo-engine-1", EngineState.ACTIVE, epoch=2),
        engine_status("demo-engine-2"),
    )
    step = decide(scene("demo-engine-0", "demo-engine-1", engines=two))
    assert (step.action, step.pod) == ("evict", "demo-engine-1")


WAITS: dict[str, tuple[Scene, str]] = {
    "a pod ends": (
        with_pod(scene("demo-kafka"), "demo-engine-0", leaving=True),
        "demo-engine-0 is ending",
    ),
    "a pod is not there": (
        without_pod(scene("demo-kafka"), "demo-kafka-1"),
        "demo-kafka has 2 of 3 pods",
    ),
    "a ZooKeeper server is not ready": (
        with_pod(scene("demo-zookeeper"), "demo-zookeeper-0", ready=False, revision="v2"),
        "demo-zookeeper-0 does not serve yet",
    ),
    "a ZooKeeper server has not joined": (
        scene("demo-zookeeper-0", modes={key: MODES[key] for key in list(MODES)[:2]}),
        "demo-zookeeper-2 does not serve yet",
    ),
    "no ZooKeeper server leads": (
        scene("demo-zookeeper", modes=dict.fromkeys(MODES, "follower")),
        "no ZooKeeper server leads",
    ),
    "ZooKeeper first": (
        scene("demo-kafka", modes={}),
        "demo-zookeeper-0, demo-zookeeper-1, demo-zookeeper-2 does not serve yet",
    ),
    "a broker is not ready": (
        with_pod(scene("demo-kafka"), "demo-kafka-2", ready=False, revision="v2"),
        "demo-kafka-2 does not serve yet",
    ),
    "Kafka does not answer": (
        scene("demo-kafka", brokers=Brokers(error="Kafka at k:9092 does not answer: timed out.")),
        "Kafka at k:9092 does not answer: timed out",
    ),
    "a broker has not joined": (
        scene("demo-kafka", brokers=replace(BROKERS, alive=(0, 2))),
        "demo-kafka-1 has not joined Kafka",
    ),
    "a broker is out of sync": (
        scene("demo-kafka", brokers=replace(BROKERS, behind=("__transaction_state", "x.M"))),
        "copies are missing or behind: __transaction_state, x.M",
    ),
    "a controller lags": (
        scene("demo-kafka", brokers=replace(BROKERS, lagging=(2,))),
        "demo-kafka-2 does not follow the active controller",
    ),
    "output does not flow again yet": (
        scene("demo-kafka", engines=waiting(2.0)),
        "input waits for the active engine",
    ),
    "engines wait for brokers": (
        scene("demo-engine", brokers=replace(BROKERS, behind=("x.M",))),
        "copies are missing or behind: x.M",
    ),
    "an engine is not in step": (
        scene("demo-engine-0", engines=engines(engine_2="replays")),
        "demo-engine-2 does not serve yet",
    ),
    "an engine does not answer": (
        scene("demo-engine-0", engines=engines()[:2]),
        "demo-engine-2 does not serve yet",
    ),
    "no engine is active": (scene("demo-engine", engines=engines(None)), "no engine is active"),
}


@pytest.mark.parametrize(("made", "why"), WAITS.values(), ids=WAITS.keys())
def test_why_nobody_may_go(made: Scene, why: str) -> None:
    step = decide(made)
    assert step.action == "wait"
    assert step.message.endswith(f"; {why}.")


@pytest.mark.parametrize("seconds", [0.5, STANDS + 1])
def test_what_waits_for_a_moment_or_for_ever_holds_no_broker_back(seconds: float) -> None:
    assert decide(scene("demo-kafka", engines=waiting(seconds))).action == "evict"


BROKEN: dict[str, dict[str, Any]] = {
    "image": {"ready": False, "trouble": "ImagePullBackOff"},
    "crash": {"ready": False, "trouble": "CrashLoopBackOff"},
    "never ready": {"ready": False, "unready_s": STUCK + 1},
}


@pytest.mark.parametrize("how", BROKEN.values(), ids=BROKEN.keys())
@pytest.mark.parametrize("one", SETS)
def test_a_broken_pod_is_replaced_at_once(one: str, how: dict[str, Any]) -> None:
    """Also out of order, and when nothing is well."""
    made = scene("demo-zookeeper", one, modes={}, brokers=Brokers(error="silent"))
    step = decide(with_pod(made, f"{one}-1", **how))
    assert (step.action, step.pod) == ("evict", f"{one}-1")


@pytest.mark.parametrize("how", BROKEN.values(), ids=BROKEN.keys())
def test_all_broken_pods_are_replaced_one_by_one(how: dict[str, Any]) -> None:
    """The first one with the cure cannot be ready before there is a quorum."""
    made = scene("demo-kafka")
    for number in range(3):
        made = with_pod(made, f"demo-kafka-{number}", **how)
    for number in range(3):
        name = f"demo-kafka-{number}"
        assert decide(made).pod == name
        ending = with_pod(made, name, leaving=True)
        assert decide(ending).action == "wait"
        assert decide(without_pod(ending, name)).action != "evict"
        made = with_pod(made, name, revision="v2", trouble="", unready_s=1.0, ready=False)
    assert decide(made) == Step("none")


def test_a_newer_template_that_does_not_start_replaces_nobody() -> None:
    """One that fails for a moment must not be taken from the quorum by what is no cure."""
    made = with_pod(scene("demo-kafka"), "demo-kafka-2", revision="v2", **BROKEN["image"])
    step = decide(with_pod(made, "demo-kafka-1", **BROKEN["crash"]))
    assert step.action == "wait"
    assert "demo-kafka-2, which is up to date, does not start: ImagePullBackOff" in step.message
    assert decide(made).action == "wait"


@pytest.mark.parametrize("one", SETS)
def test_the_only_pod_that_is_not_ready_goes_first(one: str) -> None:
    """It costs nobody anything; with another one away it would not be alone."""
    made = with_pod(scene(one, modes=MODES), f"{one}-1", ready=False)
    assert decide(made).pod == f"{one}-1"
    two = with_pod(made, f"{one}-0", ready=False)
    assert decide(two).action == "wait"


def test_kafka_is_asked_only_when_that_decides() -> None:
    assert not needs_brokers(scene())
    assert not needs_brokers(scene("demo-zookeeper", "demo-kafka"))
    assert needs_brokers(scene("demo-kafka"))
    assert needs_brokers(scene("demo-engine"))
    assert not needs_brokers(with_pod(scene("demo-kafka"), "demo-kafka-0", leaving=True))
    external = replace(scene("demo-engine"), sets=scene().sets[2:])
    assert not needs_brokers(external)
    assert decide(external).pod == "demo-engine-2"


def test_alone_a_pod_is_restarted_all_the_same() -> None:
    """With one server, or one engine, nothing stays to take its place."""
    sets = tuple(replace(one, wanted=1) for one in scene().sets)
    pods = tuple(pod for pod in scene(*SETS).pods if pod.ordinal == 0)
    alone = Scene(
        sets, pods, engines(0)[:1], {"demo-zookeeper-0": "standalone"}, Brokers("", (0,), (), 0)
    )
    assert decide(alone).pod == "demo-zookeeper-0"
    for name in ("demo-zookeeper-0", "demo-kafka-0"):
        alone = with_pod(alone, name, revision="v2")
        assert decide(alone).action == "evict"
    assert decide(alone).pod == "demo-engine-0"


def test_adapters_do_not_wait_for_each_other() -> None:
    """Each goes on for itself, the active one of a pair last."""
    names = {"demo-input-a": 2, "demo-output-b": 1}
    sets = (
        *scene().sets,
        *(RollSet(name, "adapter", count, "v2") for name, count in names.items()),
    )
    pods = [
        RollPod(f"{name}-{number}", name, "v1")
        for name, count in names.items()
        for number in range(count)
    ]
    made = replace(scene(), sets=sets, pods=(*scene().pods, *pods))
    assert decide(made).pod == "demo-input-a-1"
    assert decide(replace(made, leading=frozenset(["demo-input-a-1"]))).pod == "demo-input-a-0"
    unready = with_pod(made, "demo-output-b-0", revision="v2", ready=False)
    assert decide(unready).pod == "demo-input-a-1"


@dataclass
class Play:
    """A cluster that does what it is told, slowly, and at times fails on its own."""

    chance: random.Random
    old: set[str] = field(default_factory=set)
    away: dict[str, int] = field(default_factory=dict)
    """Pods that are not ready, and for how many steps yet."""
    behind: int = 0
    """For how many steps copies are behind yet."""
    active: int = 1
    leader: int = 1
    controller: int = 1
    take_overs: int = 0
    restarted: list[str] = field(default_factory=list)

    def scene(self) -> Scene:
        """Return what is seen now."""
        made = scene(*self.old)
        for name in self.away:
            made = with_pod(made, name, ready=False)
        modes = {name: "follower" for name in MODES if name not in self.away}
        leader = f"demo-zookeeper-{self.leader}"
        modes |= {leader: "leader"} if leader in modes else {}
        told = tuple(one for one in engines(self.active) if one.name not in self.away)
        lost = ("x.M",) if self.behind else ()
        return replace(
            made,
            engines=told,
            modes=modes,
            brokers=Brokers("", (0, 1, 2), lost, self.controller),
        )

    def do(self, step: Step) -> None:
        """Do what was decided."""
        if step.action == "switch":
            assert step.to not in self.old
            assert step.to not in self.away
            self.active = int(step.to[-1])
            self.take_overs += 1
        if step.action != "evict":
            return
        assert not self.away, f"{step.pod} goes while {self.away} are away"
        if step.pod.startswith("demo-kafka"):
            assert not self.behind
        self.restarted.append(step.pod)
        self.old.discard(step.pod)
        self.away[step.pod] = self.chance.randrange(1, 5)
        number = int(step.pod[-1])
        if step.pod.startswith("demo-kafka"):
            self.behind = self.away[step.pod] + self.chance.randrange(3)
            self.controller = (number + 1) % 3 if number == self.controller else self.controller
        if step.pod.startswith("demo-zookeeper") and number == self.leader:
            self.leader = (number + 1) % 3
        assert step.pod != f"demo-engine-{self.active}", "the active engine hands over first"

    def pass_time(self) -> None:
        """Let pods come back, and at times fail for reasons of their own."""
        self.away = {name: left - 1 for name, left in self.away.items() if left > 1}
        self.behind = max(0, self.behind - 1)
        if self.chance.random() < 0.05:
            self.behind += 2


@pytest.mark.parametrize("seed", range(60))
def test_a_whole_roll_out_takes_one_pod_at_a_time_and_one_take_over(seed: int) -> None:
    """Whoever leads at the beginning: each pod once, components in order, leaders last."""
    chance = random.Random(seed)
    old = set(chance.sample(list(SETS), chance.randrange(1, 4)))
    names = {f"{one}-{number}" for one in old for number in range(3)}
    play = Play(chance, set(names), active=chance.randrange(3), leader=chance.randrange(3))
    play.controller = chance.randrange(3)
    leader, controller = play.leader, play.controller
    for _ in range(300):
        step = decide(play.scene())
        if step.action == "none":
            break
        assert step.message
        play.do(step)
        play.pass_time()
    else:
        raise AssertionError(f"it does not end: {step}")
    assert sorted(play.restarted) == sorted(names)
    assert play.take_overs == ("demo-engine" in old)
    order = [name.rpartition("-")[0] for name in play.restarted]
    assert order == sorted(order, key=list(SETS).index)
    brokers = [int(name[-1]) for name in play.restarted if name.startswith("demo-kafka")]
    if brokers:
        assert brokers[-1] == controller
        assert LEADER in brokers[1:]
    servers = [int(name[-1]) for name in play.restarted if name.startswith("demo-zookeeper")]
    assert servers[-1:] in ([], [leader])


def facts(wanted: int, there: int, active: int | None, *in_step: int) -> Facts:
    """A deployment that is to have so many engines, and has so many."""
    made = samples.deployment(engines={"replicas": wanted})
    told = tuple(
        engine_status(
            f"demo-engine-{number}",
            EngineState.ACTIVE if number == active else EngineState.STANDBY,
            in_sync=number in in_step or number == active,
        )
        for number in range(there)
    )
    sets = {"demo-engine": SetFacts(there, there, there)}
    return samples.healthy(deployment=made, engines=told, sets=sets)


@pytest.mark.parametrize(
    ("made", "kept", "action", "to"),
    [
        (facts(3, 3, 2, 0, 1), 3, "none", ""),
        (facts(5, 3, 2, 0, 1), 5, "none", ""),
        (facts(2, 3, 0, 1, 2), 2, "none", ""),
        (facts(2, 3, 2, 0, 1), 3, "switch", "demo-engine-0"),
        (facts(2, 3, 2, 1), 3, "switch", "demo-engine-1"),
        (facts(1, 3, 2, 1), 3, "wait", ""),
        (facts(2, 3, None, 0), 3, "wait", ""),
        (facts(2, 3, None), 2, "none", ""),
        # Their set is made anew, for larger volumes.
        (facts(2, 3, 2, 0, 1).replace(sets={}), 3, "switch", "demo-engine-0"),
        (facts(3, 0, None).replace(sets={}), 3, "none", ""),
    ],
)
def test_the_active_engine_hands_over_before_it_is_one_too_many(
    made: Facts, kept: int, action: str, to: str
) -> None:
    step = retreat(made)
    assert engines_kept(made) == kept
    assert (step.action, step.to) == (action, to)
    assert bool(step.message) == (action != "none")
