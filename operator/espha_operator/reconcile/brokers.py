"""Asking a managed Kafka whether a broker may go now."""

import logging
from collections.abc import Iterable

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from espha_operator.api.names import KAFKA_PORT
from espha_operator.reconcile.quorum import Quorum, QuorumError, describe_quorum
from espha_operator.reconcile.rolling import Brokers

# Seconds that Kafka may take for an answer.
ANSWER = 3
_LOG = logging.getLogger(__name__)


def look(bootstrap: str, addresses: Iterable[str]) -> Brokers:
    """Return what the brokers say now; the error says why not. Blocks for seconds.

    Args:
        bootstrap: where clients find Kafka.
        addresses: of the brokers' pods, one of which is asked for the controllers.
    """
    try:
        # Not kept: between two roll-outs nobody needs it, and it has a thread for each broker.
        seen = AdminClient(
            {"bootstrap.servers": bootstrap, "client.id": "espha-operator-roll"}, logger=_LOG
        ).list_topics(timeout=ANSWER)
        quorum = _quorum(addresses)
    except KafkaException as error:
        return Brokers(error=f"Kafka at {bootstrap} does not answer: {error.args[0].str()}")
    except QuorumError as error:
        return Brokers(error=f"Kafka does not say who its controllers are: {error}")
    behind = (
        name
        for name, topic in seen.topics.items()
        if any(len(one.isrs) < len(one.replicas) for one in topic.partitions.values())
    )
    return Brokers(
        alive=tuple(sorted(seen.brokers)),
        behind=tuple(sorted(behind)),
        controller=quorum.leader,
        lagging=quorum.lagging,
    )


def _quorum(addresses: Iterable[str]) -> Quorum:
    """Ask one after the other.

    Raises:
        QuorumError: no broker says it.
    """
    problem = QuorumError("no broker has an address")
    for address in addresses:
        try:
            return describe_quorum(address, KAFKA_PORT)
        except QuorumError as error:
            problem = error
    raise problem
