"""Rows of files to the events of a source window."""

from collections.abc import Callable
from typing import NamedTuple

from espha.model import Window
from espha.model.events import BadRecord, Event
from espha.records.columns import csv_reader, json_reader
from espha.records.layout import Layout
from espha.records.rows import Raw


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


Read = Callable[[Raw], Event]
"""Makes an event of a row; raises BadRecord for a row that is none."""


def event_reader(window: Window, layout: Layout) -> Read:
    """Return the function that makes events of a file's rows, as `layout` says."""
    csv, json = csv_reader(window, layout), json_reader(window.fields, layout)

    def read(raw: Raw) -> Event:
        if raw.reason:
            raise BadRecord(raw.reason)
        return json(raw.content) if isinstance(raw.content, dict) else csv(raw.content)

    return read
