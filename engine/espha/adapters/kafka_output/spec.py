"""A topic of another Kafka cluster that takes what a window publishes."""

from typing import Annotated

from pydantic import Field, StringConstraints

from espha.adapters.config import AdapterType
from espha.adapters.formats.spec import OutputFormat
from espha.adapters.kafka_cluster import TOPIC, KafkaTopic


class OutputKafka(KafkaTopic):
    """A topic of another Kafka cluster to write to."""

    format: OutputFormat = Field(OutputFormat(), description="How messages are written.")
    keyed: bool = Field(
        True,
        description="Messages have the window's key as their key, its fields as CSV, and the key "
        "decides the partition, as with Java's clients. Without it they have no key, and all go to "
        "partition 0.",
    )
    positions: Annotated[str, StringConstraints(pattern=TOPIC)] = Field(
        "espha-positions",
        description="Topic of that cluster where the adapter keeps how far it is, in the same "
        "transaction; it is made where there is none. Others may use it, too.",
    )


ADAPTER = AdapterType("kafka", "sub", OutputKafka)
