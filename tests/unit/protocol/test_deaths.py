"""Where it is noted what an active engine runs; tests/unit/engine/test_quarantine has the rest."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from espha.protocol.deaths import UnderWay, UnderWayNote, note_of
from espha.protocol.settings import Settings

UNDER_WAY = UnderWay(log="id", after=7, records=5)


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    """Those of a replica with a volume of its own."""
    made = Settings(bootstrap="none:1", name="a", root="/root", snapshots=str(tmp_path))
    yield made
    note_of(made).remove()


def written(settings: Settings) -> UnderWayNote:
    note = note_of(settings)
    note.open()
    note.write(UNDER_WAY)
    return note


def test_it_is_not_on_the_volume(settings: Settings, tmp_path: Path) -> None:
    """A disk that hangs lets nobody go who writes to it, not even by SIGKILL."""
    written(settings)
    assert list(tmp_path.iterdir()) == []


def test_whoever_comes_later_finds_it(settings: Settings) -> None:
    written(settings)
    assert note_of(settings).read() == UNDER_WAY


@pytest.mark.parametrize("other", [{"name": "b"}, {"root": "/other"}, {"snapshots": "/other"}])
def test_each_replica_of_a_machine_has_its_own(settings: Settings, other: dict[str, str]) -> None:
    written(settings)
    assert note_of(settings.model_copy(update=other)).read() is None
