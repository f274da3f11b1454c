"""`espha local`: brought up, fed, struck, ended and brought up again; two of them side by side."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from espha.local.actions import bring_up
from espha.local.check import verify
from espha.local.demo import MODEL
from espha.local.end import down, kill
from espha.local.errors import LocalError
from espha.local.look import Look, look_at
from espha.local.state import Folder
from espha.local.up import UpOptions
from support.replicas import LIMIT_S
from support.servers import wait_until

pytestmark = [pytest.mark.component, pytest.mark.timeout(1800)]
SUM = "Record_Counter:20:sum20"


class Place:
    """A deployment of the sample model, and its files."""

    def __init__(self, path: Path, engines: int) -> None:
        path.mkdir()
        self.input, self.output = path / "memory.csv", path / "result.csv"
        self._count = 0
        self.append(50)
        self.folder = bring_up(
            UpOptions(
                folder=path / "d",
                model=MODEL,
                inputs=[f"memory={self.input},noopcode,noautogenfield"],
                outputs=[f"outbound={self.output}"],
                engines=engines,
                sums=[SUM],
            )
        )

    def append(self, rows: int) -> None:
        """Add rows to the input file."""
        with self.input.open("a") as file:
            for _ in range(rows):
                self._count += 1
                file.write(f"{self._count},10,20,30\n")

    def wait_written(self) -> None:
        """Wait until every row of the input has left as a row of the output."""
        self.wait(lambda _: self._written() == self._count, "all rows are written")

    def wait(self, condition: Callable[[Look], bool], what: str) -> None:
        """Wait as long as something moves."""
        spec = self.folder.spec()
        wait_until(
            lambda: condition(look_at(self.folder, spec)),
            LIMIT_S,
            what,
            0.3,
            lambda: look_at(self.folder, spec).states(),
        )

    def _written(self) -> int:
        return len(self.output.read_text().splitlines()) if self.output.exists() else 0

    def active(self) -> str:
        """Return the name of the active engine."""
        (found,) = look_at(self.folder, self.folder.spec()).active()
        return found


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A deployment with two engines."""
    try:
        yield Place(tmp_path / "one", engines=2)
    finally:
        down(Folder(tmp_path / "one" / "d"), delete=False)


def test_a_deployment_from_its_start_to_its_second_life(place: Place) -> None:
    place.wait_written()
    old = place.active()
    kill(place.folder, old, "supervisor")
    place.append(50)
    place.wait(lambda look: look.ready and look.active() != [old], "another one leads")
    place.wait_written()
    with pytest.raises(LocalError, match="runs in"):
        bring_up(UpOptions(folder=place.folder.path))
    place.append(50)
    down(place.folder, delete=False)
    place.append(50)
    bring_up(UpOptions(folder=place.folder.path))
    place.wait_written()
    assert verify(place.folder, (), as_json=True) == 0


@pytest.mark.long
def test_what_a_dead_keeper_leaves_is_ended_by_the_next_one(place: Place) -> None:
    place.wait_written()
    daemon = place.folder.running().daemon
    assert daemon is not None
    daemon.signal(signal.SIGKILL)
    wait_until(lambda: not place.folder.is_held(), LIMIT_S, "the daemon is dead")
    place.append(50)
    bring_up(UpOptions(folder=place.folder.path))
    place.wait_written()
    assert verify(place.folder, (), as_json=True) == 0


@pytest.mark.long
def test_two_deployments_do_not_know_each_other(place: Place, tmp_path: Path) -> None:
    try:
        other = Place(tmp_path / "two", engines=1)
        other.append(7)
        other.wait_written()
        place.wait_written()
        assert not set(sum(place.folder.spec().ports.values(), ())) & set(
            sum(other.folder.spec().ports.values(), ())
        )
    finally:
        down(Folder(tmp_path / "two" / "d"), delete=True)
    assert look_at(place.folder, place.folder.spec()).ready
    assert not (tmp_path / "two" / "d").exists()
