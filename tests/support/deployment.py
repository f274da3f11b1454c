"""A deployment without Kubernetes: three engines, one election, real Kafka and ZooKeeper."""

import json
import os
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Message

from espha.connectors.topics import topic_plan
from espha.kafka.reader import Offsets, read_range
from espha.kafka.writer import FencedWriter, Record
from espha.reader import read_project
from espha.recovery.store import SnapshotStore
from support.replicas import Replica, only_active
from support.servers import JAR_CACHE, Kafka, ZooKeeper, wait_until

SAMPLE_MODEL = Path(__file__).parents[2] / "manifests" / "models" / "ha-project.xml"


class Deployment:
    """Engines of one model on topics of their own."""

    def __init__(
        self,
        kafka: Kafka,
        zookeeper: ZooKeeper,
        folder: Path,
        model: Path = SAMPLE_MODEL,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Make the topics; `settings` are further environment variables of the engines."""
        self.kafka = kafka
        self.name = f"d{uuid.uuid4().hex[:8]}"
        self.plan = topic_plan(read_project(model.read_text()), self.name)
        kafka.make_topics(*self.plan.all())
        self._environment = {
            "ESPHA_BOOTSTRAP": kafka.bootstrap,
            "ESPHA_ZOOKEEPER": zookeeper.connect,
            "ESPHA_ROOT": f"/ESP/test/{self.name}/engines",
            "ESPHA_MODEL": str(model),
            "ESPHA_PREFIX": self.name,
            "ESPHA_DEPLOYMENT": f"test/{self.name}",
            "ESPHA_JARS": str(JAR_CACHE / "engine"),
            **(settings or {}),
            "PYTHONPATH": os.pathsep.join(["engine", os.environ.get("PYTHONPATH", "")]),
        }
        self._folder = folder
        self.engines: list[Replica] = []
        self._source: FencedWriter | None = None

    def start(self, engines: int = 3) -> None:
        """Start engines and wait until all are in sync and one is active."""
        for number in range(engines):
            engine = Replica(f"engine-{number}", self._folder, ["--", "engine"], self._environment)
            engine.environment["ESPHA_SNAPSHOTS"] = str(self.snapshots(engine).folder)
            self.engines.append(engine)
        for engine in self.engines:
            peers = [f"127.0.0.1:{peer.port}" for peer in self.engines if peer is not engine]
            engine.environment["ESPHA_PEERS"] = ",".join(peers)
            engine.start()
        self.wait_in_sync()

    def snapshots(self, engine: Replica) -> SnapshotStore:
        """Return the folder with an engine's snapshots."""
        return SnapshotStore(self._folder / f"{engine.name}-snapshots")

    def wait_in_sync(self, timeout: float = 240) -> None:
        """Wait until every engine is in sync and in the queue, and exactly one is active."""
        wait_until(self._in_sync, timeout, f"engines of {self.name} in sync, one active")

    def _in_sync(self) -> bool:
        """Look at each engine once; one that is in sync may not stand for election yet."""
        told = [engine.status() for engine in self.engines]
        stand = all(one.get("in_sync") and one.get("znode") for one in told)
        return stand and [one["state"] for one in told].count("active") == 1

    def wait_level(self, timeout: float = 240) -> None:
        """Wait until all are in sync, and have processed what the order log holds by then.

        A standby is in sync while it still has the last records before it, so only behind this
        are its counters those of the whole log; and all that is committed shows.
        """
        self.wait_in_sync(timeout)
        self.settle()
        end = self.order_records()[-1]["sequence"]
        wait_until(
            lambda: all(engine.status().get("sequence", 0) >= end for engine in self.engines),
            timeout,
            f"engines of {self.name} behind order record {end}",
        )

    def active(self, timeout: float = 120) -> Replica:
        """Return the active engine, waiting for one."""
        return only_active(self.engines, timeout)

    def active_but(self, old: Replica, timeout: float = 120) -> Replica:
        """Return the active engine that has taken over from `old`, waiting for it."""
        return only_active((one for one in self.engines if one is not old), timeout)

    def publish(self, window: str, lines: Iterable[str]) -> None:
        """Write input records, in one transaction."""
        if self._source is None:
            self._source = FencedWriter(self.kafka.bootstrap, f"{self.name}.test")
            self._source.fence()
        topic = self.plan.inputs[window]
        self._source.commit([Record(topic, line.encode()) for line in lines])

    def settle(self) -> None:
        """Wait until what engines have committed by now shows on all topics.

        A commit is answered before its marker is on each topic, and on one it may be sooner than on
        another. What a killed engine has left open stays so until the next one leads.
        """
        offsets = Offsets(self.kafka.bootstrap)
        for topic in (*self.plan.outputs.values(), self.plan.dead_letters, self.plan.order_log):
            offsets.settled(topic)

    def records(self, topic: str) -> list[Message]:
        """Return all committed records of a topic."""
        end = Offsets(self.kafka.bootstrap).end(topic)
        first = Offsets(self.kafka.bootstrap).first(topic)
        return list(read_range(self.kafka.bootstrap, topic, first, end))

    def lines(self, window: str) -> list[str]:
        """Return the texts that a window's output topic holds."""
        return [message.value().decode() for message in self.records(self.plan.outputs[window])]

    def order_records(self) -> list[dict[str, Any]]:
        """Return the order log."""
        return [json.loads(message.value()) for message in self.records(self.plan.order_log)]

    def stop(self) -> None:
        """End all engines, and the client that published."""
        for engine in self.engines:
            engine.stop()
        self._source = None  # it would look for the brokers, aloud, when these are gone
