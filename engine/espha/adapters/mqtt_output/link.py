"""A connection that messages are published on."""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from paho.mqtt.client import Client, ConnectFlags
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from espha.adapters.config import ConfigError
from espha.adapters.mqtt_client import CONNECT_S, connect, new_client, with_id
from espha.adapters.mqtt_output.spec import OutputMqtt

_UNACKNOWLEDGED: Final = 500
_HEAD: Final = 100
"""What a message has besides topic, id and payload, in bytes, at most."""


class Message(NamedTuple):
    """What is published.

    Attributes:
        id: travels along, as a user property.
        payload: its content.
    """

    id: str
    payload: bytes


class Link:
    """Publishes messages, on one connection after the other.

    A connection begins without what the broker knows of the one before: numbers of messages begin
    anew, and a message of QoS 2 under a number that is open there would be dropped.
    """

    def __init__(self, given: OutputMqtt, client_id: str) -> None:
        """Connect when there is something to send.

        Raises:
            ConfigError: a secret is missing, or is no PEM.
        """
        self._given, self._client_id = given, client_id
        self._connection: _Connection | None = None
        new_client(given, client_id)

    def send(self, messages: Sequence[Message]) -> int:
        """See `espha.adapters.mqtt_output.run.Way`."""
        if self._connection is None or self._connection.ended:
            self._let_go()
            self._connection = _Connection(self._given, self._client_id)
        try:
            count = self._connection.send(messages)
        except BaseException:
            self._let_go()
            raise
        if count < len(messages):
            self._let_go()
        return count

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class _Connection:
    """One connection; paho's thread serves it."""

    def __init__(self, given: OutputMqtt, client_id: str) -> None:
        self._given = given
        self._changed = threading.Condition()
        self._connected = False
        self._acknowledged: set[int] = set()
        self._most, self._largest = 1, 0
        self.ended = ""
        client = self._client = new_client(given, client_id)
        client.max_inflight_messages_set(0)  # as many as the broker takes: it is seen to here
        client.on_connect = self._on_connect
        client.on_publish = self._on_publish
        client.on_disconnect = lambda *told: self._end(f"the connection has ended: {told[3]}")
        connect(client, given, clean=True)
        client.loop_start()
        try:
            self._wait(lambda: self._connected, CONNECT_S)
            if self.ended or not self._connected:
                raise ConnectionError(self.ended or "the broker does not answer")
        except BaseException:
            self.close()
            raise

    def send(self, messages: Sequence[Message]) -> int:
        """Publish messages; return how many are acknowledged, from the first on."""
        self._check(messages)
        self._acknowledged.clear()
        numbers: list[int] = []
        count = 0
        while count < len(messages):
            while len(numbers) < min(len(messages), count + self._most):
                numbers.append(self._publish(messages[len(numbers)]))
            before = count
            first = numbers[count]
            self._wait(partial(self._acknowledged.__contains__, first), self._given.timeout_s)
            while count < len(numbers) and numbers[count] in self._acknowledged:
                count += 1
            if count == before:
                break
        if messages and not count:
            self._end(f"nothing was acknowledged for {self._given.timeout_s:g} s")
            raise ConnectionError(self.ended)
        return count

    def _publish(self, message: Message) -> int:
        given = self._given
        properties = with_id(given.id_property, message.id)
        told = self._client.publish(
            given.topic, message.payload, given.qos, given.retain, properties
        )
        return told.mid

    def close(self) -> None:
        """End it, and the thread."""
        self._client.disconnect()
        self._client.loop_stop()

    def _check(self, messages: Sequence[Message]) -> None:
        if not self._largest:
            return
        for message in messages:
            around = _HEAD + sum(
                len(text.encode())
                for text in (self._given.topic, self._given.id_property, message.id)
            )
            if len(message.payload) + around > self._largest:
                raise ConfigError(
                    f"the broker {self._given.broker} takes no message of "
                    f"{len(message.payload)} bytes (its id is {message.id}): raise the largest "
                    f"size of a packet there, which is {self._largest}"
                )

    def _wait(self, reached: Callable[[], bool], longest_s: float) -> None:
        """Wait until it is so, or the connection has ended, or it takes too long."""
        with self._changed:
            self._changed.wait_for(lambda: reached() or bool(self.ended), longest_s)

    def _on_connect(
        self, _: Client, __: Any, ___: ConnectFlags, reason: ReasonCode, told: Properties | None
    ) -> None:
        if reason.is_failure:
            self._end(f"the broker refuses: {reason}")
            return
        if self._given.qos > getattr(told, "MaximumQoS", self._given.qos):
            self._end(f"the broker takes no messages of QoS {self._given.qos}")
            return
        self._most = min(getattr(told, "ReceiveMaximum", _UNACKNOWLEDGED), _UNACKNOWLEDGED)
        self._largest = getattr(told, "MaximumPacketSize", 0)
        with self._changed:
            self._connected = True
            self._changed.notify_all()

    def _on_publish(
        self, _: Client, __: Any, number: int, reason: ReasonCode, ___: Properties
    ) -> None:
        if reason.is_failure:
            self._end(f"the broker refuses a message: {reason}")
            return
        with self._changed:
            self._acknowledged.add(number)
            self._changed.notify_all()

    def _end(self, why: str) -> None:
        with self._changed:
            self.ended = self.ended or why
            self._changed.notify_all()
