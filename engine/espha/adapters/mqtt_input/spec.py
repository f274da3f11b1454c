"""Messages of a broker of MQTT."""

from typing import Annotated

from pydantic import Field, StringConstraints

from espha.adapters.config import AdapterType
from espha.adapters.formats.spec import InputFormat
from espha.adapters.mqtt_broker import FILTER, MqttBroker


class InputMqtt(MqttBroker):
    """Messages of a broker of MQTT 5; they are acknowledged when their rows are committed."""

    topic: Annotated[str, StringConstraints(pattern=FILTER, max_length=1000)] = Field(
        description="Topics to subscribe to; `+` is any level, `#` all that follow."
    )
    format: InputFormat = Field(InputFormat(), description="How messages are written.")
    ids: int = Field(
        1000,
        ge=0,
        le=10_000,
        description="So many of the last ids are remembered: a message that comes again under one "
        "of them is acknowledged, and not published again.",
    )
    retained: bool = Field(
        False,
        description="What the broker has retained on these topics is taken, too, when the adapter "
        "subscribes for the first time.",
    )
    session_s: int = Field(
        604_800,
        ge=60,
        le=4_294_967_295,
        description="Seconds for which the broker keeps messages while no adapter is connected.",
    )


ADAPTER = AdapterType("mqtt", "pub", InputMqtt)
