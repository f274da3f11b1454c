"""What the operator has observed of a deployment at one moment."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from espha.protocol.states import EngineState
from espha.protocol.status import ReplicaStatus
from espha_operator.api.deployment import Deployment, ModelFacts, ModelVersion
from espha_operator.api.status import UsedImages
from espha_operator.status.reasons import Reason
from espha_operator.status.storage import DiskFacts


@dataclass(frozen=True)
class Verdict:
    """Outcome of a check: why it holds or not, in one word and in a sentence.

    Attributes:
        reason: one word.
        message: a sentence.
        holds: whether the condition is true, where its reason alone does not say so; a condition
            like `Stalled` is true for the reason that makes another one false.
    """

    reason: Reason
    message: str
    holds: bool | None = None

    @property
    def ok(self) -> bool:
        """Whether it holds."""
        return self.reason.holds if self.holds is None else self.holds


@dataclass(frozen=True)
class SetFacts:
    """A StatefulSet.

    Attributes:
        wanted: how many pods it is to have.
        exist: how many there are.
        ready: how many of them are ready.
        behind: how many of them were made of an older template.
        applied: fingerprint of the spec that the operator has given it last; empty: unknown.
        revision: that of its newest template; empty: its controller has not told it yet.
        image: of its newest template.
        rolls_itself: whether Kubernetes restarts its pods, as older versions of the operator had
            it.
    """

    wanted: int
    exist: int
    ready: int
    behind: int = 0
    applied: str = ""
    revision: str = ""
    image: str = ""
    rolls_itself: bool = False


@dataclass(frozen=True)
class Promise:
    """What a StatefulSet is to be.

    Attributes:
        applied: fingerprint of its spec.
        image: image of its pods.
    """

    applied: str
    image: str


@dataclass(frozen=True)
class TopicFacts:
    """What Kafka says of the topics.

    Attributes:
        error: why Kafka could not be asked or could not make a topic; empty when all went well.
        brokers: number of live brokers.
        missing: topics that do not exist (yet).
        wrong: sentences on topics whose settings are not those of the spec.
        under_replicated: topics with fewer live copies than they should have.
    """

    error: str = ""
    brokers: int = 0
    missing: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    under_replicated: tuple[str, ...] = ()


@dataclass(frozen=True)
class Upgrade:
    """What a deployment is made of, and why not of what this operator offers.

    Attributes:
        used: its images, and fingerprints.
        held: whether the objects that make pods stay as they are.
        offered: what this operator offers instead; None: nothing else.
        waits: why it is not used.
    """

    used: UsedImages
    held: bool = False
    offered: UsedImages | None = None
    waits: Reason | None = None


@dataclass(frozen=True)
class Facts:
    """Everything that a plan and a status are made of.

    Attributes:
        deployment: what is wanted.
        model: the model of the spec, or what is wrong with it.
        sets: StatefulSets by name.
        serving: number of ZooKeeper servers that take part in the quorum.
        engines: what the engines say that answer.
        topics: what Kafka says; None: nobody has asked it yet.
        error: what the API server refuses, as a sentence; empty: nothing.
        rolling: what is done, or waited for, to bring pods up to date; empty: all of them are.
        disks: what is known of the volumes; None: nothing yet.
        guarded: components of which no pod that is ready may be evicted now.
        shared_claims: claims of volumes that several nodes can mount at a time.
        last_good: the model that was valid last, while that of the spec is not.
        promised: what the StatefulSets that are wanted now are to be, by name.
        images: image of each pod, by the pod's name.
        paused: whether the operator may change nothing.
        progressing: whether the deployment was on its way to what is wanted, a step ago.
        begins: whether the operator has just begun with it, and may not have looked at all yet.
        upgrade: what it is made of; None: nothing yet.
        webhook: why models are not checked when they are applied; empty: they are; None: nobody
            wants them to be.
    """

    deployment: Deployment
    model: ModelFacts | Verdict
    sets: dict[str, SetFacts] = field(default_factory=dict)
    serving: int = 0
    engines: tuple[ReplicaStatus, ...] = ()
    topics: TopicFacts | None = None
    error: str = ""
    versions: tuple[ModelVersion, ...] = ()
    """The versions of the model of which there is a ConfigMap, the newest first."""
    led: str = ""
    """Digest of the model that led when an active engine answered last; empty: not known."""
    change: str = ""
    """Why the model cannot be changed further just now; empty: it can, or need not be."""
    rolling: str = ""
    disks: DiskFacts | None = None
    guarded: frozenset[str] = frozenset()
    shared_claims: frozenset[str] = frozenset()
    last_good: ModelFacts | None = None
    promised: Mapping[str, Promise] = field(default_factory=dict)
    images: Mapping[str, str] = field(default_factory=dict)
    paused: bool = False
    progressing: bool = False
    begins: bool = False
    upgrade: Upgrade | None = None
    webhook: str | None = None
    services: frozenset[str] = frozenset()
    """Names of the Services that exist."""
    adapters: tuple[ReplicaStatus, ...] | None = None
    """What the pods of adapters have said last; None: nobody has asked them."""

    @property
    def planned(self) -> ModelFacts | None:
        """The model that is to run: that of the spec, or the last one that was valid."""
        return self.model if isinstance(self.model, ModelFacts) else self.last_good

    def set(self, suffix: str) -> SetFacts:
        """Return the StatefulSet `<deployment>-<suffix>`; one without pods if there is none."""
        return self.sets.get(f"{self.deployment.name}-{suffix}", SetFacts(0, 0, 0))

    def exists(self, suffix: str) -> bool:
        """Whether that StatefulSet exists."""
        return f"{self.deployment.name}-{suffix}" in self.sets

    @property
    def has_engines(self) -> bool:
        """Whether engines have started: they answer also while their StatefulSet is made anew."""
        return self.exists("engine") or bool(self.engines)

    def replace(self, **changes: Any) -> "Facts":
        """Return these facts with some of them changed."""
        return replace(self, **changes)

    @property
    def active(self) -> ReplicaStatus | None:
        """The active engine."""
        return active_of(self.engines)


def active_of(engines: Iterable[ReplicaStatus]) -> ReplicaStatus | None:
    """Return the active one; the one with the newest epoch should two claim it for a moment."""
    claiming = [engine for engine in engines if engine.state is EngineState.ACTIVE]
    return max(claiming, key=lambda engine: engine.epoch, default=None)


def leading_model(engines: Iterable[ReplicaStatus], led: str) -> str:
    """Return the digest of the model that leads; empty: not known.

    Args:
        engines: those that answer.
        led: the model that led before. It still does when no active engine answers: a take-over,
            or an answer that is late, changes no model.
    """
    active = active_of(engines)
    return active.engine.log_model if active and active.engine else led


def unordered_s(engines: Iterable[ReplicaStatus]) -> float:
    """Return for how long (s) input has waited for the active engine, as standbys see it."""
    return max((one.unordered_s or 0.0 for one in engines if one.in_sync), default=0.0)
