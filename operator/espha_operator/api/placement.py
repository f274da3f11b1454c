"""Where pods may run: Kubernetes' own words for tolerations, affinity and spreading.

They are typed, so that the API server refuses what it would refuse in a pod, and at once.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from espha_operator.api.base import Part, rules, text

_NAME = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_PREFIX = r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
KEY = f"^{_PREFIX}{_NAME}$"
_KEY = "A label's key is [PREFIX/]NAME, NAME of at most 63 letters, digits, '-', '_' and '.'."
_VALUE = "A label's value has at most 63 letters, digits, '-', '_' and '.', no sign at its ends."

LabelKey = Annotated[
    str,
    text(
        KEY,
        _KEY,
        253,
    ),
]
LabelValue = Annotated[
    str,
    text(
        f"^({_NAME})?$",
        _VALUE,
        63,
    ),
]
Labels = Annotated[
    dict[str, LabelValue],
    Field(
        max_length=16,
        json_schema_extra=rules(
            (f"self.all(key, key.size() <= 253 && key.matches(r'{KEY}'))", _KEY)
        ),
    ),
]


class Toleration(Part):
    """A taint of nodes that pods put up with."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "!has(self.operator) || self.operator != 'Exists' || !has(self.value)",
                "A toleration with operator Exists has no value; leave value out.",
            ),
            (
                "has(self.key) || (has(self.operator) && self.operator == 'Exists')",
                "A toleration without a key tolerates everything; give operator: Exists with it.",
            ),
            (
                "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
                "tolerationSeconds needs effect: NoExecute.",
            ),
        )
    )

    key: LabelKey | None = Field(None, min_length=1, description="Key of the taint.")
    operator: Literal["Exists", "Equal"] | None = Field(None, description="Equal when absent.")
    value: LabelValue | None = Field(None, description="Value of the taint.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        None, description="Effect of the taint; every one when absent."
    )
    toleration_seconds: int | None = Field(
        None, ge=0, le=1 << 31, description="How long a taint of effect NoExecute is tolerated, s."
    )


_NEEDS_VALUES = (
    "!(self.operator in ['In', 'NotIn']) || (has(self.values) && self.values.size() > 0)",
    "Operators In and NotIn need values.",
)
_HAS_NO_VALUES = (
    "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || "
    "self.values.size() == 0",
    "Operators Exists and DoesNotExist must have no values.",
)
_ONE_NUMBER = (
    "!(self.operator in ['Gt', 'Lt']) || (has(self.values) && self.values.size() == 1 && "
    "self.values[0].matches('^[0-9]{1,18}$'))",
    "Operators Gt and Lt need exactly one value, a whole number.",
)


class NodeRequirement(Part):
    """Something that a label of a node must be."""

    model_config = ConfigDict(json_schema_extra=rules(_NEEDS_VALUES, _HAS_NO_VALUES, _ONE_NUMBER))

    key: LabelKey = Field(min_length=1, description="Key of the label.")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"] = Field(
        description="How to compare."
    )
    values: list[LabelValue] | None = Field(None, max_length=16, description="Values to compare.")


class NodeTerm(Part):
    """Labels of a node."""

    match_expressions: list[NodeRequirement] = Field(
        min_length=1, max_length=8, description="What its labels must be, all of it."
    )


class NodeTerms(Part):
    """Nodes that may run a pod."""

    node_selector_terms: list[NodeTerm] = Field(
        min_length=1, max_length=8, description="A node must fulfil one of them."
    )


class PreferredNode(Part):
    """Nodes that should rather run a pod."""

    weight: int = Field(ge=1, le=100, description="How much.")
    preference: NodeTerm = Field(description="Which nodes.")


class NodeAffinity(Part):
    """Nodes by their labels."""

    required_during_scheduling_ignored_during_execution: NodeTerms | None = Field(
        None, description="Nodes that may run the pods."
    )
    preferred_during_scheduling_ignored_during_execution: list[PreferredNode] | None = Field(
        None, max_length=8, description="Nodes that should rather run them."
    )


class LabelSelector(Part):
    """Pods by their labels."""

    match_labels: Labels = Field(min_length=1, description="Labels with these values, all of them.")


class PodTerm(Part):
    """Pods in the same namespace, and how near is near."""

    label_selector: LabelSelector = Field(description="Which pods.")
    topology_key: LabelKey = Field(
        min_length=1, description="Label of nodes; those with the same value are near each other."
    )


class PreferredPods(Part):
    """Pods that should be near, or far."""

    weight: int = Field(ge=1, le=100, description="How much.")
    pod_affinity_term: PodTerm = Field(description="Which pods, and how near.")


class PodAffinity(Part):
    """Other pods."""

    required_during_scheduling_ignored_during_execution: list[PodTerm] | None = Field(
        None, max_length=8, description="What must be."
    )
    preferred_during_scheduling_ignored_during_execution: list[PreferredPods] | None = Field(
        None, max_length=8, description="What should be."
    )


class Affinity(Part):
    """Where pods may run, beside the nodes' labels in nodeSelector."""

    node_affinity: NodeAffinity | None = Field(None, description="Nodes by their labels.")
    pod_affinity: PodAffinity | None = Field(None, description="Near other pods.")
    pod_anti_affinity: PodAffinity | None = Field(
        None,
        description="Far from other pods. That the pods of a component rather run on different "
        "nodes is the default, and stays beside it.",
    )


class Spread(Part):
    """How a component's pods spread; which pods these are the operator fills in."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "!has(self.minDomains) || self.whenUnsatisfiable == 'DoNotSchedule'",
                "minDomains needs whenUnsatisfiable: DoNotSchedule.",
            )
        )
    )

    topology_key: LabelKey = Field(
        min_length=1, description="Label of nodes, for example topology.kubernetes.io/zone."
    )
    max_skew: int = Field(
        1, ge=1, le=9, description="How many pods more than the least one a place may have."
    )
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = Field(
        "DoNotSchedule", description="Whether a pod waits or runs where that is not possible."
    )
    min_domains: int | None = Field(
        None, ge=1, le=100, description="How many places there must be at least."
    )
