"""Counter windows.

For each input the window keeps how many events have come since the first one, and since the last
report. A report is an upsert of the row of the input. Reports come at fixed times after the first
event, however late the engine is told that time has passed.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from espha.model.events import Event
from espha.model.project import Field
from espha.windows.counter.spec import CounterWindow
from espha.windows.shared.stage import Moment, Stage, Unit

MAX_LATE: Final = 1_000
"""Most reports of one input that are made up for at once; older ones are left out."""


class Count(NamedTuple):
    """What is known of one input; times in milliseconds since 1970.

    Attributes:
        total: events since `start`, the first one's time.
        partial: events since `since`, the time of the last report.
        report: time of the next report; None: one for each event.
        last: time of the last event.
    """

    total: int
    start: int
    partial: int
    since: int
    report: int | None
    last: int


def stages(window: CounterWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a counter window."""
    return [Counter(window)]


class Counter:
    """Counts units (an update block is one) of each input."""

    def __init__(self, window: CounterWindow) -> None:
        self._inputs = window.inputs
        self._every = window.count_interval
        self._clear = window.clear_interval
        self._counts: dict[int, Count] = {}

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Count, and report when there is no interval for reports."""
        port, now = at.port, at.clock
        count = self._counts.get(port)
        if count is None:
            report = None if self._every is None else now + self._every
            count = Count(0, now, 0, now, report, now)
        count = count._replace(total=count.total + 1, partial=count.partial + 1, last=now)
        self._counts[port] = count
        return [self._report(port, now)] if self._every is None else ()

    def _report(self, port: int, now: int) -> Unit:
        """Return the row of an input, and begin a new interval."""
        count = self._counts[port]
        self._counts[port] = count._replace(partial=0, since=now)
        total, interval = (now - count.start) / 1000, (now - count.since) / 1000
        values = (
            self._inputs[port],
            count.total,
            total,
            count.total / total if total else 0.0,
            count.partial,
            interval,
            count.partial / interval if interval else 0.0,
        )
        return (Event("P", "N", values),)

    def due(self) -> int | None:
        """Return the time of the next report, or at which an input is forgotten."""
        times = [self._next(count)[0] for count in self._counts.values()]
        return min([time for time in times if time is not None], default=None)

    def _next(self, count: Count) -> tuple[int | None, bool]:
        """Return when something happens to an input, and whether it is a report."""
        end = None if self._clear is None else count.last + self._clear
        report = count.report
        if end is None or (report is not None and report <= end):
            return report, True
        return end, False

    def expire(self, at: Moment) -> Sequence[Unit]:
        """Report and forget, in the order of the times."""
        units: list[Unit] = []
        for port in sorted(self._counts):
            self._catch_up(port, at.clock)
        while True:
            times = [(self._next(count), port) for port, count in self._counts.items()]
            ready = sorted(
                (time, port, is_report)
                for (time, is_report), port in times
                if time is not None and time <= at.clock
            )
            if not ready:
                return units
            units.append(self._happen(*ready[0]))

    def _catch_up(self, port: int, now: int) -> None:
        """Leave out reports that are too old: an engine that slept for a year makes no flood."""
        count, every = self._counts[port], self._every
        if every is None or count.report is None:
            return
        end = now if self._clear is None else min(now, count.last + self._clear)
        late = (end - count.report) // every
        if late > MAX_LATE:
            self._counts[port] = count._replace(report=count.report + (late - MAX_LATE) * every)

    def _happen(self, time: int, port: int, is_report: bool) -> Unit:
        count = self._counts[port]
        if not is_report:
            del self._counts[port]
            return (Event("P", "N", (self._inputs[port], 0, 0.0, 0.0, 0, 0.0, 0.0)),)
        unit = self._report(port, time)
        if count.report is not None and self._every is not None:
            self._counts[port] = self._counts[port]._replace(report=time + self._every)
        return unit

    def state(self) -> Any:
        """Return the counts as plain tuples."""
        return {port: tuple(count) for port, count in self._counts.items()}

    def restore(self, state: Any) -> None:
        """Take over the counts."""
        self._counts = {port: Count(*count) for port, count in state.items()}
