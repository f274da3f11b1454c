"""Publishes the messages of a broker of MQTT.

The broker keeps a session for the adapter: what was not acknowledged is sent again, and what comes
while no adapter is connected waits there. A message is acknowledged when its rows are committed.
So it is asked for with QoS 1: with QoS 2 the client would acknowledge a message before it hands it
over, and the broker would forget it before it is committed.
"""

import asyncio
from functools import partial
from typing import Final, NamedTuple

from paho.mqtt.client import MQTTMessage

from espha.adapters.config import ConfigError, Job
from espha.adapters.formats.incoming import Incoming, incoming
from espha.adapters.mqtt_client import id_of, new_client
from espha.adapters.mqtt_input.deliveries import Deliveries, Delivery
from espha.adapters.mqtt_input.link import Link
from espha.adapters.mqtt_input.spec import InputMqtt
from espha.adapters.publishing import publish
from espha.adapters.receiving import Intake, Parcel
from espha.adapters.remembered import Position as Remembered
from espha.adapters.remembered import RememberingReceiver, digest
from espha.backoff import Backoff

_QUEUED: Final = 1 << 20
"""Bytes of messages that have come and are not read as rows yet."""
_WITH_REGISTRY: Final = ("avro", "protobuf")
"""Formats whose payloads may wait for a schema registry; the broker needs its pings meanwhile."""
_MESSAGE: Final = 1000
"""What a message takes besides its payload, in bytes."""


def run(job: Job, given: InputMqtt) -> None:
    """Run the adapter until the process is ended; see `espha.adapters.config.Runner`."""
    # Another topic is another session: the broker still has the old one's subscription.
    client_id = f"espha.{job.prefix}.in.{job.name}.{digest(given.topic)}"
    new_client(given, client_id)  # with secrets that are missing, nothing begins
    made = incoming(job.window, given.format)
    publish(job, lambda found: Messages(given, made, Position.of(job.name, found), client_id))


class Position(Remembered):
    """How far the adapter is, in messages."""

    called = "messages"


class _Message(NamedTuple):
    """What waits to be read.

    Attributes:
        content: the message.
        delivery: to be acknowledged; None: it is of QoS 0.
    """

    content: MQTTMessage
    delivery: Delivery | None

    @property
    def size(self) -> int:
        """How much room it takes, in bytes."""
        return len(self.content.payload) + _MESSAGE


class Messages(RememberingReceiver[Position]):
    """The rows of messages."""

    def __init__(
        self, given: InputMqtt, made: Incoming, position: Position, client_id: str
    ) -> None:
        """Take what the broker sends.

        Args:
            given: the settings.
            made: makes records of a message.
            position: where to go on.
            client_id: who the adapter is, where the settings do not say it.
        """
        super().__init__(f"mqtt {given.topic} of {given.broker}", position, "", given.ids)
        self._given, self._made, self._client_id = given, made, client_id
        self._deliveries = Deliveries()
        self._waiting: asyncio.Queue[_Message] = asyncio.Queue()
        self._queued = 0
        self._link: Link | None = None

    async def serve(self, intake: Intake[str]) -> None:
        """See `Receiver`."""
        # What was not passed on before a failure has to come again.
        self._deliveries, self._waiting, self._queued = Deliveries(), asyncio.Queue(), 0
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._pass_on(intake))
            tasks.create_task(self._connect())

    async def _connect(self) -> None:
        backoff = Backoff()
        while True:
            link = self._link = Link(self._given, self._client_id, self._begin, self._take)
            try:
                await link.run(self._well)
            except OSError as error:
                self.trouble = f"{error.strerror or error}; trying again"
            finally:
                self._deliveries.end()
            if link.taken:
                backoff.reset()
            await asyncio.sleep(backoff.next())

    def _begin(self, known: bool) -> None:
        if self._link is not None:
            self._deliveries.begin(self._link.acknowledge, known=known)

    def _well(self) -> None:
        self.trouble = ""

    def _take(self, content: MQTTMessage) -> None:
        delivery = None
        if content.qos:
            delivery = self._deliveries.take(content.mid, again=bool(content.dup))
            if delivery is None:
                return
        message = _Message(content, delivery)
        self._waiting.put_nowait(message)
        self._queued += message.size
        if self._queued > _QUEUED and self._link is not None:
            self._link.pause()

    async def _pass_on(self, intake: Intake[str]) -> None:
        while True:
            message = await self._waiting.get()
            parcel = await self._parcel(message)
            await intake.wait_for(parcel.size)
            intake.put(parcel)
            self._queued -= message.size
            if not self._queued and self._link is not None:
                self._link.resume()

    async def _parcel(self, message: _Message) -> Parcel[str]:
        content, delivery = message
        known = id_of(content, self._given.id_property)
        where = f"{self.name}, topic {_topic_of(content)}" + (
            f", id {known[:100]}" if known else ""
        )
        rows = await self._rows(bytes(content.payload), where)
        size = message.size + sum(map(len, rows))
        made = Parcel(rows, size, digest(known) if known else "")
        if delivery is not None:
            made.done = partial(self._deliveries.committed, delivery)
        return made

    async def _rows(self, payload: bytes, where: str) -> list[bytes]:
        backoff = Backoff()
        while True:
            try:
                if self._given.format.type in _WITH_REGISTRY:
                    return await asyncio.to_thread(self._made.records, payload, where)
                return self._made.records(payload, where)
            except (OSError, ConfigError) as error:
                said = getattr(error, "strerror", None) or str(error)
                self.trouble = f"{said}; trying again"
                await asyncio.sleep(backoff.next())
                self.trouble = ""


def _topic_of(message: MQTTMessage) -> str:
    try:
        return message.topic
    except UnicodeDecodeError:
        return "that is no text in UTF-8"
