"""A connection that messages come on, in an event loop."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import structlog
from paho.mqtt.client import Client, ConnectFlags, MQTTMessage
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from espha.adapters.mqtt_client import CONNECT_S, connect, new_client
from espha.adapters.mqtt_input.spec import InputMqtt

_QOS: Final = 1
_LOOK_S: Final = 1.0
_UNACKNOWLEDGED: Final = 1000
"""So many messages the broker sends before it has to wait for an acknowledgement."""
_LOG = structlog.get_logger()


class Link:
    """One connection; it is made, used and ended in the event loop.

    Attributes:
        taken: how many messages have come.
    """

    def __init__(
        self,
        given: InputMqtt,
        client_id: str,
        begin: Callable[[bool], None],
        take: Callable[[MQTTMessage], None],
    ) -> None:
        """Prepare it.

        Args:
            given: the settings.
            client_id: who the adapter is, where the settings do not say it.
            begin: learns that the broker answers, and whether it knows the session.
            take: takes a message.
        """
        self._given, self._begin, self._take = given, begin, take
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[str] = self._loop.create_future()
        self._ready = self._paused = False
        self._client = self._prepared(new_client(given, client_id))
        self.taken = 0

    async def run(self, ready: Callable[[], None]) -> None:
        """Take messages until the connection ends.

        Args:
            ready: learns that messages can come.

        Raises:
            OSError: why it has ended.
        """
        self._on_ready = ready
        until = self._loop.time() + CONNECT_S
        connect(
            self._client,
            self._given,
            clean=False,
            SessionExpiryInterval=self._given.session_s,
            ReceiveMaximum=_UNACKNOWLEDGED,
        )
        try:
            while not self._ended.done():
                await asyncio.wait([self._ended], timeout=_LOOK_S)
                self._client.loop_misc()
                if not self._ready and self._loop.time() > until:
                    self._end("the broker does not answer")
            raise ConnectionError(self._ended.result())
        finally:
            self._client.disconnect()
            self._client.loop_write()

    def acknowledge(self, number: int) -> None:
        """Acknowledge a message."""
        self._client.ack(number, _QOS)

    def pause(self) -> None:
        """Take no messages for a while."""
        self._paused = True
        if connection := self._client.socket():
            self._loop.remove_reader(connection)

    def resume(self) -> None:
        """Take messages again."""
        if self._paused:
            self._paused = False
            if connection := self._client.socket():
                self._loop.add_reader(connection, self._read)
                self._loop.call_soon(self._read)  # what was decrypted meanwhile wakes nobody

    def _prepared(self, client: Client) -> Client:
        client.on_socket_open = lambda *told: self._loop.add_reader(told[2], self._read)
        client.on_socket_close = self._closed
        client.on_socket_register_write = lambda *told: self._loop.add_writer(
            told[2], client.loop_write
        )
        client.on_socket_unregister_write = self._written
        client.on_connect = self._connected
        client.on_subscribe = self._subscribed
        client.on_message = self._message
        client.on_disconnect = lambda *told: self._end(f"the connection has ended: {told[3]}")
        return client

    def _read(self) -> None:
        try:
            while not (self._paused or self._ended.done()):
                self._client.loop_read()
                pending = getattr(self._client.socket(), "pending", None)
                if pending is None or not pending():
                    return
        except Exception as error:
            # A mistake in here must not look like a broker that sends nothing.
            _LOG.exception("a message cannot be taken")
            self._end(f"{type(error).__name__}: {error}")

    def _closed(self, _: Client, __: Any, connection: Any) -> None:
        self._loop.remove_reader(connection)

    def _written(self, _: Client, __: Any, connection: Any) -> None:
        self._loop.remove_writer(connection)

    def _connected(
        self, _: Client, __: Any, flags: ConnectFlags, reason: ReasonCode, told: Properties | None
    ) -> None:
        if reason.is_failure:
            self._end(f"the broker refuses: {reason}")
            return
        kept = getattr(told, "SessionExpiryInterval", self._given.session_s)
        if kept < self._given.session_s:
            _LOG.warning("the broker keeps messages for a shorter time", seconds=kept)
        self._begin(flags.session_present)
        when = SubscribeOptions.RETAIN_DO_NOT_SEND
        if self._given.retained:
            when = SubscribeOptions.RETAIN_SEND_IF_NEW_SUB
        self._client.subscribe(
            self._given.topic, options=SubscribeOptions(_QOS, retainHandling=when)
        )

    def _subscribed(
        self, _: Client, __: Any, ___: int, reasons: list[ReasonCode], ____: Properties
    ) -> None:
        for reason in reasons:
            if reason.is_failure:
                self._end(f"the broker refuses the topic {self._given.topic}: {reason}")
                return
            if reason.value < _QOS:
                self._end(f"the broker gives {reason} for {self._given.topic}, and {_QOS} it must")
                return
        self._ready = True
        self._on_ready()

    def _message(self, _: Client, __: Any, message: MQTTMessage) -> None:
        self.taken += 1
        self._take(message)

    def _end(self, why: str) -> None:
        if not self._ended.done():
            self._ended.set_result(why)
