"""Receiving from servers that may be slow on purpose: a tenant chooses the image that runs there.

A socket's own timeout is for each piece. Who sends a byte a second is never too late for that.
"""

import socket
import time


def receive(connection: socket.socket, most: int, until: float) -> bytes:
    """Return what comes next.

    Args:
        connection: where from.
        most: how many bytes are wanted at most.
        until: when the whole answer must be there, in seconds of the monotonic clock.

    Returns:
        One byte at least; none at the connection's end.

    Raises:
        OSError: nothing has come until then, or the connection breaks.
    """
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("the answer takes too long")
    connection.settimeout(left)
    return connection.recv(most)
