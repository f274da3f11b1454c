"""Standard input, sent to an input adapter."""

import re
import sys
from collections.abc import Callable
from typing import BinaryIO, cast

from pydantic import ValidationError

from espha.adapters.config import ConfigError
from espha.adapters.socket_input.lines import STREAM
from espha.adapters.socket_output.spec import OutputSocket
from espha.local.sending import send

_CHUNK = 65_536


def send_standard_input(to: str, stream: str, timeout_s: float, say: Callable[[str], None]) -> int:
    """Send all lines; return the exit code.

    Args:
        to: the adapter, `HOST:PORT`.
        stream: name of the input.
        timeout_s: after so long without an answer, the connection is made again.
        say: takes a line for people.

    Returns:
        0: all are published. 1: the adapter has lost lines. 2: an argument is wrong.
    """
    if not re.fullmatch(STREAM, stream):
        say(f"--stream {stream[:200]!r}: up to 100 letters, digits, _ . : -")
        return 2
    try:
        target = OutputSocket(connect=to, ids=True, timeout_s=timeout_s)
    except ValidationError:
        say(f"{to[:200]} is not HOST:PORT")
        return 2
    source = cast("BinaryIO", sys.stdin.buffer)
    read = getattr(source, "read1", source.read)  # what has come, not all that will
    try:
        sent = send(lambda: read(_CHUNK), target, stream, say)
    except ConfigError as error:
        say(str(error))
        return 1
    known = f"; {sent.before} of them had been before" if sent.before else ""
    say(f"{sent.lines} lines of stream {stream} are published{known}")
    return 0
