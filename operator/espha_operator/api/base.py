"""What every part of the resource has in common."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel


class Part(BaseModel):
    """A part of the resource: camelCase outside, no unknown fields, read only."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True
    )


def rules(*pairs: tuple[str, str]) -> dict[str, Any]:
    """Return schema extras for CEL rules of the API server, given as (expression, message)."""
    return {"x-kubernetes-validations": [{"rule": rule, "message": text} for rule, text in pairs]}


# A default that only the operator fills in. The API server must not: a rule has to see whether
# the user gave the field ("managed or external, not both").
OPERATOR_DEFAULT: dict[str, Any] = {"x-operator-default": True}
INT_OR_STRING: dict[str, Any] = {"x-kubernetes-int-or-string": True, "type": None, "anyOf": None}

Image = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]*$", max_length=255)
]
Address = Annotated[
    str,
    StringConstraints(
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?:[0-9]{1,5}$", max_length=260
    ),
]
ObjectName = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$", max_length=253)
]
Quantity = Annotated[
    int | str,
    Field(
        json_schema_extra={
            **INT_OR_STRING,
            "pattern": r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$",
        }
    ),
]


class Amounts(Part):
    """Amounts of computing resources."""

    cpu: Quantity | None = Field(None, description="Processor time: cores, or thousandths (50m).")
    memory: Quantity | None = Field(None, description="Memory, for example 512Mi.")


class Resources(Part):
    """What a container asks for, and what it may use at most."""

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

    def merged(self, cpu: str, memory: str, limit: str) -> dict[str, dict[str, str]]:
        """Return a container's `resources`, with the given amounts where the user gives none."""
        requests = {"cpu": self.requests.cpu or cpu, "memory": self.requests.memory or memory}
        limits = {"cpu": self.limits.cpu, "memory": self.limits.memory or limit}
        return {
            "requests": {key: str(value) for key, value in requests.items()},
            "limits": {key: str(value) for key, value in limits.items() if value is not None},
        }


class Storage(Part):
    """A volume for each server."""

    size: Quantity = Field(
        "1Gi", description="Size of each server's volume.", json_schema_extra=OPERATOR_DEFAULT
    )
    storage_class_name: ObjectName | None = Field(
        None, description="Storage class; the cluster's default when absent."
    )
