"""A Kafka topic, of any cluster, that feeds a source window."""

from typing import Literal

from pydantic import Field

from espha.adapters.config import AdapterType
from espha.adapters.formats.spec import InputFormat
from espha.adapters.kafka_cluster import KafkaTopic


class InputKafka(KafkaTopic):
    """A Kafka topic to read, of another cluster, or one that other programs write."""

    format: InputFormat = Field(InputFormat(), description="How messages are written.")
    start: Literal["first", "last"] = Field(
        "first",
        description="Where an adapter begins that has no position yet: with the first record that "
        "the topic holds, or behind the last one.",
    )


ADAPTER = AdapterType("kafka", "pub", InputKafka)
