"""Records on Kafka: the names of their headers, and the ids of output records."""

from typing import NamedTuple, Self

Headers = tuple[tuple[str, bytes], ...]
"""Names and values, in order."""

ID_HEADER = "espha-id"
"""On `.O` and `.E`: the message id."""
SOURCE_HEADER = "espha-source"
"""On `.I`: the adapter's position (JSON)."""
REPLAY_HEADER = "espha-replay"
"""On `.I`, of a dead letter that was replayed: its message id."""
WINDOW_HEADER = "espha-window"
"""On `.E`: the window that refused the record, `query/window`."""
REASON_HEADER = "espha-reason"
"""On `.E`: why the record was refused."""
SET_ASIDE_REASON = "set aside after it had ended"
"""How the reason begins of an input record that no engine survives. Who reads letters tells them by
that: a header more would change the digest of outputs, on which engines of two versions agree."""
OUTPUT_REASON = "the output has "
"""The same, of an output that no topic takes; `Call.java` says it, too."""
SIZE_HEADER = "espha-size"
"""On `.E`, where the value was too large and is cut: how many bytes it had."""
DIGEST_HEADER = "espha-digest"
"""Beside it: SHA-256 (hex) of the whole value."""


class MessageId(NamedTuple):
    """Id of an output record: the same whenever and wherever the batch is computed.

    Attributes:
        topic: the input record's topic; the order log for what time alone brought about.
        offset: the input record's offset; the sequence number of the order record for time.
        ordinal: 0, 1, 2 … among the output records of one input record.
    """

    topic: str
    offset: int
    ordinal: int

    def encode(self) -> bytes:
        """Return the value of the header: `<topic>:<offset>:<ordinal>`."""
        return f"{self.topic}:{self.offset}:{self.ordinal}".encode()

    @classmethod
    def parse(cls, value: bytes) -> Self:
        """Read a header's value back.

        Raises:
            ValueError: it is not a message id.
        """
        topic, offset, ordinal = value.decode().rsplit(":", 2)
        return cls(topic, int(offset), int(ordinal))


def position_key(topic: str, adapter: str) -> bytes:
    """Return the key under which `<prefix>.P` holds an input adapter's position in its source."""
    return f"{topic} {adapter}".encode()
