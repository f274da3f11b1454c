"""A topic of a broker of MQTT that takes what a window publishes."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from espha.adapters.config import AdapterType
from espha.adapters.formats.spec import OutputFormat
from espha.adapters.mqtt_broker import TOPIC, MqttBroker


class OutputMqtt(MqttBroker):
    """A topic of a broker of MQTT 5 to publish to, a message for each row."""

    topic: Annotated[str, StringConstraints(pattern=TOPIC, max_length=1000)] = Field(
        description="The topic."
    )
    format: OutputFormat = Field(OutputFormat(), description="How messages are written.")
    qos: Literal[1, 2] = Field(
        1, description="Quality of service with which they are published, and at most delivered."
    )
    retain: bool = Field(False, description="The broker retains the last message.")
    timeout_s: float = Field(
        30.0,
        ge=0.1,
        le=600,
        description="Seconds after which a broker that acknowledges nothing is left, and "
        "connected to again.",
    )


ADAPTER = AdapterType("mqtt", "sub", OutputMqtt)
