"""An event, and the refusal of one."""

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

Value = int | float | str | bytes | tuple[int | float | None, ...] | None
"""int32, int64, date (seconds), stamp (microseconds): int; double, money: float; string: str;
blob: bytes; array: tuple of its elements."""

OPCODES: Final = ("I", "U", "P", "D", "SD")
FLAGS: Final = ("N", "P", "R")


class Event(NamedTuple):
    """One event of a window.

    Attributes:
        opcode: I insert, U update, P upsert, D delete, SD safe delete.
        flags: N normal, P partial update, R made by retention.
        values: one value a field, in schema order; null is None.
    """

    opcode: str
    flags: str
    values: tuple[Value, ...]


event_of: Final[Callable[[tuple[str, str, tuple[Value, ...]]], Event]] = partial(
    tuple.__new__, Event
)
"""An event of its parts, several times as fast as by name."""


class BadRecord(Exception):  # noqa: N818 - the field's own word
    """An event that the model refuses; the state is as it was before.

    Attributes:
        reason: a sentence for the owner of the data.
        window: path of the window that refused it; empty before it reached one.
    """

    def __init__(self, reason: str, window: str = "") -> None:
        super().__init__(reason, window)
        self.reason = reason
        self.window = window

    def __str__(self) -> str:
        return f"{self.window}: {self.reason}" if self.window else self.reason
