"""Peers of adapters of MQTT, with a broker between them."""

import contextlib
from collections.abc import Mapping

from paho.mqtt.client import Client, MQTTMessage, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from espha.adapters.mqtt_output.link import Link, Message
from espha.adapters.mqtt_output.spec import OutputMqtt
from espha.local.ports import HOST
from support.mosquitto import Mosquitto
from support.peers import Row
from support.servers import wait_until


class Device:
    """Publishes numbered rows, each until it is acknowledged, and the same again if it has to."""

    def __init__(
        self, broker: Mosquitto, topic: str, row: Row = lambda number: f"{number},0,0,1"
    ) -> None:
        self._link = Link(OutputMqtt(broker=broker.address, topic=topic), "device")
        self._row = row
        self.sent = 0

    def send(self, until: int, first: int | None = None) -> None:
        """Publish all rows below a number that are not sent yet, or all from `first` on."""
        self.sent = self.sent if first is None else first
        wait_until(lambda: self._go_on(until), 60, "the broker takes messages")

    def _go_on(self, until: int) -> bool:
        numbers = range(self.sent, until)
        rest = [Message(f"row-{number}", self._row(number).encode()) for number in numbers]
        with contextlib.suppress(OSError):
            self.sent += self._link.send(rest)
        return self.sent >= until


class Listener:
    """Takes messages, and keeps the first one of each id."""

    def __init__(self, broker: Mosquitto, topic: str) -> None:
        self.rows: dict[str, str] = {}
        self.differ = 0
        self._topic = topic
        self._client = Client(CallbackAPIVersion.VERSION2, "listener", protocol=MQTTv5)
        self._client.reconnect_delay_set(1, 1)
        self._client.on_message = lambda _, __, message: self._take(message)
        self._client.on_connect = self._subscribe
        lasting = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        lasting.SessionExpiryInterval = 3600
        self._client.connect(HOST, broker.port, clean_start=False, properties=lasting)
        self._client.loop_start()

    def _subscribe(self, *_: object) -> None:
        self._client.subscribe(self._topic, qos=2)

    def _take(self, message: MQTTMessage) -> None:
        told: Mapping[str, str] = dict(getattr(message.properties, "UserProperty", ()))
        row = message.payload.decode()
        self.differ += self.rows.setdefault(told["espha-id"], row) != row

    def close(self) -> None:
        """End the connection."""
        self._client.disconnect()
        self._client.loop_stop()
