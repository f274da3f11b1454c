"""A run: events go from the feeds through the model to the sinks until all is done."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from espha.model import Project
from espha.model.events import Event
from espha.offline.arrivals import Arrival
from espha.offline.clock import Clock
from espha.offline.connectors import Connectors, Started
from espha.offline.engines import Engine, Outcome, Outputs
from espha.offline.feeds import Feed
from espha.offline.sinks import Sink
from espha.windows.shared.script_spec import ScriptWindow

BATCH = 10_000
"""Events that are published at one moment at most."""

_PAUSE_MS = 250
"""Longest wait, so that an interruption or a growing file is noticed soon."""


@dataclass
class Tally:
    """What a run did.

    Attributes:
        read: rows (or ticks) that came from each feed, by its name and window.
        bad: of these, how many the model never saw as an event, or its source window refused.
        left: events that left each window, as far as the engine says.
        refused: events that each window refused.
        notes: sentences about what was not done.
        left_out: how many connectors were not run.
        troubles: sentences about files that could not be read or written.
        done: which part of the inputs has been read, from 0 to 1; None: nobody knows.
    """

    read: Counter[tuple[str, str]] = field(default_factory=Counter)
    bad: int = 0
    left: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    left_out: int = 0
    troubles: list[str] = field(default_factory=list)
    done: float | None = None


class Runner:
    """Runs a model on feeds and sinks.

    Each turn publishes one batch. It holds what paced feeds (a rate, a timer) have due, then
    what the other feeds have: connectors before inputs, each in order and to its end before the
    next one begins.
    """

    def __init__(
        self,
        project: Project,
        engine: Engine,
        clock: Clock,
        *,
        connectors: Connectors | None,
        inputs: Sequence[Feed],
        traces: Sequence[Sink],
        idle_ms: int | None = None,
        leaping: bool = False,
        report: Callable[[Arrival | None, str, str], None],
        progress: Callable[[Tally], None] = lambda tally: None,
    ) -> None:
        """Make ready.

        Args:
            project: the model.
            engine: what runs it.
            clock: tells the time.
            connectors: the model's own; None: they are left alone.
            inputs: further feeds, each published to its end before the next one.
            traces: further sinks.
            idle_ms: go on until no event has flowed for so long; None: end with the feeds, or
                three heartbeats later where windows have them.
            leaping: the clock leaps, so nobody has to look up while it waits.
            report: is told of each refusal: what came, which window refused it (empty: it was
                no event), and why.
            progress: is called after each batch.
        """
        self.tally = Tally()
        self.engine = engine
        self._clock = clock
        self._connectors = connectors
        self._feeds: list[Feed] = []
        self._inputs = list(inputs)
        self._sinks: dict[str, list[Sink]] = {}
        self.sinks: list[Sink] = []
        self._idle_ms = _last_beats(project) if idle_ms is None else idle_ms
        self._until_idle = idle_ms is not None
        self._leaping = leaping
        self._report = report
        self._progress = progress
        self._ticking = _behind_counters(project)
        for sink in traces:
            self._add_sink(sink)

    def run(self) -> Tally:
        """Run to the end; return what was done."""
        self._start_connectors()
        flowed = self._clock.now()
        while True:
            now = self._clock.now()
            arrivals = self._gather(now)
            outcome = self.engine.step(now, arrivals)
            self._deliver(outcome)
            if self._flows(arrivals, outcome):
                flowed = self._clock.now()
            self._start_connectors()
            self.tally.done = self._done()
            self._progress(self.tally)
            if arrivals or self._unfinished(paced=False):
                continue
            if not self._unfinished() and (self._idle_ms is None or now - flowed >= self._idle_ms):
                break
            self._wait(now, flowed)
        self.tally.notes += [feed.note for feed in [*self._feeds, *self._inputs] if feed.note]
        if self._connectors is not None:
            self.tally.notes += [
                f"connector group {name} never started: what it waits for never came so far"
                for name in self._connectors.pending
            ]
        return self.tally

    def close(self) -> None:
        """Write out and close all files; see `tally.troubles` for what could not be written."""
        for feed in [*self._feeds, *self._inputs]:
            feed.close()
        for sinks in list(self._sinks.values()):
            for sink in list(sinks):
                self._guarded(sink, sink.close)
        self.engine.close()

    def _start_connectors(self) -> None:
        if self._connectors is None:
            return
        started: Started = self._connectors.start()
        self._feeds += started.feeds
        for sink in started.sinks:
            self._add_sink(sink)
        self.tally.notes += started.notes
        self.tally.left_out += started.left_out
        self.tally.troubles += started.troubles

    def _add_sink(self, sink: Sink) -> None:
        self._sinks.setdefault(sink.window, []).append(sink)
        self.sinks.append(sink)

    def _gather(self, now: int) -> list[Arrival]:
        """Return the events of the next batch."""
        arrivals: list[Arrival] = []
        for feed in [*self._feeds, *self._inputs]:
            if feed.paced:
                arrivals += self._take(feed, BATCH - len(arrivals), now)
        # Groups may wait for the end of a feed: nothing else comes into the same batch then.
        alone = self._connectors is not None and bool(self._connectors.pending)
        for feed in [*self._feeds, *self._inputs]:
            if feed.paced or len(arrivals) >= BATCH:
                continue
            was_finished = feed.finished
            arrivals += self._take(feed, BATCH - len(arrivals), now)
            if not feed.finished or (alone and not was_finished):
                break
        return arrivals

    def _take(self, feed: Feed, limit: int, now: int) -> list[Arrival]:
        try:
            found = feed.take(limit, now)
        except OSError as error:
            feed.finished = True
            self.tally.troubles.append(f"{feed.name}: {error.strerror or error}")
            return []
        self.tally.read[feed.name, feed.window] += len(found)
        return found

    def _unfinished(self, *, paced: bool = True) -> bool:
        feeds = [*self._feeds, *self._inputs]
        # Ticks end with what is finite; where there are ticks alone, they are what a run is about.
        ticks_alone = not self._until_idle and all(feed.ticking for feed in feeds)
        return any(
            not feed.finished and (ticks_alone or not feed.ticking) and (paced or not feed.paced)
            for feed in feeds
        )

    def _done(self) -> float | None:
        feeds = [feed for feed in [*self._feeds, *self._inputs] if not feed.ticking]
        total = sum(feed.size for feed in feeds)
        if not total or not all(feed.size or feed.finished for feed in feeds):
            return None
        return sum(min(feed.position, feed.size) for feed in feeds) / total

    def _deliver(self, outcome: Outcome) -> None:
        for arrival, window, reason in outcome.refused:
            if window:
                self.tally.refused[window] += 1
            if arrival is not None and window in {"", arrival.window}:
                self.tally.bad += 1
            self._report(arrival, window, reason)
        for outputs in (outcome.ticked, outcome.passed):
            self._write(outputs)
        for sinks in list(self._sinks.values()):
            for sink in list(sinks):
                self._guarded(sink, sink.flush)

    def _write(self, outputs: Outputs) -> None:
        by_window: defaultdict[str, list[Event]] = defaultdict(list)
        for window, event in outputs:
            by_window[window].append(event)
        for window, events in by_window.items():
            self.tally.left[window] += len(events)
            if self._connectors is not None:
                self._connectors.observe(window, events)
            for sink in list(self._sinks.get(window, ())):
                self._guarded(sink, partial(sink.write, events))

    def _guarded(self, sink: Sink, action: Callable[[], None]) -> None:
        """Do something with a sink; if it fails, the sink takes part no more."""
        try:
            action()
        except OSError as error:
            self._sinks[sink.window] = [
                other for other in self._sinks[sink.window] if other is not sink
            ]
            self.tally.troubles.append(f"{sink.name}: {sink.goal}: {error.strerror or error}")

    def _flows(self, arrivals: Sequence[Arrival], outcome: Outcome) -> bool:
        """Say whether events flowed that were not just the ticks of timers and counters."""
        ticking = {feed.name for feed in self._feeds if feed.ticking}
        return any(arrival.origin not in ticking for arrival in arrivals) or any(
            window not in self._ticking for window, _ in outcome.ticked
        )

    def _wait(self, now: int, flowed: int) -> None:
        times: list[int] = []
        for feed in [*self._feeds, *self._inputs]:
            due = feed.due(now)
            if due is not None:
                times.append(due)
        due = self.engine.due(now)
        if due is not None and not (self._leaping and self.engine.polled):
            times.append(due)
        if self._idle_ms is not None:
            times.append(flowed + self._idle_ms)
        if not times or not self._leaping:
            times.append(now + _PAUSE_MS)
        self._clock.wait(max(1, min(times) - now))


def _behind_counters(project: Project) -> frozenset[str]:
    """Paths of the counters and of all windows behind them."""
    found = {path for path, window in project.windows.items() if window.type == "counter"}
    waiting = list(found)
    while waiting:
        for edge in project.edges_from(waiting.pop()):
            if edge.target not in found:
                found.add(edge.target)
                waiting.append(edge.target)
    return frozenset(found)


def _last_beats(project: Project) -> int | None:
    """Return how long windows with a heartbeat may still say something; None: there are none."""
    beats = [
        window.heartbeat_ms
        for window in project.windows.values()
        if isinstance(window, ScriptWindow) and window.heartbeat
    ]
    return 3 * max(beats) if beats else None
