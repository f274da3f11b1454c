"""How far a Kafka topic was read, as it stands in the header of a record."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from espha.protocol.status import InputProgress

_SHOWN: Final = 8
"""So many partitions the status has, of a topic with more."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far an adapter is; a record of the source is (topic, partition, offset).

    The last record of a transaction carries all of it; the others carry only where they were read.

    Attributes:
        adapter: its name.
        topic: the source.
        identity: Kafka's id of the topic; empty: not known.
        offsets: of the first record that is not published, by partition; None: not told.
        partition: of the record that leads here.
        offset: of that record; -1: there is none.
        generation: 1 for the first topic of the name, one more for each that was made anew.
    """

    adapter: str
    topic: str
    identity: str = ""
    offsets: Mapping[int, int] | None = field(default_factory=dict)
    partition: int = 0
    offset: int = -1
    generation: int = 1

    def to_header(self) -> bytes:
        """Return the value of the `espha-source` header."""
        content: dict[str, Any] = {"adapter": self.adapter, "topic": self.topic}
        if self.offset >= 0:
            content |= {"partition": self.partition, "offset": self.offset}
        if self.offsets is not None:
            content |= {"id": self.identity, "generation": self.generation, "next": self.offsets}
        return json.dumps(content, separators=(",", ":")).encode()

    @classmethod
    def from_object(cls, found: Mapping[str, Any]) -> Self:
        """Read it from an object of JSON."""
        offsets = {int(partition): offset for partition, offset in found.get("next", {}).items()}
        return cls(
            found["adapter"],
            found["topic"],
            found.get("id", ""),
            offsets,
            found.get("partition", 0),
            found.get("offset", -1),
            found.get("generation", 1),
        )

    def progress(self, rows: int) -> InputProgress:
        """Return what the status shows of it; `rows`: published in this life."""
        offsets = self.offsets or {}
        places = ", ".join(f"{one}: {offsets[one]}" for one in sorted(offsets)[:_SHOWN])
        more = ", …" if len(offsets) > _SHOWN else ""
        return InputProgress(
            rows=rows,
            position=f"{self.topic}, next offsets {places or 'none'}{more}",
            offset=sum(offsets.values()),
            generation=self.generation,
        )
