"""One ZooKeeper and one three-broker Kafka for all component tests; topics are made a test."""

import gc
from collections.abc import Iterator

import pytest

from support.servers import Kafka, ZooKeeper


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    """A running ZooKeeper server."""
    server = ZooKeeper(tmp_path_factory.mktemp("zookeeper"))
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A running Kafka cluster of three brokers."""
    cluster = Kafka(tmp_path_factory.mktemp("kafka"), replicas=3)
    try:
        cluster.start()
        yield cluster
    finally:
        gc.collect()  # clients of ended tests; they would look for the brokers, and say so aloud
        cluster.stop()
