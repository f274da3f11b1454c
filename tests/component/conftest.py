"""One ZooKeeper and one three-broker Kafka for all component tests; topics are made a test."""

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from espha.kafka.reader import CLIENT_TUNING
from espha.pipeline.session import open_session
from support.deployment import Deployment
from support.processes import descriptors
from support.replicas import CALM
from support.servers import JAR_CACHE, Kafka, ZooKeeper

# Clients of ended tests look for the brokers when these have ended, too; said aloud, that would
# stand below the summary of the tests, hundreds of lines of it.
CLIENT_TUNING["log_level"] = 2
# Starts of engines are most of what these tests take: the better compiler would not pay here.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
# As on the machine of somebody who has installed Spark; engines must not look there.
os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)

MOST_LEFT_OPEN = 50
"""Files and connections that a test may leave open."""


@pytest.fixture(autouse=True)
def nothing_stays_open() -> Iterator[None]:
    """A test ends its connections: behind 1,024 of them select() fails, in other tests."""
    before = descriptors()
    yield
    if descriptors() > before + MOST_LEFT_OPEN:
        gc.collect()
    left = descriptors() - before
    assert left <= MOST_LEFT_OPEN, f"the test has left {left} files and connections open"


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


@pytest.fixture
def deploy_sample(
    kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path
) -> Iterator[Callable[[int], Deployment]]:
    """Start the sample model on so many engines; they are in sync, and end with the test.

    Snapshots are written when one asks for them.
    """
    only_when_asked = {**CALM, "ESPHA_SNAPSHOT_INTERVAL_S": "86400"}
    made = Deployment(kafka, zookeeper, tmp_path, settings=only_when_asked)

    def start(engines: int) -> Deployment:
        made.start(engines)
        return made

    try:
        yield start
    finally:
        made.stop()


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """An engine's session."""
    session = open_session("local[1]", JAR_CACHE / "engine")
    yield session
    session.stop()
