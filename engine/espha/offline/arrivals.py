"""What comes to a source window in a run."""

from typing import NamedTuple

from espha.model.events import Event


class Arrival(NamedTuple):
    """One event on its way to a source window, or the reason why there is none.

    Attributes:
        window: "query/window" of the source.
        origin: the file or connector that it comes from, as a user knows it.
        line: its line there, from 1; 0: there are no lines.
        event: the event; None: there is none.
        reason: why there is none.
    """

    window: str
    origin: str
    line: int
    event: Event | None
    reason: str = ""
