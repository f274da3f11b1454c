"""The rows that windows have, by what has left them."""

from collections.abc import Iterable

from espha.model import Window
from espha.model.events import Event, Value
from espha.model.updates import UpdateBlocks


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
