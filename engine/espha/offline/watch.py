"""Rows of windows on the terminal, as they leave: `--watch`."""

from collections.abc import Iterable
from typing import Final

from rich.console import Console
from rich.text import Text

from espha.model import Window
from espha.model.events import Event
from espha.model.types import formatter

_COLORS: Final = {"I": "green", "U": "cyan", "P": "cyan", "D": "red", "SD": "red"}
_DATES: Final = "%Y-%m-%d %H:%M:%S"
_LONGEST: Final = 40
"""Longest cell, in characters; what is longer is cut."""


class Screen:
    """Where the tables of all watched windows go; it knows whose rows stand last."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.shown = ""


class WatchSink:
    """Prints what leaves a window as rows of a table; see `espha.offline.sinks.Sink`.

    The first rows say how wide the columns are; a later value that is wider moves its row.
    """

    name, goal = "--watch", "the terminal"

    def __init__(self, window: Window, screen: Screen) -> None:
        self.window = window.path
        self.written = 0
        self._screen = screen
        marked = [f"{field.name}{'*' if field.key else ''}" for field in window.fields]
        self._names = ["opcode", "flags", *marked]
        self._formats = [formatter(field.type, _DATES) for field in window.fields]
        numbers = {"int32", "int64", "double", "money"}
        self._right = [False, False, *(field.type in numbers for field in window.fields)]
        self._widths: list[int] = []
        self._rows: list[list[str]] = []

    def write(self, events: Iterable[Event]) -> None:
        """Take events, in order."""
        for opcode, flags, values in events:
            cells = [show(value) for show, value in zip(self._formats, values, strict=True)]
            self._rows.append([opcode, flags, *map(_cut, cells)])

    def flush(self) -> None:
        """Print what was taken, below a head when another window's rows stand last."""
        if not self._rows:
            return
        if not self._widths:
            columns = zip(self._names, *self._rows, strict=True)
            self._widths = [max(map(len, column)) for column in columns]
        if self._screen.shown != self.window:
            self._screen.shown = self.window
            self._print(Text(self.window, "bold"))
            self._print(Text(self._line(self._names), "bold underline"))
        for row in self._rows:
            self._print(Text(self._line(row), _COLORS.get(row[0], "")))
        self.written += len(self._rows)
        self._rows = []

    def close(self) -> None:
        """There is nothing open."""

    def _line(self, cells: list[str]) -> str:
        placed = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, self._widths, self._right, strict=True)
        ]
        return "  ".join(placed).rstrip()

    def _print(self, text: Text) -> None:
        self._screen.console.print(text, soft_wrap=True)


def _cut(cell: str) -> str:
    flat = cell.replace("\n", "⏎")
    return flat if len(flat) <= _LONGEST else flat[: _LONGEST - 1] + "…"
