"""The topics of a deployment: made when missing, looked at, never changed to hold less."""

import logging
from collections.abc import Collection, Container, Iterable, Mapping
from typing import Any, NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from espha.connectors.topics import own_settings
from espha.protocol import brokers
from espha.protocol.sizes import MESSAGE_BYTES
from espha_operator.api.deployment import Deployment
from espha_operator.reconcile.room import output_bytes, segment_bytes
from espha_operator.status.facts import TopicFacts

# Seconds that Kafka may take for an answer, and for making a topic.
ANSWER = 5
MAKE = 15
LARGEST, SEGMENT = "max.message.bytes", "segment.bytes"
KEEP = ("retention.ms", "retention.bytes")
_LOG = logging.getLogger(__name__)


def wanted_settings(
    deployment: Deployment, topic: str = "", outputs: Collection[str] = ()
) -> dict[str, str]:
    """Return the settings of a topic; without its name, those of most.

    Args:
        deployment: whose topic.
        topic: its name.
        outputs: names of the topics that engines write for others.
    """
    topics, external = deployment.spec.topics, bool(deployment.spec.kafka.external)
    kept_ms, kept_bytes = topics.retention_ms, -1
    if topic in outputs:
        kept_ms = topics.output_retention_ms(external=external)
        kept_bytes = output_bytes(deployment, len(outputs))
    segment = segment_bytes(deployment)
    return {
        "cleanup.policy": "delete",
        "retention.ms": str(kept_ms),
        "retention.bytes": str(kept_bytes),
        "min.insync.replicas": str(deployment.spec.min_in_sync),
        LARGEST: str(MESSAGE_BYTES),
        **({SEGMENT: str(segment)} if segment else {}),
        **own_settings(topic),
    }


class TopicKeeper:
    """Makes and checks topics through one connection."""

    def __init__(self, bootstrap: str) -> None:
        """Connect at the first call."""
        self._settings = {"bootstrap.servers": bootstrap, "client.id": "espha-operator"}
        self._admin = AdminClient(self._settings, logger=_LOG)

    def ensure(
        self,
        deployment: Deployment,
        names: Iterable[str],
        *,
        outputs: Collection[str] = (),
        change: bool = True,
    ) -> TopicFacts:
        """Make the topics that do not exist; say how the others are. Blocks for seconds.

        1. Ask which topics exist.
        2. Make the missing ones, when there are brokers enough.
        3. Compare the settings of the others with the wanted ones. What loses nothing is set: to
           keep records for longer, to ask for more copies, to take larger messages; and of
           outputs what the spec says, for nobody's state needs them. Any other difference is only
           reported.

        Args:
            deployment: whose topics.
            names: of the topics.
            outputs: those of them that engines write for others.
            change: False only looks.
        """
        try:
            return self._ensure(deployment, list(names), outputs, change)
        except KafkaException as error:
            # Seen: a client that had lost every broker never found the new ones at their names.
            self._admin = AdminClient(self._settings, logger=_LOG)
            return TopicFacts(error=f"Kafka at {deployment.bootstrap}: {error.args[0].str()}")

    def _ensure(
        self, deployment: Deployment, names: list[str], outputs: Collection[str], change: bool
    ) -> TopicFacts:
        seen = self._admin.list_topics(timeout=ANSWER)
        missing = [name for name in names if name not in seen.topics]
        there = {name: seen.topics[name] for name in names if name in seen.topics}
        if missing and change and _brokers_suffice(deployment, seen.brokers):
            self._make(deployment, missing, outputs, seen.topics)
        return TopicFacts(
            brokers=len(seen.brokers),
            missing=tuple(missing),
            wrong=(
                *_wrong_shapes(deployment, there),
                *self._wrong_settings(deployment, there, outputs, change),
            ),
            under_replicated=tuple(name for name, topic in there.items() if _lacks_copies(topic)),
        )

    def _make(
        self,
        deployment: Deployment,
        names: list[str],
        outputs: Collection[str],
        there: Container[str],
    ) -> None:
        new = [
            _new(deployment, name, 1, wanted_settings(deployment, name, outputs)) for name in names
        ]
        if not deployment.spec.kafka.external and brokers.TRANSACTION_TOPIC not in there:
            # Before the first transaction, whose beginning would let Kafka make it, led by anybody.
            settings = brokers.transaction_topic(deployment.spec.min_in_sync)
            count = brokers.TRANSACTION_PARTITIONS
            new.insert(0, _new(deployment, brokers.TRANSACTION_TOPIC, count, settings))
        made = self._admin.create_topics(new, operation_timeout=MAKE, request_timeout=MAKE)
        for future in made.values():
            future.result()

    def _wrong_settings(
        self,
        deployment: Deployment,
        topics: dict[str, Any],
        outputs: Collection[str],
        change: bool,
    ) -> list[str]:
        asked = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
        if not asked:
            return []
        answers = self._admin.describe_configs(asked, request_timeout=ANSWER)
        wrong = []
        for resource, future in answers.items():
            name = resource.name
            there = {key: entry.value for key, entry in future.result().items()}
            differ = differences(wanted_settings(deployment, name, outputs), there)
            safe = {
                one.key: one.wanted
                for one in differ
                if change and (_is_safe(one, topics[name]) or (name in outputs and one.keeps))
            }
            why = self._set(name, safe)
            wrong += [f"{name}: {one.text}{why}" for one in differ if why or one.key not in safe]
        return wrong

    def _set(self, topic: str, settings: dict[str, str]) -> str:
        """Set a topic's settings; return why Kafka refuses, in brackets; empty: it does not."""
        if not settings:
            return ""
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in settings.items()
        ]
        change = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        done = self._admin.incremental_alter_configs([change], request_timeout=ANSWER)
        try:
            done[change].result()
        except KafkaException as error:
            return f" (to set it fails: {error.args[0].str()})"
        _LOG.info("topic %s: set %s", topic, settings)
        return ""


class Difference(NamedTuple):
    """A setting of a topic that is not as wanted."""

    key: str
    wanted: str
    there: str

    @property
    def keeps(self) -> bool:
        """Whether it is about how long records stay."""
        return self.key in KEEP

    @property
    def text(self) -> str:
        """The difference as a sentence."""
        return f"{self.key} is {self.there}, the spec says {self.wanted}."


def differences(wanted: Mapping[str, str], there: Mapping[str, str | None]) -> list[Difference]:
    """Return the settings that differ; one that this Kafka does not have cannot differ."""
    found = [
        Difference(key, value, str(there[key]))
        for key, value in wanted.items()
        if there.get(key) not in (None, value)
    ]
    # Larger messages than engines write are as good.
    return [one for one in found if one.key != LARGEST or int(one.there) < int(one.wanted)]


def loses_nothing(one: Difference, in_sync: int) -> bool:
    """Tell whether to set what is wanted keeps all that is there, and stops nobody.

    Args:
        one: the difference.
        in_sync: copies of the topic that are there and up to date.
    """
    if one.keeps:
        return int(one.wanted) < 0 or 0 <= int(one.there) < int(one.wanted)
    if one.key == "min.insync.replicas":
        return int(one.there) < int(one.wanted) <= in_sync
    return one.key in (LARGEST, SEGMENT)


def _is_safe(one: Difference, topic: Any) -> bool:
    in_sync = min((len(part.isrs) for part in topic.partitions.values()), default=0)
    return loses_nothing(one, in_sync)


def _brokers_suffice(deployment: Deployment, there: Collection[int]) -> bool:
    """Tell whether there are brokers enough for the topics; of a managed Kafka, the right ones."""
    if deployment.spec.kafka.external:
        return len(there) >= deployment.spec.replication_factor
    return all(broker in there for broker in _holders(deployment))


def _holders(deployment: Deployment) -> list[int]:
    return brokers.replicas(deployment.spec.kafka.replicas, deployment.spec.replication_factor)


def _new(deployment: Deployment, name: str, partitions: int, settings: dict[str, str]) -> NewTopic:
    """Return a topic to make; one broker of a managed Kafka leads all of them."""
    if deployment.spec.kafka.external:
        return NewTopic(name, partitions, deployment.spec.replication_factor, config=settings)
    held = [_holders(deployment)] * partitions
    return NewTopic(name, partitions, replica_assignment=held, config=settings)


def _wrong_shapes(deployment: Deployment, topics: dict[str, Any]) -> list[str]:
    factor = deployment.spec.replication_factor
    wrong = []
    for name, topic in topics.items():
        if len(topic.partitions) != 1:
            wrong.append(f"{name}: has {len(topic.partitions)} partitions, must have 1.")
        elif len(topic.partitions[0].replicas) != factor:
            copies = len(topic.partitions[0].replicas)
            wrong.append(f"{name}: has {copies} copies, the spec says {factor}.")
    return wrong


def _lacks_copies(topic: Any) -> bool:
    return any(len(one.isrs) < len(one.replicas) for one in topic.partitions.values())
