"""The order log's records: what the active engine decided, batch by batch."""

from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

FORMAT = 2
"""Newest format of order records that this espha reads, and the one that it writes.

1 had neither `records` nor what stands behind it. It goes up when a reader that ignores a new field
would come to another state or to other outputs.
"""


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


class StateDigest(NamedTuple):
    """What the state was after an earlier order record."""

    sequence: int
    digest: str


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

    def encode(self) -> bytes:
        """Return the record as it stands on the topic; what a default says is left out."""
        return self.model_dump_json(exclude_defaults=True).encode()
