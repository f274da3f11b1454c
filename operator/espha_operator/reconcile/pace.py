"""How often something may be done: at once mostly, and no more than so often a minute."""

from collections.abc import Callable

MINUTE = 60.0


class Pace:
    """A bucket of allowances, filled again over a minute."""

    def __init__(self, a_minute: int, clock: Callable[[], float]) -> None:
        """Start with a full bucket."""
        self._most, self._clock = a_minute, clock
        self._left, self._at = float(a_minute), clock()

    def take(self) -> bool:
        """Whether it may be done now; counts as done then."""
        now = self._clock()
        self._left = min(self._most, self._left + (now - self._at) * self._most / MINUTE)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
