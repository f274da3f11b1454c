"""Loopback ports."""

import contextlib
import random
import socket
from collections import deque
from collections.abc import Collection
from pathlib import Path

from espha.local.errors import LocalError

HOST = "127.0.0.1"
_FIRST = 10_000
_LATELY: deque[int] = deque(maxlen=1000)
"""Those that were returned last: whoever got one may not listen there yet."""


def free_ports(count: int, but: Collection[int] = ()) -> list[int]:
    """Return loopback ports that nobody uses now, none of those that the kernel hands out.

    Nor one that was returned lately.

    A client that tries a dead server's port again and again would one day be given that very port
    as its own: it would talk to itself, and the server could not come back.

    Args:
        count: how many.
        but: ports that are not to be returned.

    Raises:
        LocalError: there are not so many.
    """
    first_of_kernel = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    candidates = range(_FIRST, first_of_kernel)
    free: list[int] = []
    for port in random.sample(candidates, len(candidates)):
        if port not in but and port not in _LATELY and is_free(port):
            free.append(port)
        if len(free) == count:
            _LATELY.extend(free)
            return free
    raise LocalError(f"no {count} free ports from {candidates.start} to {candidates.stop}")


def is_free(port: int) -> bool:
    """Tell whether a server could listen on a loopback port now."""
    with socket.socket() as probe, contextlib.suppress(OSError):
        # As servers do it: what is left of closed connections is in nobody's way.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((HOST, port))
        return True
    return False


def listens(port: int) -> bool:
    """Tell whether a loopback port accepts connections."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((HOST, port)) == 0
