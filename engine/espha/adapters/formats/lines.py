"""Formats whose payloads can stand one a line."""

from typing import Final

from espha.adapters.config import ConfigError
from espha.adapters.formats.encodings import is_wide
from espha.adapters.formats.spec import InputFormat, OutputFormat

_LINES: Final = ("csv", "json")


def check_lines(given: InputFormat | OutputFormat) -> None:
    """Refuse a format that needs more than a line.

    Raises:
        ConfigError: it is one of bytes, in which a newline ends nothing.
    """
    if given.type not in _LINES:
        raise ConfigError(
            f"format {given.type!r} has no lines; adapters of sockets and of HTTP take: "
            f"{', '.join(_LINES)}"
        )


def check_newlines(given: InputFormat) -> None:
    """Refuse an encoding in which the byte 10 is no newline.

    Raises:
        ConfigError: it is one.
    """
    if is_wide(given.encoding):
        raise ConfigError(
            f"encoding {given.encoding!r} is for files and messages; a line of a socket ends with "
            "the byte 10"
        )
