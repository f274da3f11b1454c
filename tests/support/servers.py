"""Servers for tests: the product's own."""

from collections import deque

from espha.local import cache, ports
from espha.local.ports import listens
from espha.local.servers import BRIEF, LASTING, LASTING_BROKERS, Kafka, Server, ZooKeeper, java_hash
from espha.local.waiting import wait_until

__all__ = [
    "BRIEF",
    "JAR_CACHE",
    "LASTING",
    "LASTING_BROKERS",
    "Kafka",
    "Server",
    "ZooKeeper",
    "free_ports",
    "java_hash",
    "listens",
    "wait_until",
]

JAR_CACHE = cache.jars("")
_GIVEN: deque[int] = deque(maxlen=1000)


def free_ports(count: int) -> list[int]:
    """Return free loopback ports, none of those that were given out lately.

    Whoever got one of these may not listen there yet.
    """
    found = ports.free_ports(count, _GIVEN)
    _GIVEN.extend(found)
    return found
