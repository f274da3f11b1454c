"""Publishes the messages of a WebSocket.

Only the active replica is connected. The protocol has no acknowledgements: what is under way when a
process, a node or the connection dies is lost. What was published is there once.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any, ClassVar, Final

import aiohttp

from espha.adapters.config import Job
from espha.adapters.formats.incoming import incoming, topic_form
from espha.adapters.formats.mapped import mapped, read_configuration
from espha.adapters.publishing import publish
from espha.adapters.receiving import Intake, Parcel
from espha.adapters.remembered import Position, RememberingReceiver
from espha.adapters.secrets import authorization_header
from espha.adapters.websocket_input.spec import InputWebsocket
from espha.backoff import Backoff
from espha.mapping import holder
from espha.model import Window
from espha.records.rows import decode, encode

_CONNECT_S: Final = 10.0
_ALIVE_S: Final = 30.0
"""A peer that answers no ping for so long is left."""
_ENDS: Final = frozenset({aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED})

Records = Callable[[bytes, str], list[bytes]]
"""Makes records of a message; the text says where it is from. Raises OSError."""


class Messages(Position):
    """How many messages were published."""

    called: ClassVar[str] = "messages"


def run(job: Job, given: InputWebsocket) -> None:
    """Run the adapter until the process is ended; see `espha.adapters.config.Runner`."""
    records = _records(job.window, given)
    known = authorization_header()
    publish(job, lambda found: Socket(given, records, Messages.of(job.name, found), known))


def _records(window: Window, given: InputWebsocket) -> Records:
    if given.configuration is not None:
        root = read_configuration(given.configuration, given.properties)
        return mapped(holder(root), window, topic_form(window))
    made = incoming(window, given.format)
    take = _unpacked if given.format.type == "json" else lambda message: message
    return lambda message, where: made.records(take(message), where)


def _unpacked(message: bytes) -> bytes:
    """Return the events of a message of a server of SAS: `{"events": [{"event": …}]}`."""
    if b'"events"' not in message:
        return message
    try:
        content: Any = json.loads(decode(message))
    except (ValueError, RecursionError):
        return message
    events = content.get("events") if isinstance(content, dict) and len(content) == 1 else None
    return encode(json.dumps(events)) if isinstance(events, list) else message


class Socket(RememberingReceiver[Messages]):
    """The messages that come."""

    def __init__(
        self, given: InputWebsocket, records: Records, position: Messages, authorization: str = ""
    ) -> None:
        """Connect with the first poll.

        Args:
            given: the settings.
            records: makes records of a message.
            position: where to go on.
            authorization: the header Authorization; empty: none.
        """
        super().__init__(given.address.partition("?")[0], position, "", 0)
        self._given, self._records = given, records
        self._headers = {"Authorization": authorization} if authorization else {}

    async def serve(self, intake: Intake[str]) -> None:
        """See `Receiver`."""
        backoff = Backoff()
        while True:
            try:
                await self._connected(intake, backoff)
                why = "the peer has closed the connection"
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                why = f"no connection: {_shortly(error)}"
            self.trouble = f"{why}; trying again"
            await asyncio.sleep(backoff.next())

    async def _connected(self, intake: Intake[str], backoff: Backoff) -> None:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S)
        async with (
            aiohttp.ClientSession(timeout=timeout, headers=self._headers) as session,
            asyncio.timeout(_CONNECT_S) as opening,
            session.ws_connect(
                self._given.address, max_msg_size=self._given.max_bytes, heartbeat=_ALIVE_S
            ) as socket,
        ):
            opening.reschedule(None)
            self.trouble = ""
            async for message in socket:
                if message.type in {aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY}:
                    backoff.reset()
                    data = message.data
                    await self._take(intake, encode(data) if isinstance(data, str) else data)
                elif message.type is aiohttp.WSMsgType.ERROR:
                    raise OSError(_shortly(socket.exception() or OSError("broken")))
                elif message.type in _ENDS:
                    return

    async def _take(self, intake: Intake[str], message: bytes) -> None:
        """Leave the rows of a message; whoever sends faster than they are committed has to wait."""
        await intake.wait_for(len(message))
        backoff = Backoff()
        while True:
            try:
                rows = await asyncio.to_thread(self._records, message, self.name)
                break
            except OSError as error:  # such as a registry that is away
                self.trouble = f"{error.strerror or error}; trying again"
                await asyncio.sleep(backoff.next())
        self.trouble = ""
        if rows:
            intake.put(Parcel(rows, len(message), ""))
        else:
            intake.release(len(message))


def _shortly(error: BaseException) -> str:
    if isinstance(error, aiohttp.WSServerHandshakeError):
        return f"answered with HTTP {error.status}"
    text = str(getattr(error, "strerror", None) or error)
    return f"{type(error).__name__}: {text}".rstrip(": ")[:200]
