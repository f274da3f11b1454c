"""What a running function can see."""

import hashlib
import uuid
from typing import Any

from espha.model.events import Value


class Frame:
    """One event while its functions run.

    Attributes:
        row: values of the event, in the order of the input's schema.
        opcode: its opcode; flags: its flags.
        source: name of the window that it comes from.
        clock: milliseconds since 1970, from the order record.
        token: number of the source event that led here.
        number: which of the events that one input event becomes is being made, from 0.
        counter: number of the event that is being made, from 0, over the life of the window.
        draws: how many random values the window has drawn.
        salt: what tells this window from others that draw for the same token.
        slots: results of functions, properties and loops.
    """

    __slots__ = (
        "clock",
        "counter",
        "draws",
        "flags",
        "number",
        "opcode",
        "row",
        "salt",
        "slots",
        "source",
        "token",
    )

    def __init__(self, size: int, salt: str = "") -> None:
        self.row: tuple[Value, ...] = ()
        self.opcode, self.flags, self.source = "I", "N", ""
        self.clock = self.token = self.number = self.counter = self.draws = 0
        self.salt = salt
        self.slots: list[Any] = [None] * size

    def digest(self) -> bytes:
        """Return 32 bytes that look random and are the same in every engine."""
        text = f"{self.salt}/{self.token}/{self.draws}"
        self.draws += 1
        return hashlib.sha256(text.encode()).digest()

    def fraction(self) -> float:
        """Return a number from 0 to below 1, with 53 random bits."""
        return (int.from_bytes(self.digest()[:8], "big") >> 11) / 2.0**53

    def guid(self) -> str:
        """Return an identifier in the form of a random UUID."""
        return str(uuid.UUID(bytes=self.digest()[:16], version=4))
