"""Updates as they leave windows: the new row, and the old one behind it as a delete."""

from espha.model.events import Event, Value
from espha.model.project import Window


class UpdateBlocks:
    """Tells the old rows of updates from deletes, in what leaves a window.

    Attributes:
        open: what stands for the key of the last event, if that was an update; else empty.
    """

    def __init__(self, window: Window, open_: str = "") -> None:
        """Go on behind an event that left `open_`."""
        self._key = [place for place, item in enumerate(window.fields) if item.key]
        self.open = open_

    def key(self, event: Event) -> tuple[Value, ...]:
        """Return the values of the key fields."""
        return tuple([event.values[place] for place in self._key])

    def is_old_row(self, event: Event) -> bool:
        """Take the next event; say whether it is the old row of the update before it."""
        updated, self.open = self.open, ""
        if event.opcode == "U":
            self.open = repr(self.key(event))
        return bool(updated) and event.opcode == "D" and updated == repr(self.key(event))
