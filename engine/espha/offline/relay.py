"""Connectors of class project: what leaves one window of the model enters another one."""

from collections import deque
from collections.abc import Iterable, Mapping

from espha.model import Project, Window
from espha.model.events import Event
from espha.model.updates import UpdateBlocks
from espha.offline.arrivals import Arrival


class RelayFeed:
    """Gives the events that left another window; see `espha.offline.feeds.Feed`."""

    paced = False
    ticking = False
    size = 0
    position = 0
    note = ""

    def __init__(self, name: str, window: Window, source: Window, most: int | None) -> None:
        """Make ready.

        Args:
            name: of the connector.
            window: the source window that takes the events.
            source: the window that they leave.
            most: how many are taken at most; None: all.
        """
        self.name, self.window, self.source = name, window.path, source.path
        names = [field.name for field in source.fields]
        self._places = [
            names.index(field.name) if field.name in names else None for field in window.fields
        ]
        self._left = most
        self._blocks = UpdateBlocks(source)
        self._waiting: deque[Event] = deque()

    @property
    def finished(self) -> bool:
        """Nothing is waiting."""
        return not self._waiting

    @finished.setter
    def finished(self, value: bool) -> None:
        self._waiting.clear()

    def put(self, events: Iterable[Event]) -> None:
        """Note what has left the other window; an update is one event here."""
        self._waiting += [event for event in events if not self._blocks.is_old_row(event)]

    def take(self, limit: int, now: int) -> list[Arrival]:
        """Return up to `limit` events."""
        found: list[Arrival] = []
        while self._waiting and len(found) < limit:
            event = self._waiting.popleft()
            if self._left == 0:
                continue
            self._left = None if self._left is None else self._left - 1
            values = tuple([None if at is None else event.values[at] for at in self._places])
            flags = "N" if event.flags == "R" else event.flags
            moved = Event(event.opcode, flags, values)
            found.append(Arrival(self.window, self.name, 0, moved))
        return found

    def due(self, now: int) -> int | None:
        """Return when to ask again."""
        return None

    def close(self) -> None:
        """There is nothing open."""


def relayed(properties: Mapping[str, str], project: Project) -> Window:
    """Return the window of the model whose events a project connector wants.

    Raises:
        ValueError: it is not in this model; the text says so.
    """
    other = properties.get("srcproject", "").strip()
    if other and other != project.name:
        raise ValueError(f"project {other!r} is another one; trace it, and use --input")
    query, window = (properties.get(f"src{part}", "").strip() for part in _PARTS)
    found = project.windows.get(f"{query}/{window}")
    if found is None:
        raise ValueError(f"there is no window {query}/{window}")
    return found


_PARTS = ("continuousquery", "window")
