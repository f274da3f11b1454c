"""What brings events into a run: files, and timers."""

from pathlib import Path
from typing import Protocol

from espha.connectors.files import FileSource
from espha.connectors.timers import Timer, tick_event
from espha.model import Window
from espha.model.events import BadRecord
from espha.offline.arrivals import Arrival
from espha.records.rows import Raw
from espha.records.text import event_reader, widths
from espha.records.xml_rows import open_rows


class Feed(Protocol):
    """Brings events to one source window.

    Attributes:
        name: what brings them, as a user knows it.
        window: "query/window" of the source.
        paced: it does not give all that it has at once.
        ticking: it gives events for ever, by the clock.
        finished: all that is there has been given.
        note: what its user should know in the end; empty: nothing.
        size: how much it has to read, in bytes; 0: nobody knows.
        position: how much of it has been read.
    """

    name: str
    window: str
    paced: bool
    ticking: bool
    finished: bool

    @property
    def note(self) -> str:
        """See above."""
        ...

    @property
    def size(self) -> int:
        """See above."""
        ...

    @property
    def position(self) -> int:
        """See above."""
        ...

    def take(self, limit: int, now: int) -> list[Arrival]:
        """Return up to `limit` events that are due at `now` (ms since 1970).

        Raises:
            OSError: the file cannot be read.
        """
        ...

    def due(self, now: int) -> int | None:
        """Return when (ms) to ask for events again; None: never."""
        ...

    def close(self) -> None:
        """Let go of what is open."""
        ...


def ended(name: str, count: int) -> str:
    """Say that a feed without an end of its own was ended."""
    return f"connector {name} was ended after {count:,} events; --endless N sets another number"


_LOOK_AGAIN_MS = 100
"""How often a growing file is looked at."""


class FileFeed:
    """Gives the rows of a file.

    A growing file is finished at its present end, and gives more when more is written. Its last
    line counts only with a newline; the last line of other files counts in any case.
    """

    ticking = False

    def __init__(self, name: str, window: Window, path: Path, source: FileSource) -> None:
        """Open the file.

        Raises:
            OSError: it cannot be read.
        """
        self.name, self.window = name, window.path
        self.paced = source.rate > 0
        self.finished = False
        self._file = open_rows(path, source.layout)
        self._shown = str(path)
        self._read = event_reader(window, source.layout)
        self._widths = widths(window, source.layout)
        self._odd = 0
        self._source = source
        self._rounds = source.repeat
        self._given = 0
        self._start: int | None = None

    @property
    def note(self) -> str:
        """Say how many rows had other columns than the layout."""
        if not self._odd:
            return ""
        rows = "1 row has" if self._odd == 1 else f"{self._odd:,} rows have"
        return (
            f"{self._shown}: {rows} fewer or more columns than expected; what is missing is null, "
            "what is behind the last field is not read"
        )

    @property
    def size(self) -> int:
        """Bytes to read, in all rounds; 0 when something else ends the feed, or nothing."""
        ended_by_count = self._source.growing or self._source.most is not None
        return 0 if ended_by_count else self._file.size * (self._source.repeat + 1)

    @property
    def position(self) -> int:
        """Bytes read, in all rounds."""
        return self._file.size * (self._source.repeat - self._rounds) + self._file.position

    def take(self, limit: int, now: int) -> list[Arrival]:
        """Return up to `limit` rows that are due at `now`; see `Feed`."""
        limit = min(limit, self._allowed(now))
        found: list[Arrival] = []
        while len(found) < limit:
            rows = self._file.next(limit - len(found), final=not self._source.growing)
            found += [self._arrival(row) for row in rows]
            if not rows and not self._again(found):
                break
        self._given += len(found)
        if self._source.most is not None and self._given >= self._source.most:
            self.finished = True
        return found

    def _allowed(self, now: int) -> int:
        if self._start is None:
            self._start = now
        most = self._source.most
        allowed = 2**62 if most is None else most - self._given
        if self._source.rate:
            by_now = (now - self._start) * self._source.rate // 1000 + 1
            allowed = min(allowed, by_now - self._given)
        return max(0, allowed)

    def _again(self, found: list[Arrival]) -> bool:
        """At the end of the file: say whether it is published once more."""
        # An empty file would be published without an end.
        if self._rounds and (found or self._given):
            self._rounds -= 1
            self._file.rewind()
            return True
        self.finished = True
        return False

    def _arrival(self, row: Raw) -> Arrival:
        if row.reason:
            return Arrival(self.window, self._shown, row.line, None, row.reason)
        try:
            event = self._read(row.content)
        except BadRecord as refusal:
            return Arrival(self.window, self._shown, row.line, None, refusal.reason)
        if isinstance(row.content, list) and len(row.content) not in self._widths:
            self._odd += 1
        return Arrival(self.window, self._shown, row.line, event)

    def due(self, now: int) -> int | None:
        """Return when to ask again."""
        if self.finished:
            more = self._source.growing and self._source.most is None
            return now + _LOOK_AGAIN_MS if more else None
        if not self._source.rate or self._start is None:
            return now
        return self._start + -(-self._given * 1000 // self._source.rate)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class TimerFeed:
    """Gives one event a tick: a number, the tick's time, and a label."""

    paced = True
    size = 0
    position = 0
    note = ""

    def __init__(
        self,
        name: str,
        window: Window,
        timer: Timer,
        *,
        most: int | None = None,
        endless: int | None = None,
    ) -> None:
        """Make ready.

        Args:
            name: of the connector.
            window: the source.
            timer: when it ticks.
            most: how many ticks there are; None: there is no end.
            endless: how many ticks are as good as no end; None: none.
        """
        self.name, self.window = name, window.path
        self.ticking = most is None or (endless is not None and most > endless)
        self.finished = False
        self._most = endless if self.ticking else most
        self._event = tick_event(window, timer.label)
        self._timer = timer
        self._started: int | None = None
        self._tick = 0
        self._number = 0

    def take(self, limit: int, now: int) -> list[Arrival]:
        """Return an event for each tick up to `now`."""
        if self._started is None:
            self._started = now
            self._tick = self._timer.first(now)
        found: list[Arrival] = []
        if self._most is not None:
            limit = min(limit, self._most - self._number)
        while len(found) < limit and (time := self._timer.tick(self._tick, self._started)) <= now:
            found.append(Arrival(self.window, self.name, 0, self._event(self._number, time)))
            self._tick += 1
            self._number += 1
        if self._number == self._most:
            self._end()
        return found

    def _end(self) -> None:
        self.finished = True
        if self.ticking:
            self.note = ended(self.name, self._number)

    def due(self, now: int) -> int | None:
        """Return the time of the next tick."""
        if self.finished:
            return None
        return now if self._started is None else self._timer.tick(self._tick, self._started)

    def close(self) -> None:
        """There is nothing open."""
