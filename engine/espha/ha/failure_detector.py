"""How long a sign of life may stay away before its sender counts as dead."""

TIMES_USUAL = 4
_FORGETS = 0.995
_AT_MOST_S = 10.0


def patience_s(at_least_s: float, usual_s: float) -> float:
    """Return how long to wait where `usual_s` is usual; never shorter than asked for."""
    return max(at_least_s, min(TIMES_USUAL * usual_s, _AT_MOST_S))


class FailureDetector:
    """Learns from how long signs of life usually stay away, and is never shorter than asked for.

    On a quiet machine that is the limit that was asked for; on one where everybody waits for the
    processor it is several times the longest pause of the last minute, since a false alarm there
    costs a restart, which makes everybody wait still longer.

    Time is counted in ticks of the listener, not by the clock: where the listener itself gets no
    time to run, nobody else is blamed.
    """

    def __init__(self, at_least_s: float, tick_s: float) -> None:
        """Wait `at_least_s`; `tick` is called every `tick_s`."""
        self._at_least, self._tick = at_least_s, tick_s
        self._usual = 0.0
        self.silent_s = 0.0
        """How long there has been no sign of life."""

    def heartbeat(self, unasked_s: float = 0.0) -> None:
        """Note a sign of life; for `unasked_s` of the silence before it, there was no question."""
        self._usual = max(self._usual * _FORGETS, self.silent_s - unasked_s)
        self.silent_s = 0.0

    def tick(self) -> None:
        """Note that a tick has passed."""
        self.silent_s += self._tick

    @property
    def limit_s(self) -> float:
        """How long a silence may last now."""
        return patience_s(self._at_least, self._usual)

    def is_silent_for(self, seconds: float) -> bool:
        """Tell whether the silence has lasted for so long, in whole ticks."""
        return self.silent_s > seconds - self._tick / 2

    @property
    def suspected(self) -> bool:
        """Whether the silence has lasted too long."""
        return self.is_silent_for(self.limit_s)
