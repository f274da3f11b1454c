"""What users add to the pods of a component; what makes pods restricted is not among it."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from espha_operator.api.base import KeyName, ObjectName, Part, rules, text
from espha_operator.api.placement import KEY, Affinity, Labels, Spread, Toleration

PullPolicy = Literal["Always", "IfNotPresent", "Never"]

# What the operator writes itself, and what would undo the restrictions of a pod.
RESERVED_LABELS = (
    r"^(app\.kubernetes\.io/(name|instance|component|managed-by)|espha\.dev/.*|"
    r"controller-revision-hash|statefulset\.kubernetes\.io/.*|apps\.kubernetes\.io/.*)$"
)
RESERVED_ANNOTATIONS = r"^(espha\.dev/.*|([a-z.]*\.)?security\.(alpha|beta)\.kubernetes\.io/.*)$"
RESERVED_VARIABLES = r"^(ESPHA_.*|KAFKA_.*|ZK_.*|SPARK_.*|PYSPARK_.*|HOSTNAME)$"


def by_key(*keys: str) -> dict[str, Any]:
    """Return schema extras for a list whose entries are told apart by some of their fields."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


class PullSecret(Part):
    """A Secret that opens a registry."""

    name: ObjectName = Field(description="Secret in the same namespace.")


PullSecrets = Annotated[list[PullSecret], Field(max_length=8, json_schema_extra=by_key("name"))]


class KeyOf(Part):
    """A key of a Secret or ConfigMap in the same namespace."""

    name: ObjectName = Field(description="Secret or ConfigMap.")
    key: KeyName = Field(description="Its key.")
    optional: bool = Field(False, description="Whether pods start without it.")


class ValueFrom(Part):
    """Where a variable's value comes from."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "has(self.secretKeyRef) != has(self.configMapKeyRef)",
                "Give exactly one of secretKeyRef and configMapKeyRef.",
            )
        )
    )

    secret_key_ref: KeyOf | None = Field(None, description="A key of a Secret.")
    config_map_key_ref: KeyOf | None = Field(None, description="A key of a ConfigMap.")


class Variable(Part):
    """A variable of the container's environment."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "!(has(self.value) && has(self.valueFrom))",
                "Give a variable either value or valueFrom, not both.",
            ),
            (
                f"!self.name.matches(r'{RESERVED_VARIABLES}')",
                "Variables ESPHA_*, KAFKA_*, ZK_*, SPARK_*, PYSPARK_* and HOSTNAME belong to the "
                "operator; choose another name.",
            ),
        )
    )

    name: Annotated[
        str,
        text(
            "^[A-Za-z_][A-Za-z0-9_]*$",
            "This is not the name of a variable; give letters, digits and '_', no digit first.",
            100,
        ),
    ] = Field(description="Name of the variable.")
    value: str | None = Field(None, max_length=4096, description="Its value.")
    value_from: ValueFrom | None = Field(None, description="Where its value comes from.")


def _without(reserved: str, what: str) -> dict[str, Any]:
    sentence = f"{what}; choose other keys."
    return rules((f"self.all(key, !key.matches(r'{reserved}'))", sentence))


class Placement(Part):
    """On which nodes pods may run, and before which others."""

    node_selector: Labels | None = Field(None, description="Labels that nodes must have.")
    tolerations: list[Toleration] | None = Field(
        None, max_length=16, description="Taints of nodes that the pods put up with."
    )
    priority_class_name: ObjectName | None = Field(None, description="PriorityClass of the pods.")


class PodTemplate(Placement):
    """What the pods of a component have beside what the operator gives them."""

    labels: Labels | None = Field(
        None,
        description="Further labels.",
        json_schema_extra=_without(
            RESERVED_LABELS,
            "Labels app.kubernetes.io/name, instance, component and managed-by, espha.dev/* and "
            "those of StatefulSets belong to the operator",
        ),
    )
    annotations: dict[str, Annotated[str, Field(max_length=2048)]] | None = Field(
        None,
        max_length=16,
        description="Further annotations.",
        json_schema_extra=rules(
            (
                f"self.all(key, key.size() <= 253 && key.matches(r'{KEY}'))",
                "An annotation's key is [PREFIX/]NAME, NAME of at most 63 letters, digits, '-', "
                "'_' and '.'.",
            ),
            (
                f"self.all(key, !key.matches(r'{RESERVED_ANNOTATIONS}'))",
                "Annotations espha.dev/* and those that turn a pod's protection off belong to the "
                "operator; choose other keys.",
            ),
        ),
    )
    affinity: Affinity | None = Field(None, description="Where the pods may run.")
    topology_spread_constraints: list[Spread] | None = Field(
        None,
        max_length=4,
        description="How the pods spread over nodes and zones. One for the zone replaces the "
        "default, which rather spreads pods over zones.",
        json_schema_extra=by_key("topologyKey"),
    )
    service_account_name: ObjectName | None = Field(
        None,
        description="ServiceAccount of the pods; its token is not mounted. The namespace's default "
        "when absent.",
    )
    env: list[Variable] | None = Field(
        None,
        max_length=32,
        description="Further variables of the container's environment.",
        json_schema_extra=by_key("name"),
    )
    image_pull_secrets: PullSecrets | None = Field(
        None, description="Secrets that open the image's registry, beside spec.imagePullSecrets."
    )


def pod_field(what: str) -> Any:
    """Return the field with what users add to some pods."""
    # Absent, not an empty object, where nobody gives it: external servers have no pods.
    return Field(None, description=f"What the pods of {what} have besides.")
