"""What the operator has observed of a deployment at one moment."""

from dataclasses import dataclass, field, replace
from typing import Any

from espha.protocol.states import EngineState
from espha.protocol.status import ReplicaStatus
from espha_operator.api.deployment import Deployment, ModelFacts
from espha_operator.status.reasons import Reason


@dataclass(frozen=True)
class Verdict:
    """Outcome of a check: why it holds or not, in one word and in a sentence."""

    reason: Reason
    message: str

    @property
    def ok(self) -> bool:
        """Whether it holds."""
        return self.reason.holds


@dataclass(frozen=True)
class SetFacts:
    """A StatefulSet: how many pods are wanted, exist and are ready.

    `revision` is that of its newest template; empty: its controller has not told it yet.
    """

    wanted: int
    exist: int
    ready: int
    revision: str = ""


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
class Facts:
    """Everything that a plan and a status are made of."""

    deployment: Deployment
    model: ModelFacts | Verdict
    sets: dict[str, SetFacts] = field(default_factory=dict)
    serving: int = 0
    engines: tuple[ReplicaStatus, ...] = ()
    topics: TopicFacts | None = None
    error: str = ""
    rolling: str = ""
    """What is done, or waited for, to bring pods up to date; empty: all of them are."""
    shared_claims: frozenset[str] = frozenset()
    """Claims of volumes that several nodes can mount at a time."""

    def set(self, suffix: str) -> SetFacts:
        """Return the StatefulSet `<deployment>-<suffix>`; one without pods if there is none."""
        return self.sets.get(f"{self.deployment.name}-{suffix}", SetFacts(0, 0, 0))

    def exists(self, suffix: str) -> bool:
        """Whether that StatefulSet exists."""
        return f"{self.deployment.name}-{suffix}" in self.sets

    def replace(self, **changes: Any) -> "Facts":
        """Return these facts with some of them changed."""
        return replace(self, **changes)

    @property
    def active(self) -> ReplicaStatus | None:
        """The active engine; the one with the newest epoch should two claim it for a moment."""
        claiming = [engine for engine in self.engines if engine.state is EngineState.ACTIVE]
        return max(claiming, key=lambda engine: engine.epoch, default=None)
