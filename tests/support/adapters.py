"""Adapters of a model as supervised processes, on topics of their own."""

import contextlib
import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from espha.checker.watch import read_all
from espha.connectors.topics import TopicPlan, topic_plan
from espha.kafka.reader import Offsets
from espha.reader import read_project
from support.replicas import LIMIT_S, Replica, active_of, in_sync
from support.servers import Kafka, ZooKeeper, wait_until

MODEL = Path(__file__).parents[2] / "manifests" / "models" / "ha-project.xml"
MEMORY, OUTBOUND = "cq/memory", "cq/outbound"


class Adapters:
    """The topics of the sample model, and adapters that a test starts on them."""

    def __init__(
        self,
        kafka: Kafka,
        zookeeper: ZooKeeper,
        folder: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Make the topics.

        Args:
            kafka: where they are.
            zookeeper: where input adapters are elected.
            folder: where configurations and logs go.
            environment: what the adapters need besides.
        """
        self.kafka, self.folder = kafka, folder
        self.prefix = f"a{uuid.uuid4().hex[:8]}"
        self.plan: TopicPlan = topic_plan(read_project(MODEL.read_bytes()), self.prefix)
        kafka.make_topics(*self.plan.all())
        self.input_topic, self.output_topic = self.plan.inputs[MEMORY], self.plan.outputs[OUTBOUND]
        self.environment = {
            "ESPHA_BOOTSTRAP": kafka.bootstrap,
            "ESPHA_ZOOKEEPER": zookeeper.connect,
            "ESPHA_MODEL": str(MODEL),
            "ESPHA_PREFIX": self.prefix,
            "PYTHONPATH": os.pathsep.join(["engine", os.environ.get("PYTHONPATH", "")]),
            **(environment or {}),
        }
        self.replicas: list[Replica] = []

    def start(self, replica: str, direction: str, **settings: Any) -> Replica:
        """Start an adapter under its supervisor.

        Args:
            replica: its name; the adapter is called like that, up to the last `-`.
            direction: `input` or `output`.
            settings: its configuration; the window is that of the model's with such a topic.
        """
        adapter = replica.rpartition("-")[0] or replica
        window = MEMORY if direction == "input" else OUTBOUND
        path = self.folder / f"{replica}.json"
        path.write_text(json.dumps({"name": adapter, "window": window, **settings}))
        election = [] if direction == "input" else ["--no-election"]
        arguments = [*election, "--", "adapter", direction, "--config", str(path)]
        root = f"/ESP/test/{self.prefix}/adapters/{adapter}"
        made = Replica(replica, self.folder, arguments, {**self.environment, "ESPHA_ROOT": root})
        self.replicas.append(made)
        made.start()
        return made

    def start_pair(self, adapter: str, **settings: Any) -> list[Replica]:
        """Start two input adapters, and wait for an active and a standby one."""
        pair = [self.start(f"{adapter}-{number}", "input", **settings) for number in range(2)]
        wait_until(
            lambda: len(active_of(pair)) == 1 and all(map(in_sync, pair)),
            LIMIT_S,
            f"one input adapter of {adapter} active, the other one standby",
        )
        return pair

    def published(self) -> list[str]:
        """Return the committed input records.

        A commit is answered before the brokers have ended its transaction; that is waited for.
        """
        Offsets(self.kafka.bootstrap).settled(self.input_topic)
        return [each.value for each in read_all(self.kafka.bootstrap, self.input_topic)]

    def kill_active(self) -> None:
        """Kill each adapter's process that works now; one may be between two lives."""
        for one in active_of(self.replicas):
            kill(one)

    def stop(self) -> None:
        """End all adapters."""
        for one in self.replicas:
            one.stop()


Some = TypeVar("Some", bound=Adapters)


@contextmanager
def stopped_at_the_end(adapters: Some) -> Iterator[Some]:
    """Hand them out; they end with the block."""
    try:
        yield adapters
    finally:
        adapters.stop()


def kill(replica: Replica) -> None:
    """Kill the process of an adapter, which may be between two lives."""
    with contextlib.suppress(LookupError, ProcessLookupError):
        replica.kill_child()


def file_input(file: Path, **options: object) -> dict[str, object]:
    """Return the settings of an input adapter of a growing CSV file with a header line."""
    return {
        "file": {
            "path": str(file),
            "growing": True,
            "headerLines": 1,
            "autogenField": False,
            "opcode": False,
            "flags": False,
            **options,
        }
    }


def counters(records: Sequence[str]) -> list[int]:
    """Return the counters of input records or results, which tests give them in order."""
    return [int(record.split(",")[3]) for record in records]
