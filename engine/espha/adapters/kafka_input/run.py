"""Publishes the records of a Kafka topic that others write."""

from espha.adapters.config import ConfigError, Job
from espha.adapters.kafka_input.source import KafkaSource
from espha.adapters.kafka_input.spec import InputKafka
from espha.adapters.publishing import publish


def run(job: Job, kafka: InputKafka) -> None:
    """Run the adapter until the process is ended; see `espha.adapters.config.Runner`."""
    if kafka.topic == job.topic and kafka.servers == job.bootstrap:
        raise ConfigError(f"topic {job.topic} is the window's own: nothing has to be copied")
    publish(job, lambda position: KafkaSource(job, kafka, position))
