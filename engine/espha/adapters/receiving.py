"""Sources that others send to: what has come waits, within bounds, until it is committed.

Connections are served by an event loop in a thread of its own; the adapter's main loop takes what
has come, publishes it, and tells when it is committed. Only then those who sent it are answered.
What waits or is being committed has bounds in bytes: whoever sends more has to wait, or is refused.
"""

import asyncio
import socket
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

import structlog

from espha.adapters.config import Held
from espha.adapters.publishing import Position
from espha.backoff import Backoff
from espha.protocol.sizes import TRANSACTION_BYTES
from espha.protocol.status import Lag

WAITING_BYTES: Final = 8 << 20
"""What may wait for its commit, of all connections together; one parcel may be larger."""
_START_S: Final = 10.0
_ANY: Final = "0.0.0.0"  # noqa: S104 - compared with; who listens on it was told to
_LOG = structlog.get_logger()

Note = TypeVar("Note")
At = TypeVar("At", bound=Position)


@dataclass(eq=False, slots=True)
class Parcel(Generic[Note]):
    """What belongs into one transaction.

    Attributes:
        rows: records for the topic.
        size: how much room it takes, in bytes.
        note: what the position has to know of it.
        done: called in the event loop, once it is committed or known to have been so before.
        repeated: it had been published before, so it was not published again.
    """

    rows: Sequence[bytes]
    size: int
    note: Note
    done: Callable[[], None] = lambda: None
    repeated: bool = field(default=False)


class Intake(Generic[Note]):
    """What has come and waits; for the event loop on one side, the main loop on the other."""

    def __init__(self, limit: int = WAITING_BYTES) -> None:
        """Have room for so many bytes."""
        self._limit, self._held = limit, 0
        self._lock = threading.Lock()
        self._waiting: deque[Parcel[Note]] = deque()
        self._room = asyncio.Event()

    @property
    def held(self) -> int:
        """How many bytes have come and are not committed."""
        return self._held

    def reserve(self, size: int) -> bool:
        """Take room for what comes; tell whether there is any. It is for the event loop."""
        with self._lock:
            if self._held and self._held + size > self._limit:
                self._room.clear()
                return False
            self._held += size
            return True

    async def wait_for(self, size: int) -> None:
        """Take room for what has come, when there is some."""
        while not self.reserve(size):
            await self._room.wait()

    def put(self, parcel: Parcel[Note]) -> None:
        """Leave a parcel for which there is room."""
        with self._lock:
            self._waiting.append(parcel)

    def take(self, most: int) -> list[Parcel[Note]]:
        """Return the oldest parcels, so many bytes of them, and one at least if there is one."""
        found: list[Parcel[Note]] = []
        size = 0
        with self._lock:
            while self._waiting and (not found or size + self._waiting[0].size <= most):
                found.append(self._waiting.popleft())
                size += found[-1].size
        return found

    def release(self, size: int) -> None:
        """Give room back; it is for the event loop."""
        with self._lock:
            self._held -= size
        self._room.set()

    def forget(self) -> None:
        """Drop what waits: nobody was told that it is safe."""
        with self._lock:
            self._waiting.clear()


class Receiver(ABC, Generic[Note, At]):
    """A source that others send to; see `espha.adapters.publishing.Source`."""

    def __init__(self, name: str, position: At, host: str) -> None:
        """Begin behind a position. Nothing listens before the first poll: a standby must not."""
        self.name, self.host = name, host
        self._position = position
        self._intake: Intake[Note] = Intake()
        self._published: list[Parcel[Note]] = []
        self._uncommitted = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._serving: asyncio.Task[None] | None = None
        self.trouble = ""
        """Why nothing can come at the moment; empty: all is well. The event loop writes it."""

    @abstractmethod
    async def serve(self, intake: Intake[Note]) -> None:
        """Take what others send, until cancelled.

        Raises:
            OSError: it cannot be done at the moment.
        """

    @abstractmethod
    def accept(self, parcel: Parcel[Note], position: At) -> tuple[Sequence[bytes], At]:
        """Return which rows of a parcel are new, and the position behind them."""

    @abstractmethod
    def at(self, position: Mapping[str, Any]) -> At:
        """Return the position that `Position.to_header` wrote."""

    @abstractmethod
    def bare(self, position: At) -> At:
        """Return a position without what only the last row of a transaction has to know."""

    @property
    def position(self) -> At:
        """Behind all that was polled."""
        return self._position

    def poll(self) -> list[tuple[bytes, Position]]:
        """Return the rows of what has come; see `espha.adapters.publishing.Source`."""
        self._listen()
        found: list[tuple[bytes, Position]] = []
        for parcel in self._intake.take(TRANSACTION_BYTES):
            rows, self._position = self.accept(parcel, self._position)
            parcel.repeated = len(rows) < len(parcel.rows)
            found += [(row, self.bare(self._position)) for row in rows]
            self._published.append(parcel)
        if found:  # none of the rows is in a transaction without the last one
            found[-1] = (found[-1][0], self._position)
        elif self._published and not self._uncommitted:
            self.committed()
        if not found and self.trouble:
            raise Held(self.trouble)
        self._uncommitted += len(found)
        return found

    def behind(self) -> Lag:
        """Return how many bytes have come that are not committed."""
        return Lag(self._intake.held, "bytes")

    def committed(self) -> None:
        """Tell those who have sent it."""
        parcels, self._published, self._uncommitted = self._published, [], 0
        if self._loop and parcels:
            self._loop.call_soon_threadsafe(self._tell, parcels)

    def advance(self, position: Mapping[str, Any]) -> None:
        """Go to a position; see `espha.adapters.publishing.Source`."""
        self._position = self.at(position)

    def close(self) -> None:
        """Leave the connections as they are: none of them is the reason."""

    def stop(self) -> None:
        """End the connections."""
        if self._loop and self._serving:
            self._loop.call_soon_threadsafe(self._serving.cancel)

    def _tell(self, parcels: Sequence[Parcel[Note]]) -> None:
        for parcel in parcels:
            self._intake.release(parcel.size)
            parcel.done()

    def _listen(self) -> None:
        if self._loop is not None:
            return
        ready = threading.Event()
        threading.Thread(target=self._run, args=(ready,), name="receiver", daemon=True).start()
        ready.wait(_START_S)

    def _run(self, ready: threading.Event) -> None:
        async def main() -> None:
            self._loop = asyncio.get_running_loop()
            self._serving = asyncio.current_task()
            ready.set()
            await self._serve_on()

        with suppress(asyncio.CancelledError):
            asyncio.run(main())

    async def _serve_on(self) -> None:
        backoff = Backoff()
        while True:
            try:
                await self.serve(self._intake)
            except OSError as error:
                self.trouble = f"{error.strerror or error}; trying again"
                await asyncio.sleep(backoff.next())
            except Exception as error:
                # A mistake in here must not look like a peer that sends nothing.
                _LOG.exception("the receiver has failed")
                self.trouble = f"{type(error).__name__}: {error}; trying again"
                await asyncio.sleep(backoff.next())


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a port; 0.0.0.0 means IPv6 as well where it is there.

    Raises:
        OSError: the port cannot be had.
    """
    if host == _ANY and socket.has_dualstack_ipv6():
        return socket.create_server(
            ("", port), family=socket.AF_INET6, backlog=128, dualstack_ipv6=True
        )
    return socket.create_server((host, port), backlog=128)
