"""Snapshots for the tests of their parts."""

from pathlib import Path

from espha.protocol.order import Cursor
from espha.protocol.status import Counts
from espha.recovery.candidates import Requirements
from espha.recovery.plain import dumps
from espha.recovery.store import Snapshot, SnapshotMeta, SnapshotStore, make

BODY = dumps({"windows": {"q/w": [(1, "a", 2.5, None)] * 40}})
MODEL = "m" * 64
IDS = {"p.I": "id-1", "p.M": "id-2"}
REQUIREMENTS = Requirements(MODEL, "p.M", IDS, {"p.I": 0, "p.M": 0})


def meta(sequence: int = 7, **changes: object) -> SnapshotMeta:
    """What the state after an order record stands for."""
    made = SnapshotMeta(
        sequence=sequence,
        epoch=2,
        clock=1_700_000_000_000,
        model=MODEL,
        order_log=sequence * 2,
        inputs={"p.I": Cursor(sequence * 3, sequence * 3 + 1)},
        topics=IDS,
        counts=Counts(batches=sequence),
    )
    return made.model_copy(update=changes)


def snapshot(sequence: int = 7, body: bytes = BODY, **changes: object) -> Snapshot:
    """The snapshot after an order record."""
    return make(meta(sequence, **changes), body, "engine-1", "espha 1", 1_700_000_000_500)


def store(folder: Path, *sequences: int, keep: int = 9) -> SnapshotStore:
    """A folder with these snapshots."""
    made = SnapshotStore(folder, keep)
    made.open()
    for sequence in sequences:
        made.write(snapshot(sequence))
    return made


def damage(path: Path, place: int = -1) -> None:
    """Change one byte of a file."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
