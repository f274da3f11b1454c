"""Asking a managed Kafka whether a broker may go now."""

import logging
from collections.abc import Iterable

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from espha_operator.reconcile.quorum import Quorum, QuorumError, describe_quorum
from espha_operator.reconcile.rolling import Brokers

# Seconds that Kafka may take for an answer.
ANSWER = 3
_LOG = logging.getLogger(__name__)


def look(bootstrap: str, addresses: Iterable[tuple[str, int]]) -> Brokers:
    """Return what the brokers say now; the error says why not. Blocks for seconds.

    Args:
        bootstrap: where clients find Kafka.
        addresses: host and port of each broker. Each one has to answer: one that is frozen is in
            sync for all others until its session has ended.
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
        return Brokers(error=f"a broker does not say who the controllers are: {error}")
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


def _quorum(addresses: Iterable[tuple[str, int]]) -> Quorum:
    """Ask one after the other, and return the last answer.

    Raises:
        QuorumError: a broker does not answer, or there is none.
    """
    told = [describe_quorum(*address) for address in addresses]
    if not told:
        raise QuorumError("no broker has an address")
    return told[-1]
