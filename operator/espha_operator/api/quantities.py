"""Amounts of processor time, memory and storage, as Kubernetes writes them."""

from decimal import Decimal
from typing import Annotated, Any, NamedTuple

from kubernetes.utils.quantity import parse_quantity
from pydantic import AfterValidator, ConfigDict, Field

from espha_operator.api.base import OPERATOR_DEFAULT, ObjectName, Part, Rule, rules

MEBIBYTE = 1 << 20
USUAL_STORAGE = "1Gi"
_LEAST_STORAGE = "100Mi"
_NOT_A_QUANTITY = "This is not an amount; give a number above 0 with a unit, like {}."


def _readable(value: int | str) -> int | str:
    if parse_quantity(value) <= 0:
        raise ValueError("must be greater than 0")
    return value


def amount(value: int | str) -> Decimal:
    """Return a quantity as a number: cores, or bytes."""
    found: Decimal = parse_quantity(value)
    return found


def number(value: str) -> str:
    """Return a CEL expression: a quantity, given as number or text, as a number.

    `string(value)` would do, but the API server reckons with the cost of endless texts then.
    """
    return f"(type({value}) == int ? double({value}) : quantity({value}).asApproximateFloat())"


def is_quantity(value: str) -> str:
    """Return a CEL expression: whether a value is a quantity."""
    return f"(type({value}) == int || isQuantity({value}))"


def _quantity(example: str) -> Any:
    return Field(
        json_schema_extra={
            "x-kubernetes-int-or-string": True,
            "type": None,
            "anyOf": None,
            "maxLength": 20,
            **rules(
                (
                    f"{is_quantity('self')} && {number('self')} > 0.0",
                    _NOT_A_QUANTITY.format(example),
                )
            ),
        }
    )


Cpu = Annotated[int | str, AfterValidator(_readable), _quantity("500m or 2 (cores)")]
Bytes = Annotated[int | str, AfterValidator(_readable), _quantity("512Mi or 4Gi")]


class Usual(NamedTuple):
    """What a container gets where the user says nothing, and the memory that it needs.

    Attributes:
        cpu: requested processor time.
        memory: requested memory.
        limit: limit of the memory.
        least: the smallest limit with which it starts.
        scratch: size of /tmp; more there, and the pod is evicted.
    """

    cpu: str
    memory: str
    limit: str
    least: str
    scratch: str


def at_least(field: str, least: str, sentence: str) -> Rule:
    """Return a rule: a quantity is at least so much, where it is given.

    Args:
        field: path from the object that has the rule; what lies on it may be absent.
        least: the amount.
        sentence: for whoever gives less.
    """
    path = field.split(".")
    steps = [f"self.{'.'.join(path[: depth + 1])}" for depth in range(len(path))]
    absent = " || ".join(f"!has({one})" for one in steps)
    value = steps[-1]
    return (
        f"{absent} || !{is_quantity(value)} || {number(value)} >= {float(amount(least))}",
        sentence,
    )


def _within_limit(resource: str) -> Rule:
    asked, limit = f"self.requests.{resource}", f"self.limits.{resource}"
    given = f"has(self.requests) && has({asked}) && has(self.limits) && has({limit})"
    return (
        f"!({given}) || !{is_quantity(asked)} || !{is_quantity(limit)} || "
        f"{number(asked)} <= {number(limit)}",
        f"requests.{resource} must not be greater than limits.{resource}; lower the request or "
        "raise the limit.",
    )


class Amounts(Part):
    """Amounts of computing resources."""

    cpu: Cpu | None = Field(None, description="Processor time: cores, or thousandths (50m).")
    memory: Bytes | None = Field(None, description="Memory, for example 512Mi.")
    ephemeral_storage: Bytes | None = Field(
        None, description="Space on the node's disk for /tmp and logs, for example 1Gi."
    )


class Resources(Part):
    """What a container asks for, and what it may use at most."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            *(_within_limit(one) for one in ("cpu", "memory", "ephemeralStorage")),
            at_least("limits.cpu", "50m", "limits.cpu must be at least 50m."),
            at_least(
                "limits.ephemeralStorage",
                "100Mi",
                "limits.ephemeralStorage must be at least 100Mi.",
            ),
        )
    )

    requests: Amounts = Field(
        default_factory=Amounts,
        description="What the scheduler reserves.",
        json_schema_extra=OPERATOR_DEFAULT,
    )
    limits: Amounts = Field(
        default_factory=Amounts,
        description="What the container may use.",
        json_schema_extra=OPERATOR_DEFAULT,
    )

    def merged(self, usual: Usual) -> dict[str, dict[str, str]]:
        """Return a container's `resources`: what the user gives, else what is usual.

        Where only one of request and limit is given, the other one makes way for it.
        """
        memory, limit = self.requests.memory, self.limits.memory
        requests = {
            "cpu": _smaller(self.requests.cpu, usual.cpu, self.limits.cpu),
            "memory": _smaller(memory, usual.memory, limit),
            "ephemeral-storage": self.requests.ephemeral_storage,
        }
        limits = {
            "cpu": self.limits.cpu,
            "memory": limit or max(usual.limit, memory or usual.limit, key=amount),
            "ephemeral-storage": self.limits.ephemeral_storage,
        }
        return {"requests": _given(requests), "limits": _given(limits)}

    def memory_limit(self, usual: Usual) -> int:
        """Return the limit of the memory, bytes."""
        return int(amount(self.merged(usual)["limits"]["memory"]))


def _smaller(given: int | str | None, usual: str, limit: int | str | None) -> int | str:
    if given is not None:
        return given
    return usual if limit is None else min(usual, limit, key=amount)


def _given(amounts: dict[str, int | str | None]) -> dict[str, str]:
    return {name: str(value) for name, value in amounts.items() if value is not None}


def _enough(whom: str, usual: Usual) -> dict[str, Any]:
    sentence = f"limits.memory must be at least {usual.least}: no {whom} runs with less."
    return rules(at_least("limits.memory", usual.least, sentence))


def resources_of(whom: str, usual: Usual) -> Any:
    """Return the field with the resources of some containers.

    Args:
        whom: "broker", for the description.
        usual: what they get without it.
    """
    return Field(
        default_factory=Resources,
        description=f"Requests and limits of each {whom}. Default: requests cpu {usual.cpu} and "
        f"memory {usual.memory}, limit memory {usual.limit}.",
        json_schema_extra={**OPERATOR_DEFAULT, **_enough(whom, usual)},
    )


def own_resources_of(whom: str, usual: Usual, others: str) -> Any:
    """Return the field with the resources of one container, instead of those of all of its kind.

    Args:
        whom: "adapter", for the description.
        usual: what they get where nothing is said.
        others: the field with the resources of all of them.
    """
    return Field(
        None,
        description=f"Requests and limits of this {whom}, instead of {others}.",
        json_schema_extra=_enough(whom, usual),
    )


class Storage(Part):
    """A volume for each server."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            at_least("size", _LEAST_STORAGE, f"size must be at least {_LEAST_STORAGE}.")
        )
    )

    size: Bytes = Field(
        USUAL_STORAGE,
        description="Size of each server's volume.",
        json_schema_extra=OPERATOR_DEFAULT,
    )
    storage_class_name: ObjectName | None = Field(
        None, description="Storage class; the cluster's default when absent."
    )


def growing_storage(what: str, field: str = "storage") -> tuple[Rule, Rule]:
    """Return rules: volumes may grow, not shrink; their class stays.

    Args:
        what: whose volumes, for the sentences.
        field: where they stand.
    """

    def size(one: str) -> str:
        there = f"has({one}.{field}) && has({one}.{field}.size)"
        return f"({there} ? {number(f'{one}.{field}.size')} : {float(amount(USUAL_STORAGE))})"

    def kind(one: str) -> str:
        name = f"{one}.{field}.storageClassName"
        return f"(has({one}.{field}) && has({name}) ? {name} : '')"

    return (
        (
            f"{size('self')} >= {size('oldSelf')}",
            f"The storage of {what} cannot shrink; make a new deployment for less.",
        ),
        (
            f"{kind('self')} == {kind('oldSelf')}",
            f"The storage of {what} cannot change its class; make a new deployment.",
        ),
    )
