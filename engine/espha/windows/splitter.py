"""Splitters: the slot of an event."""

from collections.abc import Callable

from espha.model.expressions import compile_expression
from espha.model.project import Window
from espha.windows.events import Event

NO_SLOT = -2
"""No edge has this slot."""


def slot_of(window: Window) -> Callable[[Event], int]:
    """Return the function that says to which slot an event that leaves `window` goes."""
    if window.splitter is None:
        raise ValueError(f"window {window.path} has no splitter")
    run = compile_expression(window.splitter.expression, window.fields).run

    def slot(event: Event) -> int:
        number = run(event.values)
        return NO_SLOT if number is None else int(number)

    return slot
