"""The desired state: `spec`."""

from typing import Annotated

from pydantic import ConfigDict, Field

from espha.protocol.settings import HEAP_MIB
from espha_operator.api.adapters import Adapters
from espha_operator.api.base import OPERATOR_DEFAULT, Image, KeyName, ObjectName, Part, rules, text
from espha_operator.api.images import ImagePolicy
from espha_operator.api.jvm import heap_field, heap_rules
from espha_operator.api.pods import PodTemplate, PullPolicy, PullSecrets, pod_field
from espha_operator.api.quantities import (
    Bytes,
    Resources,
    Storage,
    Usual,
    growing_storage,
    resources_of,
)
from espha_operator.api.servers import Kafka, PvcPolicy, Topics, ZooKeeper

# `kubectl apply` keeps what it applied in an annotation as well. All annotations together may have
# 256 KiB, and there < and > take six bytes each, other characters as many as in UTF-8.
INLINE_LIMIT = 120_000
ForcedModel = Annotated[
    str,
    text(
        "^[0-9a-f]{12,64}@[0-9]{1,18}$",
        "Give DIGEST@SEQUENCE: 12 or more digits of the model's digest, and an order record.",
        83,
    ),
]
USUAL_ENGINE = Usual("100m", "768Mi", "1536Mi", least="1Gi", scratch="2Gi")


class ConfigMapKey(Part):
    """One key of a ConfigMap."""

    name: ObjectName = Field(description="ConfigMap in the same namespace.")
    key: KeyName = Field("model.xml", description="Key with the model's XML.")


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
        None,
        min_length=1,
        max_length=1 << 20,
        description=f"The model's XML itself, at most {INLINE_LIMIT:,} bytes in UTF-8.",
        json_schema_extra=rules(
            (
                # The size of a text is the number of its characters.
                f"bytes(self).size() <= {INLINE_LIMIT}",
                f"The model has more than {INLINE_LIMIT:,} bytes; put it into a ConfigMap "
                "(kubectl create configmap NAME --from-file=model.xml) and name that in "
                "model.configMap.",
            )
        ),
    )
    config_map: ConfigMapKey | None = Field(
        None, description="A ConfigMap that has the model's XML."
    )


class Snapshots(Part):
    """Snapshots of the engines' state: an engine that starts again goes on behind the newest."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            *growing_storage("snapshot volumes"),
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
        description="Seconds between two snapshots. The last engine in the queue writes them, so "
        "the active one does only where it is alone.",
    )
    retain: int = Field(3, ge=1, le=100, description="Number of snapshots that each engine keeps.")


class Engines(Part):
    """The engines that run the model; exactly one of them publishes."""

    model_config = ConfigDict(json_schema_extra=rules(*heap_rules(USUAL_ENGINE, f"{HEAP_MIB}Mi")))

    replicas: int = Field(3, ge=1, le=9, description="Number of engines.")
    image: Image | None = Field(
        None, description="Image of the engines; the operator's when absent."
    )
    resources: Resources = resources_of("engine", USUAL_ENGINE)
    heap: Bytes | None = heap_field(
        "The state is not in it, but in the memory beside it. A third of that limit, from 512Mi to "
        "2Gi,"
    )
    pod: PodTemplate | None = pod_field("the engines")
    snapshots: Snapshots = Field(
        default_factory=Snapshots, description="Snapshots of the engines' state."
    )
    force_model: ForcedModel | None = Field(
        None,
        description="DIGEST@SEQUENCE: spec.model, when its digest begins so, may lead behind this "
        "order record, with empty state, although the model of the order log leads. For a model "
        "that cannot commit anything any more, and can therefore not let another one begin. It "
        "means nothing as soon as there is another order record.",
    )


_BROKERS = "(has(self.kafka.replicas) ? self.kafka.replicas : 3)"
_COPIES = (
    "(has(self.topics.replicationFactor) ? self.topics.replicationFactor : "
    f"has(self.kafka.external) || {_BROKERS} > 3 ? 3 : {_BROKERS})"
)


class Spec(Part):
    """An event-stream model, run on several engines that stay in sync."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "has(self.kafka.external) || !has(self.topics.replicationFactor) || "
                f"self.topics.replicationFactor <= {_BROKERS}",
                "topics.replicationFactor must not be greater than kafka.replicas: each copy needs "
                "a broker of its own.",
            ),
            (
                "!has(self.topics.minInSyncReplicas) || "
                f"self.topics.minInSyncReplicas <= {_COPIES}",
                "topics.minInSyncReplicas must not be greater than topics.replicationFactor (when "
                "absent: 3, or the number of brokers if that is less); raise that or lower this.",
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
    image_pull_policy: PullPolicy | None = Field(
        None, description="When nodes pull the images; the operator's setting when absent."
    )
    image_pull_secrets: PullSecrets | None = Field(
        None,
        description="Secrets that open the images' registry for all pods; the operator's setting "
        "when absent.",
    )
    image_policy: ImagePolicy | None = Field(
        None,
        description="What happens to the pods when the operator is upgraded. OnOperatorUpgrade: "
        "they take its images, one deployment after the other. Manual: they stay as they are, "
        "until this is changed. The operator's setting when absent.",
    )
    pvc_policy: PvcPolicy = Field(
        "Retain",
        description="What happens to the volumes of Kafka, ZooKeeper, the engines, and input "
        "adapters with `storage` when the deployment is deleted: they are kept, for a deployment "
        "of the same name, or deleted.",
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
