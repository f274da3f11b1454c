"""Brokers as espha sets them: which one leads, and which one controls."""

import uuid

import pytest
from confluent_kafka.admin import AdminClient

from espha.protocol.brokers import LEADER, TRANSACTION_PARTITIONS, TRANSACTION_TOPIC
from support.servers import Kafka, wait_until

pytestmark = pytest.mark.component


def test_one_broker_leads_and_another_one_controls(kafka: Kafka) -> None:
    """The death of the broker that leads must not cost the controller, too."""
    name = f"topic-{uuid.uuid4().hex[:8]}"
    kafka.make_topics(name)
    wait_until(kafka.whole, 60, "all replicas in sync")
    topics = AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=10).topics
    made = [topics[name], topics[TRANSACTION_TOPIC]]
    leaders = [each.leader for topic in made for each in topic.partitions.values()]
    assert leaders == [LEADER] * (1 + TRANSACTION_PARTITIONS)
    controller = kafka.controller()
    assert controller is not None
    assert controller is not kafka.servers[LEADER]
