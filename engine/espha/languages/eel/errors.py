"""The refusal of an expression, and how large one may be."""

from typing import Final, NamedTuple

MAX_LENGTH: Final = 30_000
"""Longest expression, in characters."""
MAX_HEIGHT: Final = 100
"""Highest tree. It is walked by recursion; this keeps it far away from Python's limit."""
MAX_STEPS: Final = 100_000
"""What one run may cost; `espha.languages.eel.statements` says what is counted."""
MAX_TEXT: Final = 1_000_000
"""Longest string that a function makes, in characters; a longer one is null."""
MAX_NAMED: Final = 30
"""As many names stand in a message."""


class At(NamedTuple):
    """A place in an expression; both count from 1."""

    line: int
    column: int


class ExpressionError(ValueError):
    """An expression cannot be used; the message says where and why in a sentence."""

    def __init__(self, reason: str, at: At | None = None) -> None:
        where = "" if at is None else f"line {at.line}, column {at.column}: "
        super().__init__(where + reason)


def listed(names: "list[str] | tuple[str, ...]") -> str:
    """Return the first names as a text for a message."""
    more = ", …" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more
