"""What scripts of all languages share."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

MAX_CODE = 100_000
"""Longest text of a script, in characters."""

MAX_ROWS = 10_000
"""Most rows that one call may return."""

Row = Mapping[str, Any]
"""A row that a script returned: what it said about each field, by name."""


class ScriptError(Exception):
    """A script is wrong, failed, or went beyond its limits; the text is a sentence."""


class Input(NamedTuple):
    """One window that feeds a script.

    Attributes:
        window: its name.
        fields: names of the values that a script gets from there.
    """

    window: str
    fields: Sequence[str]


class Call(NamedTuple):
    """One call of a script's function.

    Attributes:
        values: the row, in the order of the input's fields; int, float,
            str, bytes, tuple of numbers, or None.
        opcode: of the event, "insert" and so on.
        flags: of the event: "N", "P", "R".
        port: which of the script's inputs the event comes from.
        clock: milliseconds since 1970, from the order record.
        token: number of the source event that led here.
    """

    values: Sequence[Any]
    opcode: str
    flags: str
    port: int
    clock: int
    token: int


class Script(Protocol):
    """A loaded script with one function to call."""

    def call(self, call: Call) -> list[Row] | bool:
        """Call the function.

        Returns:
            The rows that it returned; for a function that answers with true or false, that.

        Raises:
            ScriptError: it failed. What it had changed in its variables until then stays.
        """
        ...

    def state(self) -> Any:
        """Return the script's variables as plain picklable data."""
        ...

    def restore(self, state: Any) -> None:
        """Put the variables back."""
        ...

    def close(self) -> None:
        """Give back what the script holds outside of this process; it can be called again."""
        ...
