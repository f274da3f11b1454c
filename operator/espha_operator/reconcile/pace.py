"""How often something may be done: at once mostly, and no more than so often a minute."""

from collections.abc import Callable

MINUTE = 60.0


class Pace:
    """A bucket of allowances, filled again all the time."""

    def __init__(
        self, a_minute: int, clock: Callable[[], float], at_once: int | None = None
    ) -> None:
        """Start with a full bucket.

        Args:
            a_minute: how many allowances come back in a minute.
            clock: seconds.
            at_once: how many the bucket holds; those of a minute when None.
        """
        self._a_minute, self._clock = a_minute, clock
        self._most = a_minute if at_once is None else at_once
        self._left, self._at = float(self._most), clock()

    def take(self) -> bool:
        """Whether it may be done now; counts as done then."""
        now = self._clock()
        self._left = min(self._most, self._left + (now - self._at) * self._a_minute / MINUTE)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
