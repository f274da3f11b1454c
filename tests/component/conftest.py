"""One ZooKeeper and one three-broker Kafka for all component tests; topics are made a test."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from espha.kafka.reader import CLIENT_TUNING
from espha.pipeline.session import open_session
from support.servers import JAR_CACHE, Kafka, ZooKeeper

# Clients of ended tests look for the brokers when these have ended, too; said aloud, that would
# stand below the summary of the tests, hundreds of lines of it.
CLIENT_TUNING["log_level"] = 2


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
        cluster.stop()


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """An engine's session."""
    session = open_session("local[1]", JAR_CACHE / "engine")
    yield session
    session.stop()
