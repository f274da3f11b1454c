"""Snapshots for the tests of their parts."""

import hashlib
from pathlib import Path

from espha.protocol.order import Cursor
from espha.protocol.status import Counts
from espha.recovery.body import Written
from espha.recovery.candidates import Requirements
from espha.recovery.plain import dumps
from espha.recovery.store import Snapshot, SnapshotMeta, SnapshotStore, header_of

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


def written(
    store: SnapshotStore, sequence: int = 7, body: bytes = BODY, **changes: object
) -> Snapshot:
    """Write the snapshot after an order record, as a worker and an engine do together."""
    draft = store.draft(meta(sequence, **changes), "engine-1", "espha 1")
    draft.path.write_bytes(bytes(draft.offset) + body)
    sums = Written(len(body), hashlib.sha256(body).hexdigest(), "0" * 64)
    header = header_of(draft.meta, sums, "engine-1", "espha 1", 1_700_000_000_500)
    return Snapshot(header, store.finish(draft, header), draft.offset)


def body_of(snapshot: Snapshot) -> bytes:
    """The body of a snapshot."""
    return snapshot.path.read_bytes()[snapshot.offset :]


def store(folder: Path, *sequences: int, keep: int = 9) -> SnapshotStore:
    """A folder with these snapshots."""
    made = SnapshotStore(folder, keep)
    made.open()
    for sequence in sequences:
        written(made, sequence)
    return made


def damage(path: Path, place: int = -1) -> None:
    """Change one byte of a file."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
