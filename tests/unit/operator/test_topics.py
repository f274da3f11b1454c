"""The topic keeper against a real broker."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from espha.kafka.writer import FencedWriter, Record
from espha.protocol.brokers import TRANSACTION_PARTITIONS, TRANSACTION_TOPIC
from espha.protocol.sizes import MESSAGE_BYTES
from espha_operator.api.deployment import Deployment
from espha_operator.reconcile.topics import TopicKeeper
from espha_operator.status.facts import TopicFacts
from support.servers import Kafka, wait_until
from unit.operator.samples import MODEL, deployment

pytestmark = pytest.mark.component


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    folder: Path = tmp_path_factory.mktemp("kafka")
    broker = Kafka(folder)
    broker.start()
    yield broker
    broker.stop()


def using(kafka: Kafka, **topics: object) -> Deployment:
    return deployment(
        kafka={"external": {"bootstrapServers": kafka.bootstrap.split(",")}},
        topics={"replicationFactor": 1, **topics},
    )


def ask(
    keeper: TopicKeeper, wanted: Deployment, names: Iterable[str], *, change: bool = True
) -> TopicFacts:
    """Return what the keeper finds, asking again while a busy broker lets it wait too long."""
    found: list[TopicFacts] = []

    def answered() -> bool:
        found[:] = [keeper.ensure(wanted, names, change=change)]
        return not found[0].error

    wait_until(answered, 60, "Kafka answers")
    return found[0]


def test_missing_topics_are_made_with_the_settings_of_the_spec(kafka: Kafka) -> None:
    keeper, wanted = TopicKeeper(kafka.bootstrap), using(kafka, retention="7d")
    assert set(ask(keeper, wanted, MODEL.topics).missing) == set(MODEL.topics)
    wait_until(
        lambda: ask(keeper, wanted, MODEL.topics) == TopicFacts(brokers=1), 60, "topics are made"
    )


def test_in_a_managed_kafka_the_transactions_topic_is_made_first(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Kafka itself would let any broker coordinate: deaths of two brokers would stop commits."""
    broker = Kafka(tmp_path_factory.mktemp("managed"))
    try:
        broker.start()
        keeper, wanted = TopicKeeper(broker.bootstrap), deployment(kafka={"replicas": 1})
        ask(keeper, wanted, MODEL.topics)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        wait_until(lambda: len(admin.list_topics(timeout=5).topics) == 5, 60, "topics are made")
        topics = admin.list_topics(timeout=5).topics
        assert len(topics[TRANSACTION_TOPIC].partitions) == TRANSACTION_PARTITIONS
        assert set(MODEL.topics) < set(topics)
        writer = FencedWriter(broker.bootstrap, "any")
        writer.fence()
        writer.commit([Record(MODEL.topics[0], b"1")])
    finally:
        broker.stop()


def settings_of(kafka: Kafka, topic: str) -> dict[str, str]:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    described = ConfigResource(ResourceType.TOPIC, topic)
    found = admin.describe_configs([described])[described].result(20)
    return {key: entry.value for key, entry in found.items()}


def foreign(kafka: Kafka, name: str, partitions: int, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(20)


def test_what_could_lose_data_is_reported_and_stays(kafka: Kafka) -> None:
    foreign(kafka, "shorter", 2, retention_ms="7200000", cleanup_policy="compact")
    keeper, wanted = TopicKeeper(kafka.bootstrap), using(kafka, retention="1h")
    wait_until(lambda: not ask(keeper, wanted, ["shorter"]).missing, 60, "topic is known")
    for _ in range(2):
        assert ask(keeper, wanted, ["shorter"]).wrong == (
            "shorter: has 2 partitions, must have 1.",
            "shorter: cleanup.policy is compact, the spec says delete.",
            "shorter: retention.ms is 7200000, the spec says 3600000.",
        )
    assert settings_of(kafka, "shorter")["retention.ms"] == "7200000"


def test_what_loses_nothing_is_set(kafka: Kafka) -> None:
    """Also that engines can write large messages."""
    foreign(
        kafka, "longer", 1, retention_ms="1000", retention_bytes="5", max_message_bytes="1048588"
    )
    keeper, wanted = TopicKeeper(kafka.bootstrap), using(kafka, retention="1h")
    wait_until(lambda: not ask(keeper, wanted, ["longer"]).missing, 60, "topic is known")
    wait_until(
        lambda: (
            settings_of(kafka, "longer").items()
            >= {
                "retention.ms": "3600000",
                "retention.bytes": "-1",
                "max.message.bytes": str(MESSAGE_BYTES),
            }.items()
        ),
        60,
        "the settings are there",
    )
    assert ask(keeper, wanted, ["longer"]).wrong == ()


def test_a_paused_operator_only_looks(kafka: Kafka) -> None:
    foreign(kafka, "looked", 1, retention_ms="1000")
    keeper, wanted = TopicKeeper(kafka.bootstrap), using(kafka)
    wait_until(lambda: not ask(keeper, wanted, ["looked"], change=False).missing, 60, "known")
    found = ask(keeper, wanted, ["looked", "none"], change=False)
    assert found.wrong == ("looked: retention.ms is 1000, the spec says -1.",)
    assert found.missing == ("none",)
    assert settings_of(kafka, "looked")["retention.ms"] == "1000"
    assert "none" not in AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics().topics


def test_too_few_brokers_make_nothing(kafka: Kafka) -> None:
    keeper = TopicKeeper(kafka.bootstrap)
    facts = ask(keeper, using(kafka, replicationFactor=3), ["wide"])
    assert (facts.brokers, facts.missing) == (1, ("wide",))
    assert (
        "wide"
        not in AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=5).topics
    )


def test_a_kafka_that_does_not_answer_is_a_sentence() -> None:
    gone = deployment(kafka={"external": {"bootstrapServers": ["127.0.0.1:1"]}})
    facts = TopicKeeper("127.0.0.1:1").ensure(gone, ["p.M"])
    assert facts.error.startswith("Kafka at 127.0.0.1:1: ")
