"""A client of ZooKeeper that finds a server that lives before its session is over."""

from typing import Any

from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler


def client(servers: str, session_s: float, **options: Any) -> KazooClient:
    """Make a client that is not started yet.

    Args:
        servers: "host:port", several with commas.
        session_s: the session's time-out that it asks for.
        options: whatever else `KazooClient` takes.
    """
    # Kazoo asks in rounds, each in an order of its own: between the server that it lost and the
    # one that it finds, it may come by each of the others twice.
    handler = _Brisk(session_s / (2 * len(servers.split(","))))
    return KazooClient(hosts=servers, timeout=session_s, handler=handler, **options)


class _Brisk(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """Gives up an address that does not answer within `limit_s`.

    Kazoo waits a whole session for each: behind a server whose machine is gone, it would be over
    before a server that lives is asked.
    """

    def __init__(self, limit_s: float) -> None:
        super().__init__()
        self._limit_s = limit_s

    def create_connection(self, *args: Any, timeout: float, **kwargs: Any) -> Any:
        return super().create_connection(*args, timeout=min(timeout, self._limit_s), **kwargs)
