"""ZooKeeper and Kafka: managed by the operator, or external."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from espha_operator.api.base import OPERATOR_DEFAULT, Address, Image, Part, Rule, rules, text
from espha_operator.api.broker_config import BrokerConfig
from espha_operator.api.jvm import JvmOptions, heap_field, heap_rules
from espha_operator.api.pods import PodTemplate, pod_field
from espha_operator.api.quantities import (
    Bytes,
    Resources,
    Storage,
    Usual,
    growing_storage,
    resources_of,
)

USUAL_ZOOKEEPER = Usual("50m", "192Mi", "320Mi", least="192Mi", scratch="256Mi")
USUAL_KAFKA = Usual("100m", "512Mi", "900Mi", least="512Mi", scratch="512Mi")
# ZooKeeper's own limits of a session, in ticks; `zoo.cfg` gets the same ones.
MIN_SESSION_TICKS, MAX_SESSION_TICKS = 2, 20
USUAL_SESSION_TICKS = 4
USUAL_TICK_MS = 200
LEAST_SESSION_MS = 200
USUAL_EXTERNAL_SESSION_MS = 800
USUAL_FAILURE_MS = 500
# Retention: what engines need, which their snapshots tell.
SNAPSHOTS = "snapshots"
# How long outputs stay on a Kafka whose volumes the operator does not know.
EXTERNAL_OUTPUTS = "7d"
_TICK = f"(has(self.tickTime) ? self.tickTime : {USUAL_TICK_MS})"


def _managed_or_external(
    what: str, *pairs: Rule, both: tuple[str, ...] = ()
) -> Callable[[dict[str, Any]], None]:
    """Return what adds the rules of a server to its schema.

    Args:
        what: the server's name.
        pairs: further rules.
        both: fields that external servers may have, too; all others are for managed ones.
    """

    def add(schema: dict[str, Any]) -> None:
        managed = [name for name in schema["properties"] if name not in ("external", *both)]
        schema.update(rules(_either(managed, what), *pairs))

    return add


def _either(fields: list[str], what: str) -> Rule:
    given = " || ".join(f"has(self.{field})" for field in fields)
    listed = ", ".join(fields)
    return (
        f"!has(self.external) || !({given})",
        f"Give external servers or settings of a managed {what} ({listed}), not both.",
    )


def _fixed_number(field: str, default: int, message: str) -> Rule:
    # To write down the default later is no change.
    before, after = (
        f"(has({one}.{field}) ? {one}.{field} : {default})" for one in ("oldSelf", "self")
    )
    return f"{after} == {before}", message


def fixed(field: str, message: str) -> Rule:
    """Return a rule: the field stays as it was given, or absent."""
    same = f"has(self.{field}) == has(oldSelf.{field})"
    return f"{same} && (!has(self.{field}) || self.{field} == oldSelf.{field})", message


def _kept_kind(what: str) -> Rule:
    return (
        "has(self.external) == has(oldSelf.external)",
        f"A deployment cannot move between a managed and an external {what}; make a new one.",
    )


class ExternalZooKeeper(Part):
    """A ZooKeeper that somebody else runs."""

    servers: list[Address] = Field(
        description="Servers as host:port.", min_length=1, max_length=16, examples=[["zk:2181"]]
    )


class ZooKeeper(Part):
    """ZooKeeper elects the active engine and the active adapters."""

    model_config = ConfigDict(
        json_schema_extra=_managed_or_external(
            "ZooKeeper",
            _kept_kind("ZooKeeper"),
            (
                "!has(self.replicas) || self.replicas in [1, 3, 5]",
                "ZooKeeper needs a majority: replicas must be 1, 3 or 5.",
            ),
            _fixed_number(
                "replicas",
                3,
                "The number of ZooKeeper servers cannot change; make a new deployment.",
            ),
            *growing_storage("ZooKeeper servers"),
            (
                "!has(self.sessionTimeout) || has(self.external) || self.sessionTimeout >= "
                f"{MIN_SESSION_TICKS} * {_TICK}",
                f"sessionTimeout must be at least {MIN_SESSION_TICKS} ticks "
                f"({MIN_SESSION_TICKS} x tickTime).",
            ),
            (
                "!has(self.sessionTimeout) || has(self.external) || self.sessionTimeout <= "
                f"{MAX_SESSION_TICKS} * {_TICK}",
                f"sessionTimeout must be at most {MAX_SESSION_TICKS} ticks "
                f"({MAX_SESSION_TICKS} x tickTime).",
            ),
            (
                f"has(self.external) || has(self.sessionTimeout) || {USUAL_SESSION_TICKS} * "
                f"{_TICK} >= {LEAST_SESSION_MS}",
                f"The session, {USUAL_SESSION_TICKS} ticks, must last at least {LEAST_SESSION_MS} "
                "ms; raise tickTime, or give sessionTimeout.",
            ),
            *heap_rules(USUAL_ZOOKEEPER, "48Mi"),
            both=("sessionTimeout",),
        )
    )

    replicas: int = Field(
        3, description="Number of servers: 1, 3 or 5.", json_schema_extra=OPERATOR_DEFAULT
    )
    tick_time: int = Field(
        USUAL_TICK_MS,
        ge=20,
        le=500,
        description="ZooKeeper's unit of time in milliseconds, at most 500. A dead engine's "
        "session ends after sessionTimeout, which is counted in ticks. Four ticks must be at least "
        f"{LEAST_SESSION_MS} ms, or sessionTimeout be given.",
        json_schema_extra=OPERATOR_DEFAULT,
    )
    session_timeout: int | None = Field(
        None,
        ge=LEAST_SESSION_MS,
        le=60_000,
        description="After how many milliseconds without a sign of life an engine counts as "
        "dead (the end of its process is noticed at once, without this, and silence to the other "
        f"engines after five eighths of it, at least {USUAL_FAILURE_MS} ms). "
        f"{USUAL_SESSION_TICKS} ticks when absent; {USUAL_EXTERNAL_SESSION_MS} with an external "
        "ZooKeeper.",
    )
    image: Image | None = Field(
        None, description="Image of the servers; the operator's when absent."
    )
    storage: Storage = Field(
        default_factory=Storage,
        description="Volume of each server.",
        json_schema_extra=OPERATOR_DEFAULT,
    )
    resources: Resources = resources_of("server", USUAL_ZOOKEEPER)
    heap: Bytes | None = heap_field("30 % of that limit")
    jvm_options: JvmOptions = Field(
        default_factory=list,
        description="Further options of the servers' Java virtual machines.",
        json_schema_extra=OPERATOR_DEFAULT,
    )
    pod: PodTemplate | None = pod_field("ZooKeeper")
    external: ExternalZooKeeper | None = Field(None, description="Use these servers, manage none.")

    @property
    def session_ms(self) -> int:
        """Session timeout in milliseconds."""
        if self.session_timeout is not None:
            return self.session_timeout
        return USUAL_EXTERNAL_SESSION_MS if self.external else USUAL_SESSION_TICKS * self.tick_time

    @property
    def failure_timeout_ms(self) -> int:
        """Silence of a replica that others notice without ZooKeeper, in milliseconds.

        Whoever gives replicas longer sessions, because pauses are usual there, means this, too.
        """
        return max(
            USUAL_FAILURE_MS, self.session_ms * USUAL_FAILURE_MS // USUAL_EXTERNAL_SESSION_MS
        )


class ExternalKafka(Part):
    """A Kafka that somebody else runs."""

    bootstrap_servers: list[Address] = Field(
        description="Brokers as host:port.", min_length=1, max_length=16
    )


class Kafka(Part):
    """Kafka carries the events and the order log."""

    model_config = ConfigDict(
        json_schema_extra=_managed_or_external(
            "Kafka",
            _kept_kind("Kafka"),
            _fixed_number(
                "replicas", 3, "The number of Kafka brokers cannot change; make a new deployment."
            ),
            *growing_storage("Kafka brokers"),
            *heap_rules(USUAL_KAFKA, "128Mi"),
        )
    )

    replicas: int = Field(
        3, ge=1, le=9, description="Number of brokers.", json_schema_extra=OPERATOR_DEFAULT
    )
    image: Image | None = Field(
        None, description="Image of the brokers; the operator's when absent."
    )
    storage: Storage = Field(
        default_factory=Storage,
        description="Volume of each broker.",
        json_schema_extra=OPERATOR_DEFAULT,
    )
    config: BrokerConfig = Field(
        default_factory=dict,
        description="Further broker settings, for example log.segment.bytes; true and false in "
        "quotes.",
    )
    resources: Resources = resources_of("broker", USUAL_KAFKA)
    heap: Bytes | None = heap_field("30 % of that limit")
    jvm_options: JvmOptions = Field(
        default_factory=list,
        description="Further options of the brokers' Java virtual machines.",
        json_schema_extra=OPERATOR_DEFAULT,
    )
    pod: PodTemplate | None = pod_field("Kafka")
    external: ExternalKafka | None = Field(None, description="Use these brokers, manage none.")


Prefix = Annotated[
    str,
    text(
        "^[A-Za-z0-9][A-Za-z0-9_-]*$",
        "This cannot begin the names of topics; give letters, digits, '-' and '_', with a letter "
        "or digit first.",
        80,
    ),
]
Duration = Annotated[
    str,
    text(
        "^(unlimited|[1-9][0-9]{0,5}(s|m|h|d))$",
        "This is not a time; give unlimited, or a number with s, m, h or d, like 7d.",
        9,
    ),
]
Retention = Annotated[
    str,
    text(
        "^(snapshots|unlimited|[1-9][0-9]{0,5}(s|m|h|d))$",
        "This is not a time; give snapshots, unlimited, or a number with s, m, h or d, like 7d.",
        9,
    ),
]


class Topics(Part):
    """The topics that the operator makes for the model."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            fixed(
                "prefix",
                "The topic prefix cannot change: it names the data; make a new deployment.",
            ),
        )
    )

    prefix: Prefix | None = Field(
        None,
        description="First part of all topic names (HOST_PORT in SAS ESP). When absent: what the "
        "model's connectors say, else NAMESPACE_NAME.",
    )
    replication_factor: int | None = Field(
        None,
        ge=1,
        le=9,
        description="Copies of each topic; the smaller of 3 and the brokers when absent.",
    )
    min_in_sync_replicas: int | None = Field(
        None,
        ge=1,
        le=9,
        description="Copies that must have a record before it counts as written; one less than "
        "replicationFactor (at least 1) when absent.",
    )
    retention: Retention = Field(
        SNAPSHOTS,
        description="How long records of input topics and the order log are kept: snapshots (as "
        "long as engines and input adapters need them), unlimited, or a number with s, m, h or d. "
        "Engines rebuild their state from snapshots and these topics, so a time must reach back to "
        "a snapshot.",
    )
    output_retention: Duration | None = Field(
        None,
        description="How long records of output topics and dead letters are kept: unlimited, or a "
        "number with s, m, h or d. When absent: as retention; where that is snapshots, as many as "
        "fit in 30 % of the brokers' volumes, and with an external Kafka 7d.",
    )

    @property
    def trimmed(self) -> bool:
        """Whether the operator deletes what no engine and no input adapter needs."""
        return self.retention == SNAPSHOTS

    @property
    def retention_ms(self) -> int:
        """Retention in milliseconds; -1 for ever."""
        return _milliseconds(self.retention)

    def output_retention_ms(self, *, external: bool) -> int:
        """Retention of outputs in milliseconds; -1 for ever, or as long as there is room."""
        if self.output_retention is not None:
            return _milliseconds(self.output_retention)
        return _milliseconds(EXTERNAL_OUTPUTS if self.trimmed and external else self.retention)


def _milliseconds(time: str) -> int:
    if time in (SNAPSHOTS, "unlimited"):
        return -1
    seconds = {"s": 1, "m": 60, "h": 3600, "d": 86400}[time[-1]]
    return int(time[:-1]) * seconds * 1000


PvcPolicy = Literal["Delete", "Retain"]
