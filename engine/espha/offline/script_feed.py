"""What a publisher's script makes, as events of a source window."""

from collections.abc import Iterator

from espha.model import Window
from espha.offline.arrivals import Arrival
from espha.offline.feeds import ended
from espha.records.published import item_reader
from espha.scripts.publishers.common import Item, Publisher, PublisherError

_MOST_EMPTY = 1_000
"""Calls in a row that may give nothing, where no interval is between them."""


class ScriptFeed:
    """Calls a publisher, at once or at intervals, until it says that it is done."""

    paced = True
    ticking = False
    size = 0
    position = 0

    def __init__(
        self,
        name: str,
        window: Window,
        publisher: Publisher,
        *,
        interval: int,
        most: int | None,
        endless: int | None,
        date_format: str,
    ) -> None:
        """Make ready.

        Args:
            name: of the connector.
            window: the source.
            publisher: what makes the events.
            interval: milliseconds between two calls.
            most: how many events it makes at most; None: no limit of its own.
            endless: after how many events one without a limit is ended; None: never.
            date_format: how dates are written in its values and its rows of CSV.
        """
        self.name, self.window = name, window.path
        self.finished = False
        self.note = ""
        self._publisher = publisher
        self._interval = interval
        self._most = most
        self._endless = endless
        self._failure = ""
        self._given = 0
        self._empty = 0
        self._next: int | None = None
        self._waiting: Iterator[Arrival] = iter(())
        self._read = item_reader(window, date_format)

    def take(self, limit: int, now: int) -> list[Arrival]:
        """Return what the calls up to `now` give; see `espha.offline.feeds.Feed`.

        Raises:
            OSError: the script has failed.
        """
        found: list[Arrival] = []
        if self._failure:
            self.finished = True
            raise OSError(f"its script: {self._failure}")
        while len(found) < limit and not self.finished and not self._failure:
            arrival = next(self._waiting, None)
            if arrival is not None:
                found.append(arrival)
                self._count()
            elif self._next is not None and self._next > now:
                break
            else:
                self._call(now)
        return found

    def _count(self) -> None:
        self._given += 1
        if self._most is not None and self._given >= self._most:
            self.finished = True
        elif self._most is None and self._endless is not None and self._given >= self._endless:
            self.finished = True
            self.note = ended(self.name, self._given)

    def _call(self, now: int) -> None:
        self._next = (now if self._next is None else self._next) + self._interval
        try:
            items, done = self._publisher.publish(now)
        except PublisherError as error:
            self._failure = str(error)
            return
        arrivals = [arrival for item in items for arrival in self._arrivals(item)]
        self._waiting = iter(arrivals)
        self._empty = 0 if arrivals else self._empty + 1
        if self._empty > _MOST_EMPTY:
            self.finished = True
            self.note = f"connector {self.name} was ended: {_MOST_EMPTY:,} calls gave no event"
        if done:
            self._endless = None
            self._most = self._given + len(arrivals)
            self.finished = not arrivals

    def _arrivals(self, item: Item) -> Iterator[Arrival]:
        for made in self._read(item):
            yield Arrival(self.window, self.name, made.line, made.event, made.reason)

    def due(self, now: int) -> int | None:
        """Return the time of the next call."""
        return None if self.finished else now if self._next is None else self._next

    def close(self) -> None:
        """End the publisher."""
        self._publisher.close()
