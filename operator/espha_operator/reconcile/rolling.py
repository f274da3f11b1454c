"""Which pod may be brought up to date next, or why none may. Pure.

The StatefulSets are `OnDelete`: a pod gets the newest template when it is deleted, and this decides
when. One pod at a time, and one component at a time, in the order in which they need each other:
ZooKeeper, Kafka, engines, adapters. So what an engine of a newer version may need of its servers is
there before it, and its take-over, the only one, finds servers that nobody restarts any more.

A pod that serves nobody (its image cannot be pulled, it crashes, it is never ready) and is out of
date goes first, whatever its component: a mended template must reach it although nothing is well.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from espha.protocol.brokers import LEADER
from espha.protocol.status import ReplicaStatus
from espha_operator.status.facts import Facts, active_of, unordered_s

ORDER = ("zookeeper", "kafka", "engine", "adapter")
# Seconds: a pod that has not been ready for so long will hardly become so with its old template.
STUCK = 120.0
# Seconds for which input that waits holds a broker back. What waits for longer has other reasons,
# and a newer template may be their cure.
FLOWS, STANDS = 1.0, 60.0
_LISTED = 5
_UNASKED = "Kafka has not been asked yet"


@dataclass(frozen=True)
class RollSet:
    """A StatefulSet.

    Attributes:
        name: its name.
        component: one of `ORDER`.
        wanted: how many pods it is to have.
        revision: of its newest template; empty: its controller has not told it yet.
    """

    name: str
    component: str
    wanted: int
    revision: str


@dataclass(frozen=True)
class RollPod:
    """A pod of a StatefulSet.

    Attributes:
        name: its name.
        set: the StatefulSet's name.
        revision: of the template that it was made of.
        ready: whether its probe says so.
        leaving: whether it is being deleted.
        trouble: why its container cannot run (`ImagePullBackOff`, …); empty: it runs or starts.
        unready_s: for how long it has not been ready, s.
        stale: whether its file system grows only when it starts again.
    """

    name: str
    set: str
    revision: str
    ready: bool = True
    leaving: bool = False
    trouble: str = ""
    unready_s: float = 0.0
    stale: bool = False

    @property
    def ordinal(self) -> int:
        """Its number in the set."""
        return ordinal(self.name)

    @property
    def broken(self) -> bool:
        """Whether it will hardly ever be ready as it is."""
        return not self.ready and (bool(self.trouble) or self.unready_s > STUCK)


@dataclass(frozen=True)
class Brokers:
    """What a managed Kafka says of itself.

    Attributes:
        error: why it could not be asked; empty: it has answered.
        alive: the brokers that have joined.
        behind: topics, internal ones too, of which a copy is missing or behind.
        controller: the broker that is the active controller.
        lagging: controllers that do not follow the active one.
    """

    error: str = ""
    alive: tuple[int, ...] = ()
    behind: tuple[str, ...] = ()
    controller: int | None = None
    lagging: tuple[int, ...] = ()

    def whole(self, wanted: int) -> bool:
        """Whether all of so many brokers have joined, and nothing is missing or behind."""
        return not (self.error or self.behind or self.lagging) and len(self.alive) >= wanted


@dataclass(frozen=True)
class Scene:
    """Everything that the decision is made of.

    Attributes:
        sets: the deployment's StatefulSets.
        pods: their pods.
        engines: what the engines say.
        modes: what ZooKeeper servers are (`leader`, `follower`, `standalone`), by pod; those that
            do not serve are not in it.
        brokers: what Kafka says; None: it was not asked.
        leading: adapters' pods that are active, as far as it is known.
    """

    sets: tuple[RollSet, ...] = ()
    pods: tuple[RollPod, ...] = ()
    engines: tuple[ReplicaStatus, ...] = ()
    modes: Mapping[str, str] = field(default_factory=dict)
    brokers: Brokers | None = None
    leading: frozenset[str] = frozenset()

    def of(self, one: RollSet) -> list[RollPod]:
        """Return the pods of a set that it is to have, by number."""
        mine = (pod for pod in self.pods if pod.set == one.name and pod.ordinal < one.wanted)
        return sorted(mine, key=lambda pod: pod.ordinal)

    def outdated(self, one: RollSet) -> list[RollPod]:
        """Return those of them that were made of an older template, or must start again anyway."""
        known = one.revision
        return [
            pod for pod in self.of(one) if known and (pod.stale or pod.revision not in ("", known))
        ]


@dataclass(frozen=True)
class Step:
    """What to do now.

    Attributes:
        action: `none`: all is up to date; `wait`; `evict` the pod; `switch`: have the active
            engine, which is the pod, hand over to `to`.
        pod: whom it is about.
        to: the engine that is to be active.
        message: what is done or waited for, as a sentence; empty when nothing is out of date.
    """

    action: Literal["none", "wait", "evict", "switch"]
    pod: str = ""
    to: str = ""
    message: str = ""


def decide(scene: Scene) -> Step:
    """Return the next step of bringing pods up to date.

    1. While a pod ends, nothing else is done.
    2. A pod that is out of date and serves nobody is replaced at once, unless one that is up to
       date does not start either: the newer template is then no cure.
    3. The first component, in their order, that is not complete and up to date comes next.
    """
    old = [pod for one in _ordered(scene) for pod in scene.outdated(one)]
    if not old:
        return Step("none")
    step = _ending(scene) or _replace_broken(scene) or _next(scene)
    left = f"{len(old)} pods are" if len(old) > 1 else f"{old[0].name} is"
    grow = all(pod.stale for pod in old)
    why = "to start again, for a larger volume" if grow else "out of date"
    return Step(step.action, step.pod, step.to, f"{left} {why}; {step.message}.")


def mend(scene: Scene, held: Step) -> Step:
    """Replace a pod that serves nobody although all else is held; it may be what is waited for."""
    step = _ending(scene) or _replace_broken(scene)
    return replace(step, message=f"{held.message} {step.message}.") if step else held


def needs_brokers(scene: Scene) -> bool:
    """Say whether the next step depends on what Kafka says."""
    asked = decide(replace(scene, brokers=Brokers(error=_UNASKED)))
    return _UNASKED in asked.message


def ordinal(pod: str) -> int:
    """Return the number at the end of a pod's name; -1 without one."""
    number = pod.rpartition("-")[2]
    return int(number) if number.isdecimal() else -1


def _ordered(scene: Scene) -> list[RollSet]:
    known = (one for one in scene.sets if one.component in ORDER)
    return sorted(known, key=lambda one: (ORDER.index(one.component), one.name))


def _ending(scene: Scene) -> Step | None:
    names = {one.name for one in scene.sets}
    ending = sorted(pod.name for pod in scene.pods if pod.leaving and pod.set in names)
    return _wait(f"{_listed(ending)} is ending") if ending else None


def _replace_broken(scene: Scene) -> Step | None:
    waiting = None
    for one in _ordered(scene):
        broken = [pod for pod in scene.outdated(one) if pod.broken]
        if not broken:
            continue
        newer = [
            pod
            for pod in scene.of(one)
            if pod.revision == one.revision and pod.broken and not pod.stale
        ]
        if newer:
            why = newer[0].trouble or "it is not ready"
            waiting = _wait(f"{newer[0].name}, which is up to date, does not start: {why}")
        elif len(scene.of(one)) == one.wanted:
            why = broken[0].trouble or "it does not become ready"
            return Step("evict", broken[0].name, message=f"{broken[0].name} is replaced: {why}")
    return waiting


def _next(scene: Scene) -> Step:
    for component in ORDER:
        sets = [one for one in _ordered(scene) if one.component == component]
        old = [one for one in sets if scene.outdated(one)]
        if component == "adapter":  # they do not need each other
            sets = old
        for one in [*old, *sets]:
            step = _missing(scene, one) or _RULES[component](scene, one)
            if step:
                return step
    return _wait("nothing is left to do")


def _missing(scene: Scene, one: RollSet) -> Step | None:
    there = len(scene.of(one))
    if there < one.wanted:
        return _wait(f"{one.name} has {there} of {one.wanted} pods")
    return None


def _only_unready(scene: Scene, one: RollSet, well: Callable[[RollPod], bool]) -> Step | None:
    """Replace the one pod that is not well, if it is out of date; wait if another one is not."""
    unwell = [pod for pod in scene.of(one) if not well(pod)]
    if not unwell:
        return None
    if len(unwell) == 1 and unwell[0] in scene.outdated(one) and not unwell[0].ready:
        return _evict(unwell[0])
    return _wait(f"{_listed([pod.name for pod in unwell])} does not serve yet")


def _zookeeper(scene: Scene, one: RollSet) -> Step | None:
    """Go on when all servers serve: with followers, and the leader last."""
    step = _only_unready(scene, one, lambda pod: pod.ready and pod.name in scene.modes)
    old = scene.outdated(one)
    if step or not old:
        return step
    if one.wanted > 1 and "leader" not in scene.modes.values():
        return _wait("no ZooKeeper server leads")
    return _evict(min(old, key=lambda pod: (scene.modes[pod.name] == "leader", -pod.ordinal)))


def _kafka(scene: Scene, one: RollSet) -> Step | None:
    """Go on when no copy is missing and all controllers follow; the active controller is last.

    Output must flow again behind each restart: else the pauses of all brokers become a single one.

    Before it, and after all others, comes the broker that leads the topics and coordinates the
    transactions: the others have then taken their share of restarts, and it may lead again at once.
    """
    step = _only_unready(scene, one, lambda pod: pod.ready)
    if step:
        return step
    told = scene.brokers
    if told is None or told.error:
        return _wait(told.error.rstrip(".") if told else _UNASKED)
    away = [f"{one.name}-{broker}" for broker in range(one.wanted) if broker not in told.alive]
    if away:
        return _wait(f"{_listed(away)} has not joined Kafka")
    if told.behind:
        return _wait(f"copies are missing or behind: {_listed(told.behind)}")
    if told.lagging:
        lagging = [f"{one.name}-{broker}" for broker in told.lagging]
        return _wait(f"{_listed(lagging)} does not follow the active controller")
    old = scene.outdated(one)
    if not old:
        return None
    if FLOWS < unordered_s(scene.engines) < STANDS:
        return _wait("input waits for the active engine")

    def late(pod: RollPod) -> tuple[bool, bool, int]:
        return pod.ordinal == told.controller, pod.ordinal == LEADER, -pod.ordinal

    return _evict(min(old, key=late))


def _engines(scene: Scene, one: RollSet) -> Step | None:
    """Go on when all engines are in step: with standbys; the active one hands over before it goes.

    It hands over to one that is up to date, so a roll-out costs one take-over.
    """
    told = {status.name: status for status in scene.engines}
    in_step = {name for name, status in told.items() if status.in_sync}
    old = scene.outdated(one)
    step = _only_unready(scene, one, lambda pod: pod.ready and pod.name in in_step)
    if step or not old:
        return step
    active = active_of(scene.engines)
    if active is None:
        return _wait("no engine is active")
    standbys = [pod for pod in old if pod.name != active.name]
    if standbys or one.wanted == 1:
        return _evict(max(standbys or old, key=lambda pod: pod.ordinal))
    others = [pod.name for pod in scene.of(one) if pod.name != active.name]
    heir = min(others, key=ordinal)
    return Step("switch", active.name, heir, f"{active.name} hands over to {heir}")


def _adapter(scene: Scene, one: RollSet) -> Step | None:
    step = _only_unready(scene, one, lambda pod: pod.ready)
    old = scene.outdated(one)
    if step or not old:
        return step
    return _evict(min(old, key=lambda pod: (pod.name in scene.leading, -pod.ordinal)))


_RULES: dict[str, Callable[[Scene, RollSet], Step | None]] = {
    "zookeeper": _zookeeper,
    "kafka": _kafka,
    "engine": _engines,
    "adapter": _adapter,
}


def _wait(message: str) -> Step:
    return Step("wait", message=message)


def _evict(pod: RollPod) -> Step:
    return Step("evict", pod.name, message=f"{pod.name} is restarted")


def _listed(names: Iterable[str]) -> str:
    known = list(names)
    more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
    return ", ".join(known[:_LISTED]) + more


def engines_kept(facts: Facts) -> int:
    """Return how many engines there are to be now.

    As many as the spec says; but as long as the active one would go with those that are too many,
    or nobody is active and one of them may become so, as many as there are.
    """
    wanted, there = facts.deployment.spec.engines.replicas, facts.set("engine").wanted
    if not facts.exists("engine"):  # it is made anew, and must not take an engine away by that
        there = max((ordinal(one.name) + 1 for one in facts.engines), default=0)
    if there <= wanted:
        return wanted
    stays = facts.active is not None and ordinal(facts.active.name) < wanted
    electing = facts.active is None and any(engine.in_sync for engine in facts.engines)
    return there if electing or (facts.active is not None and not stays) else wanted


def retreat(facts: Facts) -> Step:
    """Return what must happen before the deployment can be scaled down."""
    wanted = facts.deployment.spec.engines.replicas
    if engines_kept(facts) <= wanted:
        return Step("none")
    stay = [one.name for one in facts.engines if one.in_sync and ordinal(one.name) < wanted]
    if facts.active is None:
        return _wait("The deployment is scaled down when an engine is active.")
    going = f"{facts.active.name} is active and too many"
    if not stay:
        return _wait(f"{going}; none of those that stay is in step.")
    heir = min(stay, key=ordinal)
    return Step("switch", facts.active.name, heir, f"{going}: it hands over to {heir} and goes.")
