"""The desired state: `spec`."""

from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

from espha_operator.api.adapters import Adapters
from espha_operator.api.base import (
    OPERATOR_DEFAULT,
    Image,
    ObjectName,
    Part,
    Resources,
    Storage,
    rules,
)
from espha_operator.api.servers import Kafka, PvcPolicy, Topics, ZooKeeper, fixed

# kubectl keeps what it applied in an annotation; all of them together may have 256 KiB.
INLINE_LIMIT = 200_000


class ConfigMapKey(Part):
    """One key of a ConfigMap."""

    name: ObjectName = Field(description="ConfigMap in the same namespace.")
    key: Annotated[str, StringConstraints(pattern=r"^[-._a-zA-Z0-9]+$", max_length=253)] = Field(
        "model.xml", description="Key with the model's XML."
    )


class Model(Part):
    """The event-stream model: a SAS Event Stream Processing project."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "has(self.inline) != has(self.configMap)",
                "Give the model either inline or by configMap, exactly one of the two.",
            ),
        )
    )

    inline: str | None = Field(
        None, min_length=1, max_length=INLINE_LIMIT, description="The model's XML itself."
    )
    config_map: ConfigMapKey | None = Field(
        None, description="A ConfigMap that has the model's XML."
    )


class Snapshots(Part):
    """Snapshots of the engines' state: an engine that starts again goes on behind the newest."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            fixed("storage", "The storage of snapshots cannot change; make a new deployment.")
        )
    )

    storage: Storage = Field(
        default_factory=Storage,
        description="Volume of each engine.",
        json_schema_extra=OPERATOR_DEFAULT,
    )
    interval: int = Field(
        60,
        ge=1,
        le=86_400,
        description="Seconds between two snapshots of a standby; the active engine makes one in "
        "ten times as long.",
    )
    retain: int = Field(3, ge=1, le=100, description="Number of snapshots that each engine keeps.")


class Engines(Part):
    """The engines that run the model; exactly one of them publishes."""

    replicas: int = Field(3, ge=1, le=9, description="Number of engines.")
    image: Image | None = Field(
        None, description="Image of the engines; the operator's when absent."
    )
    resources: Resources = Field(
        default_factory=Resources,
        description="Requests and limits of each engine.",
        json_schema_extra=OPERATOR_DEFAULT,
    )
    snapshots: Snapshots = Field(
        default_factory=Snapshots, description="Snapshots of the engines' state."
    )


def _at_most_brokers(field: str) -> str:
    brokers = "(has(self.kafka.replicas) ? self.kafka.replicas : 3)"
    return (
        f"has(self.kafka.external) || !has(self.topics.{field}) || self.topics.{field} <= {brokers}"
    )


class Spec(Part):
    """An event-stream model, run on several engines that stay in sync."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                _at_most_brokers("replicationFactor"),
                "topics.replicationFactor must not be greater than kafka.replicas: each copy needs "
                "a broker of its own.",
            ),
            (
                _at_most_brokers("minInSyncReplicas"),
                "topics.minInSyncReplicas must not be greater than kafka.replicas.",
            ),
        )
    )

    model: Model = Field(description="The model.")
    engines: Engines = Field(default_factory=Engines, description="The engines.")
    zookeeper: ZooKeeper = Field(
        default_factory=ZooKeeper, description="ZooKeeper, which elects the active engine."
    )
    kafka: Kafka = Field(default_factory=Kafka, description="Kafka, which carries the events.")
    topics: Topics = Field(default_factory=Topics, description="The topics.")
    adapters: Adapters = Field(
        default_factory=Adapters, description="What brings events in and results out."
    )
    pvc_policy: PvcPolicy = Field(
        "Delete",
        description="What happens to the volumes of Kafka, ZooKeeper and the engines when the "
        "deployment is deleted.",
    )

    @property
    def replication_factor(self) -> int:
        """Copies of each topic."""
        if self.topics.replication_factor is not None:
            return self.topics.replication_factor
        return 3 if self.kafka.external else min(3, self.kafka.replicas)

    @property
    def min_in_sync(self) -> int:
        """Copies that must have a record before it counts as written."""
        given = self.topics.min_in_sync_replicas
        wanted = given if given is not None else max(1, self.replication_factor - 1)
        return min(wanted, self.replication_factor)
