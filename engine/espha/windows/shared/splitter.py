"""Splitters: the slot of an event."""

from typing import Any, Final, Protocol

from espha.languages.eel import Initialize, Language
from espha.model.events import BadRecord, Event
from espha.model.project import Splitter, Window
from espha.windows.shared.script import OfScript, ScriptHandle
from espha.windows.shared.splitter_spec import ScriptSplitter
from espha.windows.shared.stage import Moment

ALL_SLOTS: Final = -1
"""An event with this slot goes along all edges."""

NO_SLOT: Final = -2
"""No edge has this slot."""


class Slots(Protocol):
    """Says to which slot an event goes that leaves a window."""

    def __call__(self, event: Event, clock: int) -> int:
        """Return the slot; `NO_SLOT` for null, so the event goes along edges without slot only.

        Raises:
            BadRecord: it cannot be said.
        """
        ...

    def state(self) -> Any:
        """Return what outlives an event."""
        ...

    def restore(self, state: Any) -> None:
        """Take it over."""
        ...


class ScriptSlots(OfScript):
    """The splitter that is a script."""

    def __init__(self, splitter: ScriptSplitter, window: Window) -> None:
        super().__init__(ScriptHandle(splitter.code, f"{window.path} splitter", ["slot"]))

    def __call__(self, event: Event, clock: int) -> int:
        """Return what the function says; nothing is `NO_SLOT`."""
        answer = self._call(event, Moment(clock))
        if isinstance(answer, list) and not answer:
            return NO_SLOT
        try:
            return int(answer)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            raise BadRecord("the script of a splitter must return a number") from None


class ExpressionSlots:
    """The splitter that is an expression."""

    def __init__(self, splitter: Splitter, window: Window) -> None:
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
    splitter = window.splitter
    if splitter is None:
        return None
    if isinstance(splitter, ScriptSplitter):
        return ScriptSlots(splitter, window)
    return ExpressionSlots(splitter, window)
