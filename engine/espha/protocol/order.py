"""The order log's records: what the active engine decided, batch by batch."""

from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

FORMAT = 4
"""Newest format of order records that this espha reads.

1 had neither `records` nor what stands behind it. Only a record with a `switch` is of 3, and only
one with `resumes` of 4: an espha that does not know them must not go on behind it. It goes up when
a reader that ignores a new field would come to another state or to other outputs.
"""
PLAIN_FORMAT = 2
"""What a record is of that an espha before format 3 may read."""
SWITCH_FORMAT = 3
"""What a record with a `switch` is of."""


class Range(NamedTuple):
    """Records `start` ≤ offset < `end` of an input topic."""

    topic: str
    start: int
    end: int


class Cursor(NamedTuple):
    """How far an engine is in an input topic."""

    next: int
    """Offset at which the range of the next order record begins."""
    read: int
    """Every record below this offset is processed: where to begin to read."""


class Skip(NamedTuple):
    """An input record that no engine survives: it goes to the dead letters unprocessed."""

    topic: str
    offset: int
    reason: str


class Resume(NamedTuple):
    """Where an input topic goes on: what lies before, and no order record names, is left out."""

    topic: str
    offset: int


class StateDigest(NamedTuple):
    """What the state was after an earlier order record."""

    sequence: int
    digest: str


class Shadow(BaseModel):
    """The next model, which engines run beside the one that leads; nobody sees its outputs.

    Behind the order record `since` it has empty state; from there on it processes what order
    records name. So its state is a function of the log, whichever model leads.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    model: str = Field(description="Its digest.")
    since: int = Field(description="Order record behind which it began with empty state.")
    offset: int = Field(
        0, description="Offset in the order log at which that record stands, or before."
    )
    cursors: tuple[tuple[str, int], ...] = Field(
        (),
        description="Only in that record: `[[topic, offset], …]`, where the input goes on behind "
        "it.",
    )


class OrderRecord(BaseModel):
    """One decision of the active engine.

    Within a format that a reader knows, fields may be added that it need not know: they are
    ignored. What a follower must know to come to the same state raises the format, and who does
    not know a format does not guess.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    format: int = Field(
        1, description="Version of this form; a reader refuses one that is higher than it knows."
    )
    sequence: int = Field(description="1, 2, 3 …, no gap, no repeat.")
    inputs: tuple[Range, ...] = Field(
        description="`[[topic, start, end], …]` in processing order; offsets, `end` exclusive; for "
        "each topic `start` is the previous record's `end`."
    )
    clock: int = Field(
        description="Milliseconds since 1970, never going back; the only clock a model sees."
    )
    outputs: int = Field(description="Records that this batch wrote to `.O` and `.E` topics.")
    digest: str = Field(
        description="SHA-256 (hex) over topic, value and headers of those records, in order."
    )
    model: str = Field(description="Digest of the model.")
    engine: str = Field(description="Name of the engine (pod).")
    epoch: int = Field(description="1 for the first active engine, one more at each take-over.")
    runtime: str = Field(description="Versions of espha, Python and PySpark.")
    records: int | None = Field(None, description="Number of input records; from format 2 on.")
    inputs_digest: str = Field(
        "",
        description="SHA-256 (hex) over topic, offset and value of the input records, in order; "
        "from format 2 on.",
    )
    checkpoint: bool = Field(
        False, description="Whether every replica digests its state after this record."
    )
    state: StateDigest | None = Field(
        None, description="Digest of the active engine's state after an earlier checkpoint."
    )
    semantics: int | None = Field(
        None, description="Version of what the kernel computes (`espha.kernel.SEMANTICS`)."
    )
    heir: str = Field(
        "", description="Planned switchover: name of the engine that goes on; empty: none."
    )
    skipped: tuple[Skip, ...] = Field(
        (), description="Input records that no engine survives: `[[topic, offset, reason], …]`."
    )
    resumes: tuple[Resume, ...] = Field(
        (),
        description="`[[topic, offset], …]`, where inputs go on, of `espha skip`: what lies before "
        "and no record names is never processed, and need not be there. From format 4 on.",
    )
    since: int = Field(
        0, description="Order record behind which `model` began with empty state; 0: the first."
    )
    shadow: Shadow | None = Field(
        None,
        description="The next model, while there is one; see [A change of the model]"
        "(../explanation/protocol.md#a-change-of-the-model).",
    )
    switch: str = Field(
        "", description="Digest of the model of all records behind this one; empty: the same."
    )

    @property
    def next_model(self) -> str:
        """Digest of the model of the record behind this one."""
        return self.switch or self.model

    @property
    def next_since(self) -> int:
        """Order record behind which that model began with empty state."""
        if not self.switch:
            return self.since
        return self.shadow.since if self.shadow else self.sequence

    def encode(self) -> bytes:
        """Return the record as it stands on the topic; what a default says is left out."""
        return self.model_dump_json(exclude_defaults=True).encode()
