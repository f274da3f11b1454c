"""How full the volume with an engine's snapshots is."""

import shutil
import threading
from pathlib import Path
from typing import NamedTuple

_LOOK_S = 5.0


class Room(NamedTuple):
    """Bytes of a volume."""

    total: int
    free: int


class VolumeWatch:
    """Looks at a volume now and then, in a thread: one that hangs must not hold up others."""

    def __init__(self, folder: str) -> None:
        """Begin; without a folder there is nothing to see."""
        self.room: Room | None = None
        """What was seen last; None: nothing yet, or not for a while."""
        self._folder = Path(folder)
        if folder:
            threading.Thread(target=self._look, name="volume", daemon=True).start()

    def _look(self) -> None:
        pause = threading.Event()
        while True:
            self.room = room_of(self._folder)
            pause.wait(_LOOK_S)


def room_of(folder: Path) -> Room | None:
    """Return the bytes of the volume that a folder is on, or will be; None: it cannot be told."""
    try:
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        usage = shutil.disk_usage(folder)
    except OSError:
        return None
    return Room(usage.total, usage.free)
