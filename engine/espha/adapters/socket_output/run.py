"""Sends what a window publishes to a peer, as lines."""

import re
import socket
import time
from collections.abc import Sequence
from typing import Final, Protocol

from espha.adapters.acknowledged import KeptOffset
from espha.adapters.config import ConfigError, Job
from espha.adapters.copying import Taken, copy
from espha.adapters.formats.outgoing import Outgoing, outgoing
from espha.adapters.output_records import Rejected, rejected
from espha.adapters.socket_output.spec import OutputSocket
from espha.protocol.status import OutputProgress

_CONNECT_S: Final = 10.0
_CHUNK: Final = 65_536
_LONGEST: Final = 200
_NUMBER: Final = re.compile(rb"[0-9]{1,18}")


def run(job: Job, given: OutputSocket) -> None:
    """Run the adapter until the process is ended; see `espha.adapters.config.Runner`."""
    made = outgoing(job.window, given.format)

    def opened(identity: str) -> Output:
        if given.ids:
            # A topic that was made anew counts from 0 again: that is another stream.
            return Output(made, Numbered(given, f"{identity}.{job.name}"))
        return Output(made, Plain(given, KeptOffset(job, identity)))

    copy(job, given.connect, opened)


class Way(Protocol):
    """How lines get to the peer."""

    @property
    def offset(self) -> int:
        """Offset of the first record that the peer does not have."""
        ...

    def send(self, lines: Sequence[tuple[int, bytes]], offset: int) -> None:
        """Send lines, each with its record's offset; return when the peer has them.

        Raises:
            ConfigError: the peer does not keep to what was agreed.
            OSError: they were not sent, or not acknowledged.
        """
        ...


class Output:
    """Lines on a way; see `espha.adapters.copying.Target`."""

    def __init__(self, made: Outgoing, way: Way) -> None:
        """Write records as `made` says."""
        self._made, self._way = made, way
        self._rejected = 0

    @property
    def offset(self) -> int:
        """Offset of the first record that was not sent."""
        return self._way.offset

    def append(self, records: Sequence[Taken], offset: int) -> None:
        """Send the records; see `espha.adapters.copying.Target`."""
        count, lines = 0, []
        for record in records:
            found = self._made.payload(record)
            if not isinstance(found, Rejected) and b"\n" in found:
                found = rejected(record, "there is a line break in it; format json has none")
            count += isinstance(found, Rejected)
            line = found.line() if isinstance(found, Rejected) else found
            lines.append((record.offset, line))
        self._way.send(lines, offset)
        self._rejected += count

    def settle(self) -> None:
        """There is nothing to do later."""

    def progress(self, rows: int) -> OutputProgress:
        """Return what the status shows; see `espha.adapters.copying.Target`."""
        written = rows - self._rejected
        return OutputProgress(rows=written, rejected=self._rejected, offset=self.offset)


class Plain:
    """Lines to a peer that says nothing: what the system has taken counts as sent."""

    def __init__(self, given: OutputSocket, kept: KeptOffset) -> None:
        """Go on behind what was sent."""
        self._given, self._kept = given, kept
        self._connection: socket.socket | None = None

    @property
    def offset(self) -> int:
        """See `Way`."""
        return self._kept.now.offset

    def send(self, lines: Sequence[tuple[int, bytes]], offset: int) -> None:
        """See `Way`."""
        if lines:
            self._send(b"".join(line + b"\n" for _, line in lines))
        if offset > self.offset:
            self._kept.keep(offset)

    def _send(self, data: bytes) -> None:
        if self._connection is not None and _has_ended(self._connection):
            self._let_go()
        if self._connection is None:
            self._connection = connected(self._given)
        try:
            self._connection.sendall(data)
        except OSError:
            self._let_go()
            raise

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class Numbered:
    """Lines with numbers to a peer that says which one it needs next."""

    def __init__(self, given: OutputSocket, stream: str) -> None:
        """Ask the peer where to go on; it raises what `Way.send` does."""
        self._given, self._stream = given, stream
        self._connection: socket.socket | None = None
        self._heard = b""
        self._offset = 0
        self._offset = self._connect()

    @property
    def offset(self) -> int:
        """See `Way`."""
        return self._offset

    def send(self, lines: Sequence[tuple[int, bytes]], offset: int) -> None:
        """See `Way`."""
        try:
            if self._connection is None:
                self._connect()
            new = [(number, line) for number, line in lines if number >= self._offset]
            if new and self._connection:
                data = b"".join(b"%d %s\n" % each for each in new)
                self._connection.sendall(data)
                self._wait_for(new[-1][0] + 1)
        except OSError:
            self._let_go()
            raise
        self._offset = max(self._offset, offset)

    def _connect(self) -> int:
        self._connection, self._heard = connected(self._given), b""
        try:
            self._connection.sendall(self._stream.encode() + b"\n")
            number = self._hear(time.monotonic() + self._given.timeout_s)
        except BaseException:
            self._let_go()
            raise
        if number < self._offset:
            self._let_go()
            raise ConfigError(
                f"the peer {self._given.connect} had acknowledged all below {self._offset}, and "
                f"wants to go on with {number} now: it has lost rows. They are sent again from "
                "there at the next start, as far as the topic still has them"
            )
        return number

    def _wait_for(self, number: int) -> None:
        until = time.monotonic() + self._given.timeout_s
        while (heard := self._hear(until)) < number:
            self._offset = max(self._offset, heard)
            until = time.monotonic() + self._given.timeout_s

    def _hear(self, until: float) -> int:
        """Return the next number that the peer says."""
        while b"\n" not in self._heard:
            left = until - time.monotonic()
            if left <= 0 or self._connection is None:
                raise TimeoutError(f"no word for {self._given.timeout_s:g} s")
            self._connection.settimeout(left)
            more = self._connection.recv(_CHUNK)
            if not more:
                raise ConnectionError("the peer has closed the connection")
            self._heard += more
            if len(self._heard) > _CHUNK:
                raise ConnectionError("the peer sends something else than numbers")
        said, _, self._heard = self._heard.partition(b"\n")
        if not _NUMBER.fullmatch(said.strip()):
            text = said[:_LONGEST].decode(errors="replace").strip()
            raise ConnectionError(f"the peer does not say a number, but {text!r}")
        if self._connection is not None:
            self._connection.settimeout(self._given.timeout_s)
        return int(said)

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def connected(given: OutputSocket) -> socket.socket:
    """Return a connection to the peer; what it does not take in time raises TimeoutError."""
    host, _, port = given.connect.rpartition(":")
    connection = socket.create_connection((host, int(port)), _CONNECT_S)
    connection.settimeout(given.timeout_s)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return connection


def _has_ended(connection: socket.socket) -> bool:
    """Tell whether the peer has closed it: what were sent then would be lost."""
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
