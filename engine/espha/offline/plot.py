"""A picture of fields over time: `--plot`."""

import math
from array import array
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from espha.model import Field, Window
from espha.model.events import Event

NUMBERS: Final = ("int32", "int64", "double", "money")
_TICKS: Final = {"date": 1, "stamp": 1_000_000}
"""Types of times, and how many of their ticks are a second."""
ENDINGS: Final = (".png", ".svg", ".pdf")

_MOST: Final = 1_000_000
"""Points that are kept of each field; what comes later is not drawn."""


def why_no_plot() -> str:
    """Say what is missing for pictures; empty: nothing."""
    if find_spec("matplotlib") is None:
        return "the Python package matplotlib is not installed (espha[plot])"
    return ""


class PlotSink:
    """Draws fields of a window when the run ends; see `espha.offline.sinks.Sink`.

    The horizontal axis is the first date or stamp of the schema; without one, the number of the
    event. Deletes are not drawn: they say that a row is gone, and nothing of its values.
    """

    name = "--plot"

    def __init__(self, window: Window, fields: Sequence[str], path: Path) -> None:
        """Make ready; the file is written by `close`.

        Args:
            window: whose rows are drawn.
            fields: names of its fields of numbers; none: all that are no keys.
            path: the file; its ending says the format.
        """
        self.window, self.goal = window.path, str(path)
        self.written = 0
        self._path = path
        self._names = list(fields) or [f.name for f in drawable(window) if not f.key]
        places = {field.name: place for place, field in enumerate(window.fields)}
        self._places = [places[name] for name in self._names]
        time = next((field for field in window.fields if field.type in _TICKS), None)
        self._time = None if time is None else places[time.name]
        self._axis = "event" if time is None else time.name
        self._ticks = 1 if time is None else _TICKS[time.type]
        self._at = array("d")
        self._points = [array("d") for _ in self._names]

    def write(self, events: Iterable[Event]) -> None:
        """Keep the values of events, in order."""
        for event in events:
            if event.opcode in {"D", "SD"} or self.written == _MOST:
                continue
            time = self.written if self._time is None else event.values[self._time]
            self._at.append(_number(time) / self._ticks)
            for points, place in zip(self._points, self._places, strict=True):
                points.append(_number(event.values[place]))
            self.written += 1

    def flush(self) -> None:
        """There is nothing to see before the end."""

    def close(self) -> None:
        """Draw the picture, one panel for each field."""
        from matplotlib.figure import Figure

        count = len(self._names)
        figure = Figure(figsize=(10, 1 + 2.2 * count), layout="constrained")
        panels = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
        across: Sequence[object] = self._at
        if self._time is not None:
            across = [_moment(seconds) for seconds in self._at]
        style = "." if len(self._at) < 50 else ""
        for panel, name, points in zip(panels, self._names, self._points, strict=True):
            panel.plot(across, points, marker=style, linewidth=1)
            panel.set_ylabel(name)
            panel.grid(alpha=0.3)
        panels[0].set_title(self.window)
        panels[-1].set_xlabel(self._axis)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(self._path, dpi=120)


def drawable(window: Window) -> list[Field]:
    """Return the fields of a window that can be drawn."""
    return [field for field in window.fields if field.type in NUMBERS]


def _number(value: object) -> float:
    """Return a number, or a gap in the line."""
    return float(value) if isinstance(value, int | float) else math.nan


def _moment(seconds: float) -> datetime | None:
    return None if math.isnan(seconds) else datetime.fromtimestamp(seconds, UTC)
