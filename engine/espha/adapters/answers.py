"""Bodies of answers over HTTP, which have a limit in time."""

import time
from collections.abc import Iterator
from typing import Final

import urllib3

_CHUNK: Final = 1 << 16


def pieces(answer: urllib3.BaseHTTPResponse, until: float) -> Iterator[bytes]:
    """Yield the body of an answer as it comes, expanded.

    Args:
        answer: its body was not read yet.
        until: when the body has to be there, in seconds of the monotonic clock.

    Raises:
        TimeoutError: it is not.
        HTTPError: it breaks off, or nothing comes (urllib3).
    """
    # read() would wait until it has a whole chunk, however slowly that comes.
    while piece := answer.read1(_CHUNK, decode_content=True):
        yield piece
        if time.monotonic() > until:
            raise TimeoutError("the answer comes too slowly")
