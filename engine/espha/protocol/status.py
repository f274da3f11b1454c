"""The status: what a child reports to its supervisor, and what `/status` and `/metrics` show.

A fact appears here once: with its type, its description, and how it is shown as a metric. The
supervisor's status is flat JSON: its own facts, and beside them those of the child's progress.
"""

from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from pydantic.fields import FieldInfo

from espha.protocol.message import Message
from espha.protocol.order import Range
from espha.protocol.states import EndReason, EngineState, KillReason, Role, Step


class Shown(Enum):
    """How a field of the status appears at `/metrics`; a field without it does not.

    A sentence is never a label: it would make a new time series each time it changes.
    """

    GAUGE = "gauge"
    """A number, `espha_<name>`."""
    LABEL = "label"
    """A label of `espha_info`."""
    COUNTS = "counts"
    """Numbers by reason: `espha_<name>{reason="…"}`."""


GAUGE, LABEL, COUNTS = Shown.GAUGE, Shown.LABEL, Shown.COUNTS


def shown(field: FieldInfo) -> Shown | None:
    """Return how a field appears at `/metrics`; None: it does not."""
    return next((one for one in field.metadata if isinstance(one, Shown)), None)


class SnapshotFacts(Message):
    """An engine's snapshots."""

    snapshot_sequence: Annotated[int | None, GAUGE] = Field(
        None, description="Order record of the newest snapshot."
    )
    snapshot_bytes: Annotated[int | None, GAUGE] = Field(
        None, description="Size of the newest snapshot's body, compressed, in bytes."
    )
    snapshot_made: Annotated[float | None, GAUGE] = Field(
        None, description="Seconds since 1970 at which the newest snapshot last said all there was."
    )
    snapshot_loaded: Annotated[int | None, GAUGE] = Field(
        None, description="Order record of the snapshot that this life began with."
    )
    snapshot_ms: Annotated[int | None, GAUGE] = Field(
        None, description="How long the last snapshot held up the engine, in ms."
    )
    snapshot_took_ms: Annotated[int | None, GAUGE] = Field(
        None, description="How long the last snapshot took, beside the engine's work, in ms."
    )
    snapshot_memory: Annotated[int | None, GAUGE] = Field(
        None, description="Memory that the last snapshot took beside the engine's own, in bytes."
    )
    snapshot_failures: Annotated[int | None, GAUGE] = Field(
        None, description="Snapshots that failed in this life; nothing without a volume for them."
    )


class MemoryFacts(Message):
    """Memory of an engine's pod."""

    worker_memory: Annotated[int | None, GAUGE] = Field(
        None, description="Memory of Spark's worker, which holds the state, in bytes."
    )
    memory: Annotated[int | None, GAUGE] = Field(
        None, description="Memory of all processes in the pod, without files' pages, in bytes."
    )
    memory_limit: Annotated[int | None, GAUGE] = Field(
        None, description="The pod's limit of memory, in bytes; nothing where it has none."
    )


class Counts(Message):
    """What an engine has processed since the beginning of its model's order records."""

    batches: Annotated[int, GAUGE] = Field(0, description="Order records processed.")
    events_in: Annotated[int, GAUGE] = Field(0, description="Input records processed.")
    events_out: Annotated[int, GAUGE] = Field(0, description="Output records computed.")
    dead_letters: Annotated[int, GAUGE] = Field(0, description="Input records refused.")
    quarantined: Annotated[int, GAUGE] = Field(
        0, description="Input records set aside because no engine survived them."
    )

    def plus(
        self, *, events_in: int, events_out: int, dead_letters: int, quarantined: int = 0
    ) -> "Counts":
        """Return the counts after one more batch."""
        return Counts(
            batches=self.batches + 1,
            events_in=self.events_in + events_in,
            events_out=self.events_out + events_out,
            dead_letters=self.dead_letters + dead_letters,
            quarantined=self.quarantined + quarantined,
        )


class TakeOverFacts(Message):
    """How this engine has become the active one, the last time in this life."""

    taken_from: str = Field("", description="Engine that was active before; empty: none known.")
    taken_as_planned: bool = Field(
        False, description="Whether that engine has handed over to this one."
    )
    takeover_gap_ms: Annotated[int | None, GAUGE] = Field(
        None,
        description="From the clock of that engine's last order record to the one of this engine's "
        "first, in ms; with little input an order record comes only every few seconds.",
    )


class DividedFacts(Message):
    """Topics of which a part is never read."""

    divided_topics: Annotated[int, GAUGE] = Field(
        0,
        description="Input topics and order log that have got further partitions while the engine "
        "runs: records there wait unseen, and no engine starts again.",
    )
    divided_topic: str = Field("", description="One of them; empty: none.")


class EngineProgress(SnapshotFacts, MemoryFacts, Counts, TakeOverFacts, DividedFacts):
    """How far an engine is."""

    component: Annotated[Literal["engine"], LABEL] = Field(
        "engine", description="What the replica is: `engine`, `input-adapter`, `output-adapter`."
    )
    sequence: Annotated[int, GAUGE] = Field(description="The last order record processed.")
    epoch: Annotated[int, GAUGE] = Field(description="Epoch of the last order record.")
    active: Annotated[str, LABEL] = Field(
        description="Engine that committed the last order record; empty: none seen yet."
    )
    model: Annotated[str, LABEL] = Field(description="The model for people, `project@digest`.")
    model_digest: Annotated[str, LABEL] = Field(description="SHA-256 (hex) of the model.")
    since: Annotated[int, GAUGE] = Field(
        0, description="Order record behind which this model began with empty state; 0: the first."
    )
    wanted: Annotated[str, LABEL] = Field(
        "", description="Digest of the model that the pod has been given."
    )
    log_model: Annotated[str, LABEL] = Field(
        "", description="Digest of the model of the next order record; empty: not known."
    )
    shadow: Annotated[str, LABEL] = Field(
        "",
        description="Digest of the next model, which engines run beside this one, as the order log "
        "has it; empty: none.",
    )
    shadow_refusal: str = Field(
        "", description="Why the active engine does not let this engine's model be the next one."
    )
    replayed: Annotated[int, GAUGE] = Field(
        description="Order records that this life has replayed."
    )
    lag_records: Annotated[int, GAUGE] = Field(
        0, description="Order records that a standby knows of and has not processed."
    )
    lag_ms: Annotated[int, GAUGE] = Field(
        0, description="How long ago a standby was at the end of the order log, in ms; 0: it is."
    )
    semantics: Annotated[int, GAUGE] = Field(
        0,
        description="Version of what models mean to this engine, as order records have it.",
    )
    checkpoint: Annotated[int, GAUGE] = Field(
        0, description="Order record after which the state was last digested here."
    )
    checkpoint_digest: str = Field(
        "", description="SHA-256 (hex) of that state; the same on every replica."
    )


class Lag(NamedTuple):
    """How much an adapter still has to do of what is there.

    Attributes:
        amount: so much.
        unit: of what.
    """

    amount: int
    unit: Literal["bytes", "records"]


class AdapterProgress(Message):
    """How far an adapter is."""

    rows: Annotated[int, GAUGE] = Field(description="Rows published or written in this life.")
    rejected: Annotated[int, GAUGE] = Field(
        0,
        description="What was set aside in this life: of an input, what was no row and went to the "
        "dead letters; of an output, records that the target cannot take.",
    )
    position: str = Field("", description="How far it is, for people; empty: nothing is known.")
    lag: Annotated[int | None, GAUGE] = Field(
        None,
        description="What is there and not done: of an input behind the end of its source, of an "
        "output behind the end of its topic; nothing where it is not known.",
    )
    lag_unit: Annotated[Literal["", "bytes", "records"], LABEL] = Field(
        "", description="What `lag` counts; transactions' markers on topics count as records."
    )

    def with_lag(self, lag: Lag | None) -> Self:
        """Return this with a lag."""
        told = {"lag": lag.amount, "lag_unit": lag.unit} if lag else {"lag": None, "lag_unit": ""}
        return self.model_copy(update=told)


class InputProgress(AdapterProgress):
    """How far an input adapter is."""

    component: Annotated[Literal["input-adapter"], LABEL] = Field(
        "input-adapter", description="See `component` of an engine."
    )
    line: Annotated[int, GAUGE] = Field(0, description="Lines of the file that are published.")
    offset: Annotated[int, GAUGE] = Field(0, description="Bytes of the file that are published.")
    generation: Annotated[int, GAUGE] = Field(
        0, description="1 for the first file, one more for each that has replaced it."
    )


class OutputProgress(AdapterProgress):
    """How far an output adapter is."""

    component: Annotated[Literal["output-adapter"], LABEL] = Field(
        "output-adapter", description="See `component` of an engine."
    )
    offset: Annotated[int, GAUGE] = Field(0, description="Topic's records written, as an offset.")
    length: Annotated[int, GAUGE] = Field(0, description="Bytes of the file that are certain.")


Progress = Annotated[
    EngineProgress | InputProgress | OutputProgress, Field(discriminator="component")
]


class DivergenceFacts(Message):
    """Whether an engine has computed other outputs than the active one did, in all its lives."""

    diverged_total: int = 0
    diverged: str = ""
    diverged_at: int | None = None


class Activity(Message):
    """What a child's main loop is doing."""

    step: Step
    turn: int
    """How many steps it has begun in this life, or parts of long ones: another number, and it has
    got on."""
    age_ms: int = 0
    """Since when it does that, or the part of it under way, when this was said."""
    sequence: int | None = None
    """The order record under way, or the first one of several."""
    records: int = 0
    """Input records under way."""
    inputs: tuple[Range, ...] = ()
    """Which ones, of the first order record."""


class HeldTopic(Message):
    """An input topic that cannot be read on: a transaction of its producer is open."""

    topic: str
    age_s: float


class ChildStatus(Message):
    """A line that a child reports to its supervisor, ten times a second and at each change."""

    state: EngineState
    activity: Activity | None = None
    unordered_ms: int | None = None
    """Of a standby that has read both topics: how long input has waited for an order record."""
    held: HeldTopic | None = None
    lifeline: int = 0
    """Port on which the child accepts connections that end with it; 0: none."""
    in_sync: bool = False
    message: str = ""
    reason: EndReason | None = None
    divergence: DivergenceFacts | None = None
    progress: Progress | None = None


class ReplicaStatus(Message):
    """What a supervisor's `/status` shows: its own facts and its child's."""

    name: Annotated[str, LABEL] = Field(description="Name of the replica; in Kubernetes, the pod.")
    role: Annotated[Role, LABEL] = Field(Role.STANDBY, description="`active` or `standby`.")
    state: Annotated[EngineState, LABEL] = Field(
        EngineState.STARTING, description="State of the child in this life."
    )
    in_sync: Annotated[bool, GAUGE] = Field(
        False,
        description="Whether the replica can publish or take over at once; the readiness probe.",
    )
    message: str = Field("", description="What is wrong, or was in the last life; empty: nothing.")
    reason: Annotated[EndReason | None, LABEL] = Field(
        None, description="Why the child has ended itself, by name, until it is in sync again."
    )
    last_error: str = Field(
        "", description="What was wrong the last time, in all lives; empty: nothing was."
    )
    last_error_at: Annotated[float | None, GAUGE] = Field(
        None, description="When the last error was said first, in seconds since 1970."
    )
    restarts: Annotated[int, GAUGE] = Field(
        0, description="How often the supervisor has started the child again."
    )
    kills: Annotated[dict[KillReason, int], COUNTS] = Field(
        default_factory=dict,
        description="How often the supervisor has killed the child, by reason.",
    )
    znode: Annotated[str | None, LABEL] = Field(None, description="Its place in the election.")
    zookeeper: Annotated[str | None, LABEL] = Field(
        None, description="The connection: `CONNECTED`, `SUSPENDED` or `LOST`."
    )
    watched: Annotated[int | None, GAUGE] = Field(
        None,
        description="Connections of other replicas to this supervisor; with none, its death is "
        "noticed only when its ZooKeeper session times out.",
    )
    kafka_reachable: Annotated[bool | None, GAUGE] = Field(
        None, description="Whether a Kafka broker has answered this pod lately."
    )
    kafka_silent_ms: tuple[int, ...] = Field(
        (),
        description="For how long each broker has not answered this pod, ms, in the order of "
        "`ESPHA_BOOTSTRAP`.",
    )
    kafka_heard_ms: tuple[int, ...] = Field(
        (),
        description="For how long each broker has answered this pod without a pause, up to its "
        "last answer, ms, in the same order.",
    )
    step: Step | None = Field(None, description="What the child's main loop is doing.")
    step_s: Annotated[float | None, GAUGE] = Field(
        None, description="Seconds since the child's main loop began its step; small, all is well."
    )
    unordered_s: Annotated[float | None, GAUGE] = Field(
        None,
        description="Seconds for which input that this standby has read has waited for an order "
        "record, in the topic where it waits longest; ten less where others' input is ordered "
        "meanwhile. Nothing while all is in order.",
    )
    held_topic: str = Field(
        "",
        description="Input topic that cannot be read on, because a producer has left a transaction "
        "open; empty: none.",
    )
    held_s: Annotated[float, GAUGE] = Field(
        0.0,
        description="For how long an input topic could not be read on because of an open "
        "transaction, in seconds; 0: none is held.",
    )
    depositions: Annotated[int, GAUGE] = Field(
        0,
        description="How often this standby has closed the active engine's session, because input "
        "was not taken.",
    )
    diverged_total: Annotated[int | None, GAUGE] = Field(
        None, description="How often this engine has diverged, in all its lives."
    )
    diverged: str = Field("", description="How the outputs differed the last time; empty: never.")
    diverged_at: int | None = Field(
        None,
        description="Order record of which this engine has made something else twice: it takes the "
        "state of an engine that has gone behind it. Nothing once it has that.",
    )
    snapshot_age_s: Annotated[float | None, GAUGE] = Field(
        None, description="Seconds since the newest snapshot last said all there was."
    )
    volume_bytes: Annotated[int | None, GAUGE] = Field(
        None, description="Size of the volume for snapshots, in bytes; nothing without one."
    )
    volume_free_bytes: Annotated[int | None, GAUGE] = Field(
        None, description="What is free of it, in bytes."
    )
    progress: Progress | None = Field(
        None, description="How far the child is; its fields stand beside the others."
    )

    @property
    def engine(self) -> EngineProgress | None:
        """The progress of an engine; None for an adapter, and before the first word."""
        return self.progress if isinstance(self.progress, EngineProgress) else None

    @property
    def adapter(self) -> AdapterProgress | None:
        """The progress of an adapter; None for an engine, and before the first word."""
        return self.progress if isinstance(self.progress, AdapterProgress) else None

    @property
    def epoch(self) -> int:
        """Epoch of an engine's last order record; 0 when nothing is known of one."""
        return self.engine.epoch if self.engine else 0

    @model_serializer(mode="wrap")
    def _flat(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        own: dict[str, Any] = handler(self)
        progress = own.pop("progress", None) or {}
        return {**own, **progress}

    @model_validator(mode="before")
    @classmethod
    def _from_flat(cls, told: Any) -> Any:
        if isinstance(told, dict) and "component" in told:
            return {**told, "progress": told}
        return told
