"""The observed state: `status`."""

from typing import Literal

from pydantic import Field

from espha_operator.api.base import Part

Phase = Literal["Invalid", "Starting", "Ready", "Degraded"]


class Condition(Part):
    """One thing that is true, false or unknown about a deployment."""

    type: str = Field(description="What the condition is about.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds.")
    reason: str = Field(description="Why, in one CamelCase word.")
    message: str = Field(description="Why, in a sentence.")
    last_transition_time: str = Field(
        description="When status last changed.", json_schema_extra={"format": "date-time"}
    )
    observed_generation: int = Field(description="Generation of the spec that this is about.")


class Status(Part):
    """What the operator sees."""

    phase: Phase | None = Field(
        None,
        description="Invalid: the model or the spec is wrong. Starting: not yet complete. Ready: "
        "all is well. Degraded: an engine is active, but something is missing.",
    )
    observed_generation: int | None = Field(None, description="Generation of the spec seen last.")
    active: str | None = Field(None, description="Pod of the active engine.")
    engines: str | None = Field(None, description="Engines in sync, of those wanted.")
    kafka: str | None = Field(None, description="Brokers ready, of those wanted; or external.")
    zookeeper: str | None = Field(None, description="Servers ready, of those wanted; or external.")
    model: str | None = Field(None, description="The model: project@digest.")
    failovers: int | None = Field(None, description="How often another engine has taken over.")
    engine_replicas: int | None = Field(None, description="Engine pods, for the scale subresource.")
    selector: str | None = Field(
        None, description="Label selector of the engine pods, for the scale subresource."
    )
    prefix: str | None = Field(None, description="First part of all topic names.")
    conditions: list[Condition] = Field(
        default_factory=list, description="What holds and what not."
    )
