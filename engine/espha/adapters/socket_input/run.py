"""Publishes lines that come over sockets.

With `ids`, a peer first sends the name of its stream, and is told the number of the line that it
has to go on with. Each of its lines begins with its number and a blank. Numbers rise; they may
have gaps. After each commit it is told the next number again. So both sides know what is safe, and
what is sent a second time is known by its number.
"""

import asyncio
import json
import re
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import structlog

from espha.adapters.config import Job
from espha.adapters.formats.incoming import Incoming, incoming
from espha.adapters.formats.lines import check_lines, check_newlines
from espha.adapters.formats.refused import not_a_row
from espha.adapters.publishing import publish
from espha.adapters.receiving import Intake, Parcel, Receiver, listening
from espha.adapters.socket_input.lines import STREAM, Line, Lines
from espha.adapters.socket_input.spec import InputSocket
from espha.backoff import Backoff
from espha.protocol.status import InputProgress
from espha.records.rows import MAX_RECORD

_CHUNK: Final = 65_536
_HELLO_S: Final = 30.0
_CONNECT_S: Final = 10.0
_CONNECTIONS: Final = 100
_STREAMS: Final = 200
_UNREAD: Final = 65_536
"""A peer that leaves so many bytes of answers unread is let go of."""
_NAMED: Final = re.compile(STREAM.encode() + rb"\r?")
_NUMBERED: Final = re.compile(rb"([0-9]{1,18}) (.*)", re.DOTALL)
_LOG = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Position:
    """How far the adapter is.

    Attributes:
        adapter: its name.
        lines: how many were published.
        streams: the next number of each stream.
    """

    adapter: str
    lines: int = 0
    streams: Mapping[str, int] = field(default_factory=dict)

    def to_header(self) -> bytes:
        """Return it as an object of JSON."""
        content: dict[str, object] = {"adapter": self.adapter, "lines": self.lines}
        if self.streams:
            content["streams"] = dict(self.streams)
        return json.dumps(content, separators=(",", ":")).encode()

    def progress(self, rows: int) -> InputProgress:
        """Return what the status shows of it; `rows`: published in this life."""
        text = f"{self.lines} lines" + (f", {len(self.streams)} streams" if self.streams else "")
        return InputProgress(rows=rows, position=text, line=self.lines)


def position_of(adapter: str, found: Mapping[str, Any] | None) -> Position:
    """Read a position back; None: nothing was published yet."""
    known = found or {}
    return Position(adapter, int(known.get("lines", 0)), dict(known.get("streams", {})))


class Numbers(NamedTuple):
    """What lines of a stream are called.

    Attributes:
        stream: its name; empty: lines have no numbers.
        each: the number of each row's line.
        next: behind the last line, also one that made no row.
    """

    stream: str = ""
    each: Sequence[int] = ()
    next: int = 0


def run(job: Job, given: InputSocket) -> None:
    """Run the adapter until the process is ended; see `espha.adapters.config.Runner`."""
    check_lines(given.format)
    check_newlines(given.format)
    made = incoming(job.window, given.format)
    publish(job, lambda found: Sockets(given, made, position_of(job.name, found), job.host))


class RefusedPeerError(Exception):
    """A peer does not keep to what was agreed; the text says how."""


class Sockets(Receiver[Numbers, Position]):
    """The lines of all peers."""

    def __init__(self, given: InputSocket, made: Incoming, position: Position, host: str) -> None:
        """Take what peers send.

        Args:
            given: the settings.
            made: makes records of a line.
            position: where to go on.
            host: address to listen on.
        """
        super().__init__(f"socket {given.connect or given.port}", position, host)
        self._given, self._made = given, made
        self._peers: set[asyncio.Task[None]] = set()
        self._safe: dict[str, int] = dict(position.streams)

    def accept(
        self, parcel: Parcel[Numbers], position: Position
    ) -> tuple[Sequence[bytes], Position]:
        """See `Receiver`: a line below the next number of its stream is not published again."""
        note, rows = parcel.note, parcel.rows
        if not note.stream:
            return rows, replace(position, lines=position.lines + len(rows))
        due = position.streams.get(note.stream, 0)
        new = [row for number, row in zip(note.each, rows, strict=True) if number >= due]
        if not new:
            return (), position
        streams = {**position.streams, note.stream: max(due, note.next)}
        return new, replace(position, lines=position.lines + len(new), streams=streams)

    def at(self, position: Mapping[str, Any]) -> Position:
        """See `Receiver`."""
        found = position_of(self._position.adapter, position)
        self._safe = dict(found.streams)
        return found

    def bare(self, position: Position) -> Position:
        """See `Receiver`."""
        return replace(position, streams={})

    async def serve(self, intake: Intake[Numbers]) -> None:
        """See `Receiver`."""
        if self._given.connect:
            await self._connect(intake, self._given.connect)
            return
        with listening(self.host, self._given.port or 0) as bound:
            server = await asyncio.start_server(
                lambda reader, writer: self._welcome(intake, reader, writer), sock=bound
            )
            self.trouble = ""
            try:
                await server.serve_forever()
            finally:
                server.close()

    async def _connect(self, intake: Intake[Numbers], address: str) -> None:
        host, _, port = address.rpartition(":")
        backoff = Backoff()
        while True:
            try:
                opening = asyncio.open_connection(host, int(port))
                reader, writer = await asyncio.wait_for(opening, _CONNECT_S)
            except (OSError, OverflowError, TimeoutError) as error:
                said = getattr(error, "strerror", None) or str(error) or "no answer"
                self.trouble = f"no connection: {said}; trying again"
            else:
                self.trouble = ""
                if await self._talk(intake, reader, writer):
                    backoff.reset()
            await asyncio.sleep(backoff.next())

    async def _welcome(
        self, intake: Intake[Numbers], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        if task is None or len(self._peers) >= _CONNECTIONS:
            _LOG.warning("a connection too many", source=self.name, most=_CONNECTIONS)
            writer.transport.abort()
            return
        self._peers.add(task)
        try:
            await self._talk(intake, reader, writer)
        finally:
            self._peers.discard(task)

    async def _talk(
        self, intake: Intake[Numbers], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> int:
        """Take what a peer sends; return how many bytes that were."""
        peer = str(writer.get_extra_info("peername"))
        _keep_alive(writer.get_extra_info("socket"))
        talk = _Talk(self, intake, writer, f"{self.name}, peer {peer}")
        try:
            await talk.run(reader)
        except (RefusedPeerError, OSError, asyncio.IncompleteReadError, ValueError) as error:
            _LOG.warning("a connection has ended", peer=peer, error=str(error))
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        return talk.bytes

    def records(self, line: Line, where: str) -> list[bytes]:
        """Return the records that a line makes."""
        if line.long:
            reason = f"{where}: a line of {line.size} bytes; a row can have {MAX_RECORD}"
            return [not_a_row(reason, line.text, self._made_form)]
        return self._made.records(line.text, where)

    @property
    def _made_form(self) -> str:
        return "json" if self._given.format.type == "json" else "csv"

    @property
    def numbered(self) -> bool:
        """Whether lines have numbers."""
        return self._given.ids

    def safe(self, stream: str) -> int:
        """Return the next number of a stream, as far as is committed; for the event loop."""
        if stream not in self._safe and len(self._safe) >= _STREAMS:
            raise RefusedPeerError(f"there are {_STREAMS} streams already")
        return self._safe.setdefault(stream, 0)

    def make_safe(self, stream: str, number: int) -> int:
        """Learn what is committed; return the next number of the stream."""
        self._safe[stream] = max(self._safe.get(stream, 0), number)
        return self._safe[stream]


class _Talk:
    """What is said with one peer."""

    def __init__(
        self, source: Sockets, intake: Intake[Numbers], writer: asyncio.StreamWriter, where: str
    ) -> None:
        self._source, self._intake, self._writer = source, intake, writer
        self._where = where
        self._stream = ""
        self._count = 0
        self._last = -1
        self.bytes = 0

    async def run(self, reader: asyncio.StreamReader) -> None:
        lines = Lines()
        data = await self._hello(reader) if self._source.numbered else b""
        while True:
            found = list(lines.feed(data))
            last = not data and self.bytes > 0 and reader.at_eof()
            if last and not self._source.numbered:  # a line that ends with the connection counts
                found += [line for line in (lines.rest(),) if line]
            if found:
                await self._take(found)
            if last:
                return
            data = await reader.read(_CHUNK)
            self.bytes += len(data)
            if not data and not self.bytes:
                return

    async def _hello(self, reader: asyncio.StreamReader) -> bytes:
        """Learn which stream it is, and say with which number it goes on; return what follows."""
        data = b""
        while b"\n" not in data:
            if len(data) > 200:
                break
            more = await asyncio.wait_for(reader.read(_CHUNK), _HELLO_S)
            if not more:
                raise RefusedPeerError("the peer has gone before it named its stream")
            data += more
            self.bytes += len(more)
        name, _, rest = data.partition(b"\n")
        if not _NAMED.fullmatch(name):
            self._writer.write(b"the first line has to be the name of the stream\n")
            raise RefusedPeerError("the first line is not the name of a stream")
        self._stream = name.rstrip(b"\r").decode()
        self._say(self._source.safe(self._stream))
        return rest

    async def _take(self, lines: Sequence[Line]) -> None:
        rows: list[bytes] = []
        each: list[int] = []
        number, size = 0, 0
        for line in lines:
            self._count += 1
            text, where = line, f"{self._where}, line {self._count}"
            if self._stream:
                match = _NUMBERED.fullmatch(line.text)
                if match is None:
                    said = f"line {self._count} does not begin with its number and a blank"
                    self._writer.write(f"{said}\n".encode())
                    raise RefusedPeerError(said)
                number = int(match[1])
                if number <= self._last:
                    self._writer.write(b"numbers have to rise\n")
                    raise RefusedPeerError(f"number {number} follows {self._last}")
                self._last = number
                text = Line(match[2], line.size - len(match[1]) - 1)
                where = f"{self._where}, stream {self._stream}, number {number}"
            made = self._source.records(text, where)
            rows += made
            each += [number] * len(made)
            size += line.size + 1
        note = Numbers(self._stream, each, number + 1) if self._stream else Numbers()
        await self._intake.wait_for(size)
        self._intake.put(Parcel(rows, size, note, lambda: self._done(note)))

    def _done(self, note: Numbers) -> None:
        if note.stream:
            self._say(self._source.make_safe(note.stream, note.next))

    def _say(self, number: int) -> None:
        transport = self._writer.transport
        if transport.is_closing():
            return
        if transport.get_write_buffer_size() > _UNREAD:
            _LOG.warning("a peer does not read what it is told", stream=self._stream)
            transport.abort()
            return
        self._writer.write(b"%d\n" % number)


def _keep_alive(connection: socket.socket) -> None:
    """Have the system find out when the other machine is gone."""
    for option, value in (
        ("SO_KEEPALIVE", 1),
        ("TCP_KEEPIDLE", 30),
        ("TCP_KEEPINTVL", 10),
        ("TCP_KEEPCNT", 6),
    ):
        level = socket.SOL_SOCKET if option.startswith("SO") else socket.IPPROTO_TCP
        with suppress(AttributeError, OSError):
            connection.setsockopt(level, getattr(socket, option), value)
