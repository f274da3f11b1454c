"""Values of the Helm chart; `values.schema.json` is made of them."""

from typing import Any, Literal

from pydantic import Field

from espha_operator.api.base import Image, ObjectName, Part
from espha_operator.api.names import image


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

    name: Literal[""] | ObjectName = Field("", description="Its name; the release's when empty.")


class Values(Part):
    """Values of the chart."""

    crds: Crds = Field(default_factory=Crds, description="The CustomResourceDefinition.")
    images: ImageNames = Field(default_factory=ImageNames, description="Images.")
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field(
        "IfNotPresent", description="When the operator's image is pulled."
    )
    image_pull_secrets: list[dict[Literal["name"], str]] = Field(
        default_factory=list, description="Secrets for the operator's image: - name: NAME."
    )
    service_account: ServiceAccount = Field(
        default_factory=ServiceAccount, description="The operator's identity."
    )
    resources: dict[str, Any] = Field(
        default_factory=lambda: {
            "requests": {"cpu": "20m", "memory": "128Mi"},
            "limits": {"memory": "512Mi"},
        },
        description="Requests and limits of the operator.",
    )
    node_selector: dict[str, str] = Field(
        default_factory=dict, description="Labels of nodes that may run the operator."
    )
    tolerations: list[dict[str, Any]] = Field(
        default_factory=list, description="Taints that the operator tolerates."
    )
    # Helm gives every chart these two, also as a part of another chart.
    global_: dict[str, Any] = Field(
        default_factory=dict, alias="global", description="Helm's values for all charts."
    )
