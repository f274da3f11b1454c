"""Splitters: the slot of an event."""

from typing import Any, Final

from espha.languages.eel import Initialize, Language
from espha.model.events import Event
from espha.model.project import Window

ALL_SLOTS: Final = -1
"""An event with this slot goes along all edges."""

NO_SLOT: Final = -2
"""No edge has this slot."""


class Slots:
    """Says to which slot an event goes that leaves a window."""

    def __init__(self, window: Window) -> None:
        """Prepare the splitter of a window.

        Raises:
            ValueError: the window has none.
        """
        splitter = window.splitter
        if splitter is None:
            raise ValueError(f"window {window.path} has no splitter")
        text = splitter.initialize
        initialize = Initialize.model_validate_json(text) if text else None
        self._language = Language(window.fields, initialize)
        self._run = self._language.compile(splitter.expression).run

    def __call__(self, event: Event, clock: int) -> int:
        """Return the slot; `NO_SLOT` for null, so the event goes along edges without slot only.

        Raises:
            BadRecord: the expression takes too many steps.
        """
        number = self._run(event, clock)
        return NO_SLOT if number is None else int(number)

    def state(self) -> Any:
        """Return the variables that outlive an event."""
        return self._language.state()

    def restore(self, state: Any) -> None:
        """Take over the variables."""
        self._language.restore(state)


def slots_of(window: Window) -> Slots | None:
    """Return what a window with a splitter needs; None if it has none."""
    return None if window.splitter is None else Slots(window)
