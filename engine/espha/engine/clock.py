"""The clock that order records carry: it goes on evenly, whatever a machine's wall clock does.

An engine reads its wall clock once, and then counts time that nobody can turn. It follows the wall
clock as long as the two are near each other. When it starts, until there is an answer, and when the
wall clock jumps, somebody else is asked: the time of a broker. Of wall clock, broker and what was
counted, the one in the middle counts, so one that is wrong moves nothing. When the engine starts,
the log's own clock is the third one.

The log's clock never goes back. Where it is ahead of all (written by an earlier version of espha),
it goes at half the speed until time has caught up: what waits for time still gets it.
"""

import threading
import time
from collections.abc import Callable
from statistics import median

import structlog

NEAR_MS = 1_000
"""Clocks that differ by less are followed without asking anybody."""
_SLEW = 0.1
"""How much faster or slower than time the count may go to come to the wall clock."""
_ASK_AGAIN_MS = 10_000
_LOG = structlog.get_logger()

Witness = Callable[[], int | None]
"""Returns milliseconds since 1970 by somebody else's clock, or None; may take seconds."""


def _counted_ms() -> float:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) / 1e6  # goes on while a machine sleeps


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


class LogClock:
    """Says which clock the next order record has."""

    def __init__(
        self,
        witness: Witness | None = None,
        wall_ms: Callable[[], int] = _wall_ms,
        counted_ms: Callable[[], float] = _counted_ms,
    ) -> None:
        """Begin with the wall clock, and ask the witness, from a thread, whether it is right."""
        self._witness, self._wall, self._counted = witness, wall_ms, counted_ms
        self._read_at = counted_ms()
        self._real: float = wall_ms()
        self._away: float | None = None
        """The witness's time less the count; None: it has not answered."""
        self._asked: float | None = None
        self._asking: threading.Thread | None = None
        self._confirmed = False
        self._doubted = False
        self._ask()

    def next(self, last: int, since_ms: float) -> int:
        """Return the clock for an order record, in milliseconds since 1970.

        Args:
            last: the clock of the record before; 0: there is none.
            since_ms: how long ago that one was processed here.
        """
        if self._away is None:
            self._ask()
        elif not self._confirmed:
            self._confirm(last, self._away + self._counted())
        real = self.real()
        return real if real >= last else last + int(since_ms / 2)

    def real(self) -> int:
        """Return what this engine takes for the time, in milliseconds since 1970."""
        counted, wall = self._counted(), self._wall()
        passed, self._read_at = counted - self._read_at, counted
        self._real += passed
        off = wall - self._real
        if abs(off) <= NEAR_MS:
            self._real += max(-_SLEW * passed, min(_SLEW * passed, off))
            self._doubted = False
        else:
            self._ask()
            if self._away is not None:
                told = self._away + counted
                self._take(median((wall, told, self._real)), wall, told)
        return int(self._real)

    def _confirm(self, last: int, told: float) -> None:
        """Compare the first reading of the wall clock with the witness, and with the log.

        The time cannot be before the log's clock. Where that does not tell who is right, the
        earlier one is taken: what is put ahead never comes back.
        """
        self._confirmed = True
        wall = self._wall()
        if abs(told - self.real()) > NEAR_MS:
            possible = [one for one in (wall, told) if one >= last - NEAR_MS]
            decided = min(possible) if possible else max(wall, told)
            self._take(decided if last else told, wall, told)

    def _take(self, time_ms: float, wall: float, told: float) -> None:
        if not self._doubted:
            self._doubted = True
            _LOG.warning(
                "the wall clock has jumped",
                wall_ms=round(wall - self._real),
                broker_ms=round(told - self._real),
                taken_ms=round(time_ms - self._real),
            )
        self._real = time_ms

    def _ask(self) -> None:
        counted = self._counted()
        recent = self._asked is not None and counted - self._asked < _ASK_AGAIN_MS
        if self._witness is None or self._asking or recent:
            return
        self._asked = counted
        self._asking = threading.Thread(
            target=self._hear, args=(self._witness,), name="clock", daemon=True
        )
        self._asking.start()

    def _hear(self, witness: Witness) -> None:
        try:
            told = witness()
            self._away = None if told is None else told - self._counted()
        finally:
            self._asking = None
