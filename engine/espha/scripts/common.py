"""What scripts of all languages share."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

MAX_CODE: Final = 100_000
"""Longest text of a script, in characters."""

MAX_ROWS: Final = 10_000
"""Most rows that one call may return."""

OPCODE: Final = "_opcode"
"""What a row calls the opcode that it wants."""

Row = Sequence[Any]
"""A row that a script returned: what it said about each output, in the order of the outputs."""

Answer = list[Row] | bool | int | float | str
"""What a function returned: rows, or one value. Nothing at all is no rows."""


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


class Options(NamedTuple):
    """What else there is to say of a script.

    Attributes:
        modules: texts that the script can import or require, by name.
        snippets: texts whose functions the script can call through `esp`, by name.
        init: the function that is called once before the first event, if any.
        settings: what that function gets; None: it takes nothing.
        expanded: the function takes the fields as parameters, not a row and a context.
        blocks: the function takes a list of rows.
        encoded: blobs come as base64 text.
        require: names of the modules that run before the script.
        files: what the script can open, by name.
        mas: the function is one of an analytic module: its parameters are names of fields, its
            text says `Output: a, b`.
    """

    modules: Mapping[str, str] = MappingProxyType({})
    snippets: Mapping[str, str] = MappingProxyType({})
    init: str = ""
    settings: Mapping[str, str] | None = None
    expanded: bool = False
    blocks: bool = False
    encoded: bool = False
    require: Sequence[str] = ()
    files: Mapping[str, bytes] = MappingProxyType({})
    mas: bool = False


class Call(NamedTuple):
    """One call of a script's function.

    Attributes:
        values: the row, in the order of the input's fields; int, float,
            str, bytes, tuple of numbers, or None.
        opcode: of the event, "insert" and so on.
        flags: of the event: "N", "P", "R".
        port: which of the script's inputs the event comes from; -1: there is no event, and the
            function takes the context alone.
        clock: milliseconds since 1970, from the order record.
        token: number of the source event that led here.
        function: which function, if it is not the one of the script.
    """

    values: Sequence[Any]
    opcode: str
    flags: str
    port: int
    clock: int
    token: int
    function: str = ""


class Script(Protocol):
    """A loaded script with one function to call."""

    def call(self, call: Call) -> Answer:
        """Call the function.

        Raises:
            ScriptError: it failed. What it had changed in its variables until then stays.
        """
        ...

    def call_block(self, calls: Sequence[Call]) -> list[Answer | ScriptError]:
        """Do the same as `call` for one call after the other."""
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
