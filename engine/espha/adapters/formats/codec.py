"""What formats of bytes have in common: an event to a payload and back, by a schema."""

from collections.abc import Sequence
from typing import Protocol

from espha.adapters.config import ConfigError
from espha.model import Field, Window
from espha.model.events import Event

OPCODE, FLAGS = "opcode", "flags"
"""Fields of foreign schemas that are no fields of the window."""


class Codec(Protocol):
    """Reads and writes payloads."""

    def decode(self, payload: bytes) -> Event:
        """Return the event of a payload.

        Raises:
            BadRecord: it is none; the text says why.
            ConfigError: the schema does not fit the window's.
            OSError: the schema cannot be had now.
        """
        ...

    def encode(self, event: Event) -> bytes:
        """Return the payload of an event; raises as `decode`."""
        ...


class Misfit(Exception):  # noqa: N818 - it names a state
    """A schema does not fit a window's; the text says where."""


def refusal(window: Window, why: str, schema: str) -> ConfigError:
    """Return what is said of a schema that does not fit, with both schemas."""
    return ConfigError(
        f"the schema does not fit window {window.path!r}: {why}\n"
        f"the window's: {schema_text(window.fields)}\nthe other one: {schema}"
    )


def schema_text(fields: Sequence[Field]) -> str:
    """Return a window's schema as models write it: `id*:int64,name:string`."""
    return ",".join(f"{one.name}{'*' if one.key else ''}:{one.type}" for one in fields)
