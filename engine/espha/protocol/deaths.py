"""Deaths of active engines in the middle of a batch, and what is known of who is to blame.

An active engine notes the batch that it runs in a file (`UnderWayNote`). When the engine ends with
a batch under way, its supervisor counts that in ZooKeeper (`Deaths`), for whoever takes over. The
note outlives the engine, and its supervisor, and a container that the kernel ends as a whole. It is
in memory: a disk that hangs must neither stop the engine, nor keep its place from the next one.
"""

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

from pydantic import ValidationError

from espha.protocol.message import Message
from espha.protocol.order import Range
from espha.protocol.settings import Settings

ZNODE = "deaths"
"""Beside the znodes of the election: `Deaths`."""
MEMORY = "/dev/shm"  # noqa: S108 - in pods it is a volume of their own
"""Files there are in memory."""
_NOTE_BYTES = 1 << 16
_BLAMED_AT_MOST = 100


class Place(Message):
    """An input record."""

    topic: str
    offset: int


class UnderWay(Message):
    """The batch that an active engine runs, and how it ended, if the engine could still say so."""

    log: str
    """Kafka's id of the order log."""
    after: int
    """Sequence number of the order record before."""
    records: int
    """Number of input records; 0: only time passes."""
    inputs: tuple[Range, ...] = ()
    careful: bool = False
    """The clock stands still in this batch: what ends it, ends it because of its records."""
    broke: Place | None = None
    """The record on which the kernel failed, if it could be told."""
    reason: str = ""
    waited: bool = False
    """Its outputs have waited for Kafka: no record is to blame, and fewer wait for less long."""


class Blame(Message):
    """A record that has ended lives, alone or by name."""

    place: Place
    times: int
    reason: str = ""


class Deaths(Message):
    """Lives in a row that ended in one stretch of the input."""

    log: str
    after: int
    count: int
    records: int
    inputs: tuple[Range, ...] = ()
    """The batch in which the last one ended: the stretch in which somebody is to blame."""
    blamed: tuple[Blame, ...] = ()
    by: str = ""
    reason: str = ""

    def with_(self, died: UnderWay, by: str) -> "Deaths":
        """Return what is known after one more death; a report that comes too late changes nothing.

        Args:
            died: what was under way.
            by: the engine that died.
        """
        if died.log == self.log and died.after < self.after:
            return self
        if not self._goes_on(died):
            return first_death(died, by)
        return _counted(died, by, self.count + 1, self.blamed)

    def _goes_on(self, died: UnderWay) -> bool:
        """Tell whether a death is one more in the same stretch."""
        if died.log != self.log:
            return False
        ends = {topic: end for topic, _, end in self.inputs}
        within = any(start < ends.get(topic, 0) for topic, start, _ in died.inputs)
        return within or died.after == self.after

    def outranks(self, other: "Deaths | None") -> bool:
        """Tell whether this is the later one of two accounts; of an earlier log, none counts."""
        if other is None or other.log != self.log:
            return True
        return (self.after, self.count) > (other.after, other.count)


def first_death(died: UnderWay, by: str) -> Deaths:
    """Return what is known after a first death."""
    return _counted(died, by, 1, ())


def _counted(died: UnderWay, by: str, count: int, blamed: tuple[Blame, ...]) -> Deaths:
    culprit = died.broke
    if culprit is None and died.careful and died.records == 1 and not died.waited:
        (alone,) = died.inputs
        culprit = Place(topic=alone.topic, offset=alone.end - 1)
    if culprit is not None:
        before = next((one.times for one in blamed if one.place == culprit), 0)
        others = tuple(one for one in blamed if one.place != culprit)
        reason = died.reason or "no engine survives it"
        blamed = (*others, Blame(place=culprit, times=before + 1, reason=reason))
    return Deaths(
        log=died.log,
        after=died.after,
        count=count,
        records=died.records,
        inputs=died.inputs,
        blamed=blamed[-_BLAMED_AT_MOST:],
        by=by,
        reason=died.reason,
    )


def note_of(settings: Settings) -> "UnderWayNote":
    """Return where a replica notes what is under way: in memory, where this machine has a place."""
    told = f"{settings.root} {settings.name} {settings.snapshots}"
    which = hashlib.sha256(told.encode()).hexdigest()[:16]
    folder = MEMORY if os.access(MEMORY, os.W_OK) else tempfile.gettempdir()
    return UnderWayNote(Path(folder) / f"espha-under-way-{which}")


class UnderWayNote:
    """The file in which an active engine notes what it runs; writing it costs microseconds.

    Where the file cannot be written, nothing is noted, and nothing is counted.
    """

    def __init__(self, path: Path) -> None:
        """Use the file at `path`."""
        self._path = path
        self._descriptor: int | None = None

    def open(self) -> None:
        """Get ready to write."""
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            self._descriptor = os.open(self._path, flags, 0o644)

    def write(self, under_way: UnderWay) -> None:
        """Note it."""
        self._put(under_way.encode())

    def clear(self) -> None:
        """Note that nothing is under way."""
        self._put(b"\n")

    def read(self) -> UnderWay | None:
        """Return what was under way; None: nothing."""
        try:
            with self._path.open("rb") as file:
                line = file.read(_NOTE_BYTES).partition(b"\n")[0]
            return UnderWay.model_validate_json(line) if line else None
        except (OSError, ValidationError):
            return None

    def remove(self) -> None:
        """Forget what was under way."""
        with contextlib.suppress(OSError):
            self._path.unlink()

    def _put(self, line: bytes) -> None:
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.pwrite(self._descriptor, line, 0)
