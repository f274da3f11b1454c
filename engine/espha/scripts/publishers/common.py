"""What publishers in Lua and in Python share."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol

SECONDS: Final = 10.0
"""How long one call may take."""

MAX_EVENTS: Final = 100_000
"""Most events of one call."""


class PublisherError(Exception):
    """A publisher's script is wrong, failed, or took too long; the text is a sentence."""


class Csv(NamedTuple):
    """Rows of CSV without opcode and flags, which are the same for all of them."""

    text: str
    opcode: str = ""
    flags: str = ""


Item = Mapping[str, Any] | Csv
"""An event by the names of its fields, with `_opcode` and `_flags`; or rows of CSV."""


class Published(NamedTuple):
    """What one call gives: events, and whether these were the last ones."""

    items: Iterable[Item]
    done: bool


class Publisher(Protocol):
    """A script that makes events."""

    def publish(self, now: int) -> Published:
        """Call the function, at `now` (ms since 1970).

        Raises:
            PublisherError: it failed.
        """
        ...

    def close(self) -> None:
        """Give back what the script holds."""
        ...
