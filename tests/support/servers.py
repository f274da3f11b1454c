"""Servers for tests: the product's, with brokers that miss a dead one sooner."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from espha.local import cache, servers
from espha.local.ports import free_ports, listens
from espha.local.servers import BRIEF, LASTING, Server, ZooKeeper, java_hash
from espha.local.waiting import wait_until

__all__ = [
    "BRIEF",
    "JAR_CACHE",
    "LASTING",
    "Kafka",
    "Server",
    "ZooKeeper",
    "free_ports",
    "java_hash",
    "listens",
    "wait_until",
]

JAR_CACHE = cache.jars("")
_BRISK: dict[str, str | int] = {
    "broker.session.timeout.ms": 800,
    "broker.heartbeat.interval.ms": 200,  # also how long a broker waits for the answer
    "controller.quorum.fetch.timeout.ms": 1200,
    "controller.quorum.election.timeout.ms": 300,
    "controller.quorum.election.backoff.max.ms": 100,
    "replica.fetch.backoff.ms": 50,
}
"""docs/how-to/troubleshoot.md names the price."""


class Kafka(servers.Kafka):
    """Brokers that are quick to miss each other."""

    def __init__(
        self,
        folder: Path,
        replicas: int = 1,
        settings: Mapping[str, str | int] | None = None,
        java: Sequence[str] = BRIEF,
    ) -> None:
        super().__init__(folder, replicas, {**_BRISK, **(settings or {})}, java)
