"""Functional windows without functions."""

from espha.model.project import Field, FunctionalWindow
from espha.windows.events import Event
from espha.windows.stage import Block, Journal, places


class PassOn:
    """Passes fields on by name."""

    def __init__(self, window: FunctionalWindow, feed: tuple[Field, ...]) -> None:
        self._places = places([field.name for field in window.fields], feed)
        self._same = self._places == list(range(len(feed)))

    def process(self, block: Block, clock: int, journal: Journal) -> Block:
        """Return the same events with the fields of this window."""
        if self._same:
            return block
        chosen = self._places
        return tuple(
            [
                Event(event.opcode, event.flags, tuple([event.values[place] for place in chosen]))
                for event in block
            ]
        )
