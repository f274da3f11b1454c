"""What an engine's supervisor tells of the snapshots on its volume, and how it is asked for one."""

from pydantic import TypeAdapter

from espha.protocol.message import Message

SNAPSHOTS = "/snapshots"
"""`GET` lists them."""
SNAPSHOT = "/snapshot"
"""`POST` has the engine write one."""


class KeptSnapshot(Message):
    """A snapshot on an engine's volume: what it stands for, and which records come next."""

    sequence: int
    made: int
    """Milliseconds since 1970."""
    model: str
    """Digest of the model."""
    order_log: int
    """Every order record below this offset is processed."""
    inputs: dict[str, int]
    """For each input topic that order records have named: likewise."""
    topics: dict[str, str]
    """Kafka's id of the order log and each input topic."""


KEPT = TypeAdapter(tuple[KeptSnapshot, ...])
"""Reads and writes the answer."""
