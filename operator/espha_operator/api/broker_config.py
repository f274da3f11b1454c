"""`spec.kafka.config`: what users may set at brokers, and what would break espha's promises."""

from typing import Annotated, Any

from pydantic import Field

from espha.protocol.sizes import MESSAGE_BYTES
from espha_operator.api.base import OPERATOR_DEFAULT, Rule, rules

# Who is who, and where: the operator writes them.
OWN = (
    "node.id", "broker.id", "process.roles", "controller.quorum.voters",
    "controller.quorum.bootstrap.servers", "controller.listener.names", "listeners",
    "advertised.listeners", "listener.security.protocol.map", "inter.broker.listener.name",
    "security.inter.broker.protocol", "log.dirs", "log.dir", "metadata.log.dir",
    "auto.create.topics.enable",
)  # fmt: skip
# How many brokers must have a record: spec.topics says it, for the log of transactions as well.
COPIES = (
    "default.replication.factor", "min.insync.replicas", "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor", "transaction.state.log.min.isr",
)  # fmt: skip
# With another value than Kafka's own, a broker may lose what it has acknowledged, or let a writer
# in that was shut out.
SAFE = {
    "unclean.leader.election.enable": "false",
    "transaction.partition.verification.enable": "true",
}
# Below it, transactions of a living engine are cut off, or it forgets who was shut out.
LEAST = {
    "message.max.bytes": MESSAGE_BYTES,
    "socket.request.max.bytes": 104_857_600,
    "replica.fetch.response.max.bytes": 10_485_760,
    "transaction.max.timeout.ms": 60_000,
    "transactional.id.expiration.ms": 86_400_000,
    "producer.id.expiration.ms": 86_400_000,
}
_SWITCHES = r"\.(enable|enabled)$"
_NUMBERS = r"\.(ms|bytes|seconds|minutes|hours|threads|partitions|factor|isr|replicas)$"


def _not_among(names: tuple[str, ...], sentence: str) -> Rule:
    return f"self.all(key, !(key in {list(names)}))", f"{sentence}: {', '.join(names)}."


def _kept(key: str, value: str) -> Rule:
    return (
        f"!('{key}' in self) || self['{key}'] == '{value}'",
        f"{key} must be '{value}': anything else may lose acknowledged records.",
    )


def _at_least(key: str, least: int) -> Rule:
    return (
        f"!('{key}' in self) || int(self['{key}']) >= {least}",
        f"{key} must be at least {least}: engines rely on it.",
    )


_RULES: tuple[Rule, ...] = (
    (
        "self.all(key, key.matches('^[a-z0-9._-]{1,100}$'))",
        "Names of Kafka settings have lower-case letters, digits, '.', '_', '-' only.",
    ),
    _not_among(OWN, "These Kafka settings belong to the operator and cannot be given"),
    _not_among(
        COPIES,
        "Give the number of copies in spec.topics (replicationFactor, minInSyncReplicas), not "
        "by these Kafka settings",
    ),
    (
        f"self.all(key, !key.matches(r'{_SWITCHES}') || self[key] in ['true', 'false'])",
        "Kafka settings that end in enable or enabled are 'true' or 'false', in quotes.",
    ),
    (
        f"self.all(key, !key.matches(r'{_NUMBERS}') || int(self[key]) >= -1)",
        "Kafka settings that end in ms, bytes, seconds, minutes, hours, threads, partitions, "
        "factor, isr or replicas are whole numbers, at least -1.",
    ),
    *(_kept(key, value) for key, value in SAFE.items()),
    *(_at_least(key, least) for key, least in LEAST.items()),
)

_EXTRAS: dict[str, Any] = {
    **OPERATOR_DEFAULT,
    "additionalProperties": {
        "x-kubernetes-int-or-string": True,
        "maxLength": 1000,
        "pattern": r"^[^\r\n\\]*$",
    },
    **rules(*_RULES),
}
BrokerConfig = Annotated[dict[str, int | str], Field(max_length=50, json_schema_extra=_EXTRAS)]
