"""What scripts reach outside of themselves: the log, and what they share with their project."""

import logging
from typing import Final, Protocol

from espha.scripts.common import ScriptError

MAX_MESSAGE: Final = 2_000
"""Most characters of a message that are logged."""

_LOG = logging.getLogger(__name__)
_LEVELS: Final = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "fatal": logging.CRITICAL,
}


class World(Protocol):
    """What the scripts of a project share; values are packed, see `espha.scripts.packed`.

    Every method raises ScriptError, with a sentence, for what cannot be done.
    """

    def get(self, name: str) -> bytes | None:
        """Return a property; None: there is none."""
        ...

    def set(self, name: str, value: bytes | None) -> None:
        """Change a property; None takes it away."""
        ...

    def version(self, name: str) -> int:
        """Return how often a property has been changed."""
        ...

    def call(self, snippet: str, function: str, arguments: bytes) -> bytes:
        """Call a function of a snippet; return its results as a list."""
        ...

    def publish(self, window: str, events: bytes) -> None:
        """Put a list of events into a source window, when the event at hand is done with."""
        ...

    def query(self, window: str) -> bytes:
        """Return the rows that a window keeps."""
        ...

    def subscribe(self, window: str, handler: str, snapshot: bool) -> int:
        """Have a function of this script called with what leaves a window; return a number."""
        ...

    def unsubscribe(self, number: int) -> None:
        """End a subscription."""
        ...


class Alone:
    """The world of a script without a project."""

    def get(self, name: str) -> bytes | None:
        """Return nothing."""
        return None

    def set(self, name: str, value: bytes | None) -> None:
        """Refuse."""
        raise _nobody()

    def version(self, name: str) -> int:
        """Return that it was never changed."""
        return 0

    def call(self, snippet: str, function: str, arguments: bytes) -> bytes:
        """Refuse."""
        raise _nobody()

    def publish(self, window: str, events: bytes) -> None:
        """Refuse."""
        raise _nobody()

    def query(self, window: str) -> bytes:
        """Refuse."""
        raise _nobody()

    def subscribe(self, window: str, handler: str, snapshot: bool) -> int:
        """Refuse."""
        raise _nobody()

    def unsubscribe(self, number: int) -> None:
        """Do nothing."""


def _nobody() -> ScriptError:
    return ScriptError("this script shares nothing with others")


def log(level: str, context: str, message: str, line: str = "") -> None:
    """Log what a script says."""
    where = f" (line {line})" if line else ""
    said = message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…"
    _LOG.log(_LEVELS.get(level.lower(), logging.INFO), "%s: %s%s", context, said, where)
