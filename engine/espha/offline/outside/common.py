"""What connectors to the outside share."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from espha.model import Window
from espha.offline.arrivals import Arrival

SECONDS: Final = 10.0
"""How long to wait for an answer."""

MAX_BYTES: Final = 16 * 1024 * 1024
"""Largest answer."""

QUIET_SECONDS: Final = 5.0
"""A stream that gives nothing for so long is at its end."""


class NotReached(Exception):  # noqa: N818 - it names a state
    """What a connector needs is not there; the text says what."""


class IteratorFeed:
    """Gives what an iterator gives; see `espha.offline.feeds.Feed`.

    The iterator may wait for something, and raise OSError.
    """

    paced = False
    ticking = False
    size = 0
    position = 0
    note = ""

    def __init__(
        self, name: str, window: Window, arrivals: Iterator[Arrival], most: int | None = None
    ) -> None:
        """Make ready; `most`: how many events are given at most."""
        self.name, self.window = name, window.path
        self.finished = False
        self._arrivals = islice(arrivals, most)
        self._iterator = arrivals

    def take(self, limit: int, now: int) -> list[Arrival]:
        """Return up to `limit` events."""
        found = list(islice(self._arrivals, limit))
        self.finished = len(found) < limit
        return found

    def due(self, now: int) -> int | None:
        """Return when to ask again."""
        return None if self.finished else now

    def close(self) -> None:
        """Let go of what is open."""
        close = getattr(self._iterator, "close", None)
        if close is not None:
            close()
