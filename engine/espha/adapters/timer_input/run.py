"""Publishes an event for each tick of a timer, each one once."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from espha.adapters.config import ConfigError, Job
from espha.adapters.formats.incoming import record_writer, topic_form
from espha.adapters.publishing import publish
from espha.adapters.timer_input.spec import InputTimer
from espha.connectors.timers import tick_event, timer
from espha.model import Window
from espha.protocol.status import InputProgress, Lag

_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class Position:
    """How far the adapter is.

    Attributes:
        adapter: its name.
        started: when it began for the first time, in ms since 1970; 0: not yet.
        tick: the number of the next tick, counted from the timer's base.
        events: how many were made.
    """

    adapter: str
    started: int = 0
    tick: int = 0
    events: int = 0

    def to_header(self) -> bytes:
        """Return it as an object of JSON."""
        content = {
            "adapter": self.adapter,
            "started": self.started,
            "tick": self.tick,
            "events": self.events,
        }
        return json.dumps(content, separators=(",", ":")).encode()

    def progress(self, rows: int) -> InputProgress:
        """Return what the status shows of it; `rows`: published in this life."""
        text = f"tick {self.tick}, {self.events} events"
        return InputProgress(rows=rows, position=text, line=self.events)


def position_of(adapter: str, found: Mapping[str, Any] | None) -> Position:
    """Read a position back; None: there was no tick yet."""
    known = found or {}
    numbers = {name: int(known.get(name, 0)) for name in ("started", "tick", "events")}
    return Position(adapter, **numbers)


def run(job: Job, given: InputTimer) -> None:
    """Run the adapter until the process is ended; see `espha.adapters.config.Runner`."""
    publish(job, lambda found: Ticks(given, job.window, position_of(job.name, found)))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Ticks:
    """The events of a timer; see `espha.adapters.publishing.Source`.

    Ticks that passed while no adapter ran are made up, each with its own time.
    """

    def __init__(
        self,
        given: InputTimer,
        window: Window,
        position: Position,
        now: Callable[[], int] = _now_ms,
    ) -> None:
        """Go on behind a position; `now`: the time in ms since 1970.

        Raises:
            ConfigError: the interval is too long.
        """
        self.name = f"timer, each {given.interval} {given.unit}"
        properties = {"interval": str(given.interval), "unit": given.unit}
        try:
            self._timer = timer({**properties, "basetime": given.base or ""}, "timer")
        except ValueError as error:
            raise ConfigError(str(error)) from None
        self._event = tick_event(window, given.label)
        self._write = record_writer(window, topic_form(window))
        self._most, self._now, self._position = given.max_events, now, position

    @property
    def position(self) -> Position:
        """Behind the last tick."""
        return self._position

    def poll(self) -> Sequence[tuple[bytes, Position]]:
        """Return the events of ticks that have passed; see `espha.adapters.publishing.Source`."""
        now = self._now()
        found: list[tuple[bytes, Position]] = []
        at = self._position
        if not at.started:
            at = replace(at, started=now, tick=self._timer.first(now))
        while len(found) < _AT_ONCE and (self._most is None or at.events < self._most):
            moment = self._timer.tick(at.tick, at.started)
            if moment > now:
                break
            record = self._write(self._event(at.events, moment)).encode()
            at = replace(at, tick=at.tick + 1, events=at.events + 1)
            found.append((record, at))
        if found or (not self._position.started and self._timer.base is not None):
            self._position = at
        return found

    def advance(self, position: Mapping[str, Any]) -> None:
        """Go to a position; see `espha.adapters.publishing.Source`."""
        self._position = position_of(self._position.adapter, position)

    def behind(self) -> Lag:
        """Return how many ticks have passed without their events, of the next thousand."""
        at, now, count = self._position, self._now(), 0
        left = _AT_ONCE if self._most is None else min(_AT_ONCE, self._most - at.events)
        while at.started and count < left:
            if self._timer.tick(at.tick + count, at.started) > now:
                break
            count += 1
        return Lag(count, "records")

    def committed(self) -> None:
        """Nobody waits for it."""

    def close(self) -> None:
        """There is nothing open."""
