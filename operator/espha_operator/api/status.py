"""The observed state: `status`."""

from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, ValidationError

from espha_operator.api.base import Part

Phase = Literal[
    "Invalid",
    "Paused",
    "Starting",
    "Updating",
    "Ready",
    "Recovering",
    "Degraded",
    "Unavailable",
]


class Condition(Part):
    """One thing that is true, false or unknown about a deployment."""

    model_config = ConfigDict(extra="ignore")

    type: str = Field(description="What the condition is about.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds.")
    reason: str = Field(description="Why, in one CamelCase word.")
    message: str = Field(description="Why, in a sentence.")
    last_transition_time: str = Field(
        description="When status last changed.", json_schema_extra={"format": "date-time"}
    )
    observed_generation: int = Field(description="Generation of the spec that this is about.")


class UsedImages(Part):
    """What the pods of a deployment are made of."""

    model_config = ConfigDict(extra="ignore")

    engine: str = Field(description="Image of engines and adapters whose spec names none.")
    kafka: str = Field(description="Image of brokers whose spec names none.")
    zookeeper: str = Field(description="Image of ZooKeeper servers whose spec names none.")
    build: str = Field("", description="Fingerprint of the operator's templates.")
    inputs: str = Field("", description="Fingerprint of what was asked for then.")


class AdapterStatus(Part):
    """How far an adapter is; what is counted was, as a rule, counted some seconds ago."""

    model_config = ConfigDict(extra="ignore")

    name: str = Field(description="Adapter: input- or output-, and its name.")
    active: str | None = Field(None, description="Pod that publishes or writes.")
    standby: list[str] | None = Field(None, description="Pods that can take over.")
    rows: int | None = Field(
        None, description="Rows published or written since the active pod has become so."
    )
    rejected: int | None = Field(
        None,
        description="What was set aside since then: inputs that are no row, or records that "
        "the target cannot take.",
    )
    position: str | None = Field(None, description="How far it is.")
    lag: int | None = Field(
        None,
        description="What is there and not done: of an input behind the end of its source, of an "
        "output behind the end of its topic. Absent where it is not known.",
    )
    lag_unit: str | None = Field(None, description="What lag counts: bytes or records.")
    last_error: str | None = Field(None, description="What was wrong the last time.")
    last_error_time: str | None = Field(
        None,
        description="When that was said first.",
        json_schema_extra={"format": "date-time"},
    )


class Status(Part):
    """What the operator sees."""

    model_config = ConfigDict(extra="ignore")

    phase: Phase | None = Field(
        None,
        description="Invalid: the model or the spec is wrong. Paused: the operator changes "
        "nothing. Starting: no engine is active yet. Updating: an engine is active, and pods are "
        "brought up to date. Ready: all is well. Recovering: an engine is active, and others come "
        "back. Degraded: an engine is active, but something is missing. Unavailable: no engine is "
        "active any more.",
    )
    observed_generation: int | None = Field(None, description="Generation of the spec seen last.")
    active: str | None = Field(None, description="Pod of the active engine.")
    engines: str | None = Field(None, description="Engines in sync, of those wanted.")
    kafka: str | None = Field(None, description="Brokers ready, of those wanted; or external.")
    zookeeper: str | None = Field(None, description="Servers ready, of those wanted; or external.")
    model: str | None = Field(None, description="The model that leads: project@digest.")
    failovers: int | None = Field(None, description="How often another engine has taken over.")
    engine_replicas: int | None = Field(None, description="Engine pods, for the scale subresource.")
    selector: str | None = Field(
        None, description="Label selector of the engine pods, for the scale subresource."
    )
    prefix: str | None = Field(None, description="First part of all topic names.")
    images: UsedImages | None = Field(
        None, description="What the pods are made of; another operator may offer other images."
    )
    adapters: list[AdapterStatus] | None = Field(
        None,
        description="How far the adapters are; written twice a minute at most, unless a pod "
        "becomes active or an error comes.",
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
    )
    conditions: list[Condition] = Field(
        default_factory=list,
        description="What holds and what not.",
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    )

    @classmethod
    def read(cls, raw: object) -> Self:
        """Return a status that any version of the operator has written; never raises.

        What this version does not know, or cannot read, is left out: it is written anew.
        """
        known = dict(raw) if isinstance(raw, dict) else {}
        listed = known.pop("conditions", None)
        told = listed if isinstance(listed, list) else []
        conditions = [one for one in map(_condition, told) if one is not None]
        try:
            status = cls.model_validate(known)
        except ValidationError as error:
            wrong = {one["loc"][0] for one in error.errors()}
            status = cls.model_validate({key: known[key] for key in known if key not in wrong})
        return status.model_copy(update={"conditions": conditions})

    def condition(self, name: str) -> Condition | None:
        """Return the condition of a type; None when there is none."""
        return next((one for one in self.conditions if one.type == name), None)


def _condition(raw: Any) -> Condition | None:
    try:
        return Condition.model_validate(raw)
    except ValidationError:
        return None
