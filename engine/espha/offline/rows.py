"""The rows that windows have, by what has left them."""

from collections.abc import Iterable

from espha.model import Window
from espha.model.events import Event, Value


class WindowRows:
    """The rows of one window."""

    def __init__(self, window: Window) -> None:
        self._key = [place for place, item in enumerate(window.fields) if item.key]
        self._rows: dict[tuple[Value, ...], Event] = {}
        self._updated: tuple[Value, ...] | None = None

    def take(self, events: Iterable[Event]) -> None:
        """Note what leaves the window, in order."""
        for event in events:
            key = tuple([event.values[place] for place in self._key])
            if event.opcode != "D":
                self._rows[key] = Event("I", "N", event.values)
            elif self._updated != key:
                self._rows.pop(key, None)
            # A delete right behind an update of the same key is the old row of an update block.
            self._updated = key if event.opcode == "U" else None

    def inserts(self) -> list[Event]:
        """Return the rows, as inserts."""
        return list(self._rows.values())
