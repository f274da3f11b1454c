"""The rows that windows have, by what has left them."""

from collections.abc import Iterable

from espha.model import Window
from espha.model.events import Event, Value


class UpdateBlocks:
    """Tells the old rows of updates from deletes, in what leaves a window."""

    def __init__(self, window: Window) -> None:
        self._key = [place for place, item in enumerate(window.fields) if item.key]
        self._updated: tuple[Value, ...] | None = None

    def key(self, event: Event) -> tuple[Value, ...]:
        """Return the values of the key fields."""
        return tuple([event.values[place] for place in self._key])

    def is_old_row(self, event: Event) -> bool:
        """Take the next event; say whether it is the old row of the update before it."""
        key, updated = self.key(event), self._updated
        self._updated = key if event.opcode == "U" else None
        return event.opcode == "D" and updated == key


class WindowRows:
    """The rows of one window."""

    def __init__(self, window: Window) -> None:
        self._blocks = UpdateBlocks(window)
        self._rows: dict[tuple[Value, ...], Event] = {}

    def take(self, events: Iterable[Event]) -> None:
        """Note what leaves the window, in order."""
        for event in events:
            if self._blocks.is_old_row(event):
                continue
            key = self._blocks.key(event)
            if event.opcode == "D":
                self._rows.pop(key, None)
            else:
                self._rows[key] = Event("I", "N", event.values)

    def inserts(self) -> list[Event]:
        """Return the rows, as inserts."""
        return list(self._rows.values())
