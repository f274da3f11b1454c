"""Servers for tests: the product's own."""

from espha.local import cache
from espha.local.ports import free_ports, listens
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
