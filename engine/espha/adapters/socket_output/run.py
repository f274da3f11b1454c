"""Sends what a window publishes to a peer, as lines."""

import contextlib
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
from espha.adapters.socket_output.peers import (
    Moved,
    Peer,
    can_read,
    has_ended,
    let_go,
    peer_of,
    send_all,
)
from espha.adapters.socket_output.spec import OutputSocket
from espha.protocol.status import OutputProgress

_CHUNK: Final = 65_536
_LONGEST: Final = 200
_NUMBER: Final = re.compile(rb"[0-9]{1,18}")


def run(job: Job, given: OutputSocket) -> None:
    """Run the adapter until the process is ended; see `espha.adapters.config.Runner`."""
    made = outgoing(job.window, given.format)
    peer = peer_of(given, job.host)

    def opened(identity: str) -> Output:
        moved = job.control.doing.moved
        if given.ids:
            # A topic that was made anew counts from 0 again: that is another stream.
            return Output(made, Numbered(peer, f"{identity}.{job.name}", moved))
        return Output(made, Plain(peer, KeptOffset(job, identity), moved))

    copy(job, peer.name, opened)


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

    def look(self) -> None:
        """Take a peer that has connected meanwhile; raises as `send`."""
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
        """See whether a peer has connected."""
        self._way.look()

    def progress(self, rows: int) -> OutputProgress:
        """Return what the status shows; see `espha.adapters.copying.Target`."""
        written = rows - self._rejected
        return OutputProgress(rows=written, rejected=self._rejected, offset=self.offset)


class Plain:
    """Lines to a peer that says nothing: what the system has taken counts as sent."""

    def __init__(self, peer: Peer, kept: KeptOffset, moved: Moved = lambda: None) -> None:
        """Go on behind what was sent; `moved` is called whenever the peer takes something."""
        self._peer, self._kept, self._moved = peer, kept, moved
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

    def look(self) -> None:
        """See `Way`."""
        if self._peer.is_back():
            with contextlib.suppress(OSError):  # it has gone again
                new = self._peer.reach()
                self._let_go()
                self._connection = new

    def _send(self, data: bytes) -> None:
        self.look()
        if self._connection is not None and has_ended(self._connection):
            self._let_go()
        if self._connection is None:
            self._connection = self._peer.reach()
        try:
            send_all(self._connection, data, self._moved)
        except OSError:
            self._let_go()
            raise

    def _let_go(self) -> None:
        let_go(self._connection)
        self._connection = None


class Numbered:
    """Lines with numbers to a peer that says which one it needs next."""

    def __init__(self, peer: Peer, stream: str, moved: Moved = lambda: None) -> None:
        """Ask the peer where to go on; it raises what `Way.send` does.

        `moved` is called whenever the peer takes or says something.
        """
        self._peer, self._stream, self._moved = peer, stream, moved
        self._talk: _Talk | None = None
        self._offset = self._first = 0
        self._connect()

    @property
    def offset(self) -> int:
        """See `Way`; retention may have removed what the peer does not have."""
        return max(self._offset, self._first)

    def send(self, lines: Sequence[tuple[int, bytes]], offset: int) -> None:
        """See `Way`."""
        self.look()
        try:
            if self._talk is None:
                self._connect()
            new = [(number, line) for number, line in lines if number >= self._offset]
            if new and self._talk:
                self._hand_over(self._talk, new)
        except OSError:
            self._let_go()
            raise
        self._first = max(self._first, offset)

    def look(self) -> None:
        """See `Way`. Who connects and says no number changes nothing."""
        if self._peer.is_back():
            with contextlib.suppress(OSError):
                self._connect()

    def _connect(self) -> None:
        talk = _Talk(self._peer.reach(), self._peer.timeout_s)
        try:
            talk.say(self._stream.encode() + b"\n", self._moved)
            number = talk.hear(self._peer.greeting_s)
            self._moved()
        except BaseException:
            talk.close()
            raise
        self._let_go()
        if number < self._offset:
            talk.close()
            raise ConfigError(
                f"the peer {self._peer.name} had acknowledged all below {self._offset}, and "
                f"wants to go on with {number} now: it has lost rows. They are sent again from "
                "there at the next start, as far as the topic still has them"
            )
        # It may be above what was acknowledged before the break: what is below, the peer has.
        self._talk, self._offset = talk, number

    def _hand_over(self, talk: "_Talk", lines: Sequence[tuple[int, bytes]]) -> None:
        until = lines[-1][0] + 1

        def moved() -> None:
            self._moved()
            # What is acknowledged counts, also if the rest does not get through.
            while self._offset < until and talk.is_heard:
                self._hear(talk, until)

        talk.say(b"".join(b"%d %s\n" % each for each in lines), moved)
        while self._offset < until:
            self._hear(talk, until)

    def _hear(self, talk: "_Talk", until: int) -> None:
        # What is behind these lines was not sent: a mistaken word must not have it left out.
        self._offset = max(self._offset, min(talk.hear(self._peer.timeout_s), until))
        self._moved()

    def _let_go(self) -> None:
        if self._talk is not None:
            self._talk.close()
        self._talk = None


class _Talk:
    """A connection to a peer that says numbers."""

    def __init__(self, connection: socket.socket, timeout_s: float) -> None:
        self._connection, self._timeout_s = connection, timeout_s
        self._heard = b""

    @property
    def is_heard(self) -> bool:
        """Whether the peer has said something that `hear` has not returned, or has gone."""
        return b"\n" in self._heard or can_read(self._connection, 0)

    def say(self, data: bytes, moved: Moved) -> None:
        send_all(self._connection, data, moved)

    def hear(self, timeout_s: float) -> int:
        """Return the next number that the peer says."""
        until = time.monotonic() + timeout_s
        while b"\n" not in self._heard:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no word for {timeout_s:g} s")
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
        self._connection.settimeout(self._timeout_s)
        return int(said)

    def close(self) -> None:
        let_go(self._connection)
