"""What a supervisor tells of the snapshots on its volume."""

from pathlib import Path

from espha.protocol.snapshots import KEPT
from espha.recovery.listing import kept_snapshots
from espha.recovery.store import SnapshotStore
from unit.recovery.samples import IDS, MODEL, damage, store


def test_headers_say_what_comes_next(tmp_path: Path) -> None:
    kept = store(tmp_path, 3, 7)
    newest, oldest = kept_snapshots(kept)
    assert (newest.sequence, oldest.sequence) == (7, 3)
    assert (newest.order_log, newest.inputs) == (14, {"p.I": 22})
    assert (newest.model, newest.topics, newest.made) == (MODEL, IDS, 1_700_000_000_500)
    assert KEPT.validate_json(KEPT.dump_json((newest, oldest))) == (newest, oldest)


def test_a_damaged_header_is_not_told(tmp_path: Path) -> None:
    kept = store(tmp_path, 3, 7)
    damage(kept.files()[0], 40)
    assert [one.sequence for one in kept_snapshots(kept)] == [3]


def test_a_folder_that_is_missing_has_none(tmp_path: Path) -> None:
    assert kept_snapshots(SnapshotStore(tmp_path / "missing")) == ()
