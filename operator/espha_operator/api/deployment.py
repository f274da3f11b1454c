"""A deployment with its parsed spec, and the names and addresses made of it."""

import base64
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from espha.connectors.topics import order_log_of, positions_of
from espha_operator.api.adapters import Adapter
from espha_operator.api.images import Images
from espha_operator.api.names import KAFKA_PORT, ZOOKEEPER_PORT
from espha_operator.api.spec import Spec


@dataclass(frozen=True)
class Deployment:
    """One `EspHaDeployment`, parsed.

    Attributes:
        name: of the resource.
        namespace: of the resource.
        uid: of the resource.
        generation: of the spec.
        spec: as far as this version of the operator knows its fields.
        images: the operator's.
        unknown: fields of the spec that it does not know and ignores.
    """

    name: str
    namespace: str
    uid: str
    generation: int
    spec: Spec
    images: Images = field(default_factory=Images)
    unknown: tuple[str, ...] = ()
    rollback: str = ""
    """First digits of an earlier model's digest, which is to run in place of that of the spec."""

    @property
    def root(self) -> str:
        """Root of its znodes."""
        return f"/ESP/{self.namespace}/{self.name}"

    def hosts(self, component: str, replicas: int) -> list[str]:
        """Return DNS names of a StatefulSet's pods; the cluster's domain is added by the search."""
        domain = self.domain(component)
        return [f"{self.name}-{component}-{ordinal}.{domain}" for ordinal in range(replicas)]

    def domain(self, component: str) -> str:
        """Return the DNS name of a component's headless Service."""
        return f"{self.name}-{component}-headless.{self.services}"

    @property
    def brokers(self) -> list[str]:
        """DNS names of the brokers, each that of a Service of its own.

        Its address stays when the pod is made anew. That of a pod changes, and whoever answers for
        DNS may remember the old one for half a minute.
        """
        count = self.spec.kafka.replicas
        return [f"{self.name}-kafka-{broker}.{self.services}" for broker in range(count)]

    @property
    def services(self) -> str:
        """What follows a Service's name in DNS."""
        return f"{self.namespace}.svc"

    @property
    def bootstrap(self) -> str:
        """Kafka bootstrap servers, `host:port,…`."""
        kafka = self.spec.kafka
        if kafka.external:
            return ",".join(kafka.external.bootstrap_servers)
        return ",".join(f"{host}:{KAFKA_PORT}" for host in self.brokers)

    @property
    def zookeeper(self) -> str:
        """ZooKeeper servers, `host:port,…`."""
        keeper = self.spec.zookeeper
        if keeper.external:
            return ",".join(keeper.external.servers)
        hosts = self.hosts("zookeeper", keeper.replicas)
        return ",".join(f"{host}:{ZOOKEEPER_PORT}" for host in hosts)

    @property
    def cluster_id(self) -> str:
        """Kafka's cluster id: always the same for a name, since kept volumes carry it."""
        made = uuid.uuid5(uuid.NAMESPACE_URL, f"espha.dev/{self.namespace}/{self.name}").bytes
        # Without the first bit it cannot start with '-', which a command line takes for an option.
        clean = bytes([made[0] & 0x7F]) + made[1:]
        return base64.urlsafe_b64encode(clean).decode().rstrip("=")


@dataclass(frozen=True)
class ModelVersion:
    """A version of the model that has run, or was to run; what it says never changes.

    Attributes:
        digest: its digest.
        xml: its text. Layout and comments of a later one of the same digest change nothing.
        made: when its ConfigMap was made, as Kubernetes says it.
    """

    digest: str
    xml: str
    made: str = ""


@dataclass(frozen=True)
class ModelFacts:
    """What the operator knows of a valid model."""

    xml: str
    project: str
    digest: str
    prefix: str
    topics: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    """Windows that an adapter can publish into, `query/window`."""
    outputs: tuple[str, ...] = ()
    """Windows that an adapter can read."""
    input_topics: Mapping[str, str] = field(default_factory=dict)
    """Input topic of each source window."""
    output_topics: tuple[str, ...] = ()
    """Topics that engines write for others: outputs and dead letters."""
    adapters: tuple[Adapter, ...] = ()
    """Those that the model's own connectors become."""
    unfit: tuple[str, ...] = ()
    """A sentence for each connector that should become one, and cannot."""
    not_run: tuple[str, ...] = ()
    """A sentence for each connector that is not run."""
    notes: tuple[str, ...] = ()
    """A sentence for each thing that is otherwise than the model says."""

    @property
    def label(self) -> str:
        """Short name for people: `project@digest`."""
        return f"{self.project}@{self.digest[:4]}"

    @property
    def order_log(self) -> str:
        """Topic with the order records."""
        return order_log_of(self.prefix)

    @property
    def positions(self) -> str:
        """Topic where input adapters keep how far they are."""
        return positions_of(self.prefix)

    def windows(self, adapter: Adapter) -> tuple[str, ...]:
        """Return the windows that an adapter can be connected with."""
        return self.inputs if adapter.type.direction == "pub" else self.outputs
