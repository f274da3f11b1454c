"""Which snapshots an engine's volume holds, as their headers say; bodies are not read."""

from functools import lru_cache
from pathlib import Path

from espha.protocol.snapshots import KeptSnapshot
from espha.recovery.store import SnapshotError, SnapshotStore, read_header


def kept_snapshots(store: SnapshotStore) -> tuple[KeptSnapshot, ...]:
    """Return the snapshots whose headers can be read, the newest first."""
    found = []
    for path in store.files():
        try:
            found.append(_kept(path, path.stat().st_mtime_ns))
        except (OSError, SnapshotError):
            continue  # replaced just now, or damaged: whoever wants to begin with it says so
    return tuple(found)


@lru_cache(maxsize=256)
def _kept(path: Path, _changed: int) -> KeptSnapshot:
    with path.open("rb") as file:
        header = read_header(file)
    return KeptSnapshot(
        sequence=header.sequence,
        made=header.made,
        model=header.model,
        order_log=header.order_log,
        inputs={topic: place.read for topic, place in header.inputs.items()},
        topics=header.topics,
    )
