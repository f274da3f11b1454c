"""Clients of a broker of MQTT 5; adapters that read and that write make theirs here."""

from typing import Final

from paho.mqtt.client import Client, MQTTMessage, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from espha.adapters.mqtt_broker import MqttBroker

CONNECT_S: Final = 10.0
"""A broker that has not answered then is away."""


def new_client(given: MqttBroker, client_id: str) -> Client:
    """Return a client that connects when it is told to, and never again by itself.

    Raises:
        ConfigError: a secret is missing, or is no PEM.
    """
    client = Client(
        CallbackAPIVersion.VERSION2,
        given.client_id or client_id,
        protocol=MQTTv5,
        reconnect_on_failure=False,
        manual_ack=True,
    )
    client.connect_timeout = CONNECT_S
    login, security = given.login(), given.security()
    if login is not None:
        client.username_pw_set(*login)
    if security is not None:
        client.tls_set_context(security)
    return client


def connect(client: Client, given: MqttBroker, *, clean: bool, **properties: int) -> None:
    """Connect; the broker's answer comes later.

    Args:
        client: the client.
        given: where the broker is.
        clean: whether the broker forgets what it knows of the client.
        properties: of the connection, by the names of MQTT 5.

    Raises:
        OSError: the broker is away, or cannot be trusted.
    """
    asked = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    for name, value in properties.items():
        setattr(asked, name, value)
    host, port = given.address
    client.connect(host, port, given.keep_alive_s, clean_start=clean, properties=asked)


def with_id(name: str, value: str) -> Properties:
    """Return the properties of a message with an id."""
    made = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    made.UserProperty = (name, value)
    return made


def id_of(message: MQTTMessage, name: str) -> str:
    """Return the id of a message; empty: it has none."""
    told = getattr(message.properties, "UserProperty", ())
    return next((value for key, value in told if key == name), "")
