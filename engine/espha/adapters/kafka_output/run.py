"""Writes what a window publishes to a topic of another Kafka cluster."""

from espha.adapters.config import ConfigError, Job
from espha.adapters.copying import copy
from espha.adapters.kafka_output.spec import OutputKafka
from espha.adapters.kafka_output.target import KafkaTarget


def run(job: Job, kafka: OutputKafka) -> None:
    """Run the adapter until the process is ended; see `espha.adapters.config.Runner`."""
    if kafka.topic == job.topic and kafka.servers == job.bootstrap:
        raise ConfigError(f"topic {job.topic} is the window's own: name another one")
    copy(job, kafka.name, lambda identity: KafkaTarget(job, kafka, identity))
