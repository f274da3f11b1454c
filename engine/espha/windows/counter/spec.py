"""Counter windows: how many events come, and how fast."""

from typing import Final, Literal

from espha.model.project import Field, Window
from espha.windows.shared.intervals import read_interval
from espha.windows.shared.spec import Reading, WindowType

FIELDS: Final = (
    Field("input", "string", True),
    Field("totalCount", "int64"),
    Field("totalSeconds", "double"),
    Field("totalRate", "double"),
    Field("intervalCount", "int64"),
    Field("intervalSeconds", "double"),
    Field("intervalRate", "double"),
)
"""The schema of every counter window."""


class CounterWindow(Window):
    """Counts the events of each input.

    Attributes:
        inputs: names of the windows that feed it, by port.
        count_interval: milliseconds between two reports; None: a report for each event.
        clear_interval: milliseconds without an event until an input starts again; None: never.
    """

    type: Literal["counter"] = "counter"
    inputs: tuple[str, ...]
    count_interval: int | None = None
    clear_interval: int | None = None


def _read(reading: Reading) -> CounterWindow | None:
    before = len(reading.findings.problems)
    count = read_interval(reading, "count-interval")
    clear = read_interval(reading, "clear-interval")
    if len(reading.findings.problems) > before:
        return None
    return CounterWindow(
        **{**reading.common, "fields": FIELDS},
        inputs=tuple(feed.path.partition("/")[2] for feed in reading.feeds),
        count_interval=count,
        clear_interval=clear,
    )


WINDOW = WindowType(
    "counter",
    _read,
    "rows",
    attributes=frozenset({"count-interval", "clear-interval"}),
    inputs=(1, None),
)
