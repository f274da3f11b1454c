"""Functional windows without functions."""

from collections.abc import Sequence

from espha.model.kinds.functional import FunctionalWindow
from espha.model.project import Field
from espha.windows.events import Event
from espha.windows.stage import Moment, Stage, Unit, places


def stages(window: FunctionalWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a functional window."""
    return [PassOn(window, feeds[0])]


class PassOn:
    """Passes fields on by name."""

    def __init__(self, window: FunctionalWindow, feed: tuple[Field, ...]) -> None:
        self._places = places([field.name for field in window.fields], feed)
        self._same = self._places == list(range(len(feed)))

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Return the same events with the fields of this window."""
        if self._same:
            return (unit,)
        chosen = self._places
        return (
            tuple(
                [
                    Event(
                        event.opcode, event.flags, tuple([event.values[place] for place in chosen])
                    )
                    for event in unit
                ]
            ),
        )
