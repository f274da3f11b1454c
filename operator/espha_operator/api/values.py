"""Values of the Helm chart; `values.schema.json` is made of them."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from espha_operator.api.base import Image, ObjectName, Part
from espha_operator.api.images import ImagePolicy
from espha_operator.api.names import image

PullPolicy = Literal["Always", "IfNotPresent", "Never"]
Registry = Annotated[
    str, StringConstraints(pattern=r"^([A-Za-z0-9][A-Za-z0-9._/:-]*[A-Za-z0-9])?$", max_length=200)
]
# Objects have names of 63 characters, and some of ours end with "-operator-webhook".
ShortName = Annotated[
    str, StringConstraints(pattern=r"^([a-z]([-a-z0-9]*[a-z0-9])?)?$", max_length=40)
]
Anything = dict[str, Any]
# Seconds for which a node may be lost before the operator is started elsewhere: until then the
# Service of the active engine does not follow a take-over. Kubernetes' own time is 300. Where the
# lost node lives, its operator does no harm: it loses its leases.
NODE_LOST_S = 30


class Crds(Part):
    """The CustomResourceDefinition."""

    enabled: bool = Field(True, description="Install and upgrade it with the chart; it is kept.")


class ImageNames(Part):
    """Images, with tag or digest."""

    operator: Image = Field(image("operator"), description="The operator.")
    engine: Image = Field(image("engine"), description="Engines and adapters.")
    kafka: Image = Field(image("kafka"), description="Kafka brokers.")
    zookeeper: Image = Field(image("zookeeper"), description="ZooKeeper servers.")


class ServiceAccount(Part):
    """The operator's identity."""

    create: bool = Field(True, description="Make it; else it is there already.")
    name: Literal[""] | ObjectName = Field("", description="Its name; the release's when empty.")
    annotations: dict[str, str] = Field(default_factory=dict, description="Its annotations.")


class Rbac(Part):
    """What the operator may do."""

    create: bool = Field(True, description="Make the roles and bind the service account to them.")
    aggregate: bool = Field(
        True,
        description="Let those who may view, edit or administrate a namespace do so with its "
        "deployments.",
    )


class Webhook(Part):
    """The webhook that checks models when they are applied."""

    enabled: bool = Field(
        False,
        description="Serve it; the API server must reach the operator's pod on port 9443. "
        "Whatever cannot be checked is let through.",
    )
    timeout_seconds: int = Field(
        5, ge=1, le=30, description="Seconds that the API server waits for it."
    )


class Metrics(Part):
    """Metrics of the operator and of deployments, for Prometheus."""

    enabled: bool = Field(True, description="Serve them on the pod's port 9090, at /metrics.")


class DisruptionBudget(Part):
    """Whether the operator's pod may be evicted."""

    enabled: bool = Field(False, description="Make a PodDisruptionBudget.")
    max_unavailable: int = Field(
        1, ge=0, le=1, description="Pods that may be away; 0 makes drains wait for you."
    )


class Values(Part):
    """Values of the chart."""

    name_override: ShortName = Field(
        "", description="Stands for the release's name in the names of objects."
    )
    fullname_override: ShortName = Field(
        "", description="The whole name of the operator's objects."
    )
    crds: Crds = Field(default_factory=Crds, description="The CustomResourceDefinition.")
    image_registry: Registry = Field(
        "", description="Registry, and path in it, before all images (REGISTRY/espha/operator:TAG)."
    )
    images: ImageNames = Field(default_factory=ImageNames, description="Images.")
    image_pull_policy: PullPolicy = Field(
        "IfNotPresent", description="When images are pulled, also those of deployments."
    )
    image_pull_secrets: list[dict[Literal["name"], str]] = Field(
        default_factory=list,
        description="Secrets for the registry: - name: NAME. Pods of deployments name them too; "
        "they must be in their namespaces then.",
    )
    image_policy: ImagePolicy = Field(
        "OnOperatorUpgrade",
        description="What deployments without spec.imagePolicy do when the operator is upgraded: "
        "take its images (OnOperatorUpgrade), or keep theirs (Manual).",
    )
    rollout_delay: int = Field(
        30,
        ge=0,
        le=86_400,
        description="Seconds between the roll-outs of two deployments when the operator is "
        "upgraded; 0 lets all roll at once.",
    )
    watch_namespaces: list[ObjectName] = Field(
        default_factory=list,
        description="Namespaces with deployments; all when empty.",
    )
    webhook: Webhook = Field(
        default_factory=Webhook, description="The webhook that checks models when they are applied."
    )
    metrics: Metrics = Field(
        default_factory=Metrics,
        description="Metrics of the operator and of deployments, for Prometheus.",
    )
    service_account: ServiceAccount = Field(
        default_factory=ServiceAccount, description="The operator's identity."
    )
    rbac: Rbac = Field(default_factory=Rbac, description="What the operator may do.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="What the operator logs."
    )
    extra_env: list[Anything] = Field(
        default_factory=list, description="Further environment of the operator: - name: NAME …"
    )
    pod_annotations: dict[str, str] = Field(
        default_factory=dict, description="Annotations of the operator's pod."
    )
    pod_labels: dict[str, str] = Field(
        default_factory=dict, description="Further labels of the operator's pod."
    )
    pod_security_context: Anything = Field(
        default_factory=lambda: {
            "runAsNonRoot": True,
            "runAsUser": 10001,
            "runAsGroup": 10001,
            "fsGroup": 10001,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        description="Security context of the operator's pod.",
    )
    resources: Anything = Field(
        default_factory=lambda: {
            "requests": {"cpu": "20m", "memory": "128Mi"},
            "limits": {"memory": "512Mi"},
        },
        description="Requests and limits of the operator.",
    )
    node_selector: dict[str, str] = Field(
        default_factory=dict, description="Labels of nodes that may run the operator."
    )
    tolerations: list[Anything] = Field(
        default_factory=lambda: [
            {
                "key": f"node.kubernetes.io/{taint}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": NODE_LOST_S,
            }
            for taint in ("unreachable", "not-ready")
        ],
        description="Taints that the operator tolerates. A list of your own replaces this one; "
        "where it lacks these two, the operator leaves a lost node after 300 s, not "
        f"{NODE_LOST_S}.",
    )
    affinity: Anything = Field(
        default_factory=dict, description="Nodes and pods that the operator's pod is to be near."
    )
    topology_spread_constraints: list[Anything] = Field(
        default_factory=list, description="How operators are spread over nodes and zones."
    )
    priority_class_name: Literal[""] | ObjectName = Field(
        "", description="Priority class of the operator's pod."
    )
    pod_disruption_budget: DisruptionBudget = Field(
        default_factory=DisruptionBudget, description="Whether the operator's pod may be evicted."
    )
    # Helm gives every chart these two as a part of another chart.
    enabled: bool = Field(
        True, description="For the condition of a chart that this one is a part of; not read here."
    )
    global_: Anything = Field(
        default_factory=dict, alias="global", description="Helm's values for all charts."
    )
