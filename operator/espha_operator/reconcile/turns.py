"""Whose turn it is when an upgrade of the operator changes the pods of many deployments."""

import threading
import time
from collections.abc import Callable

# Seconds without a word from a deployment after which it does not count any more: it was deleted.
SILENT = 60.0
# Seconds after which the next may go although a roll-out has not ended: it may never end, and the
# roll-out of each deployment stops by itself at the first pod that does not become ready.
LONGEST = 900.0
# Seconds after the operator's start in which it learns which deployments are rolling out already.
LEARNING = 10.0


class Turns:
    """Lets one deployment roll out at a time, with a pause after each. Any thread may call."""

    def __init__(self, delay: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with a pause.

        Args:
            delay: seconds between the end of a roll-out and the next one; 0: all at once.
            clock: seconds.
        """
        self._delay, self._clock = delay, clock
        self._lock = threading.Lock()
        self._rolling: dict[str, tuple[float, float]] = {}
        """When a deployment has begun, and when it was heard of last."""
        self._quiet_from = clock() + max(0.0, LEARNING - delay)

    def may_roll(self, which: str) -> bool:
        """Say whether a deployment may roll out now; then it is its turn."""
        if not self._delay:
            return True
        now = self._clock()
        with self._lock:
            self._forget(now)
            others = (begun for name, (begun, _) in self._rolling.items() if name != which)
            if which in self._rolling:
                return True
            if any(now - begun < LONGEST for begun in others):
                return False
            if now - self._quiet_from < self._delay:
                return False
            self._rolling[which] = now, now
            return True

    def tell(self, which: str, *, rolling: bool) -> None:
        """Take in whether a deployment is rolling out, for whatever reason; to be told often."""
        now = self._clock()
        with self._lock:
            if rolling:
                begun, _ = self._rolling.get(which, (now, now))
                self._rolling[which] = begun, now
            elif self._rolling.pop(which, None):
                self._quiet_from = now

    def _forget(self, now: float) -> None:
        for name, (_, heard) in list(self._rolling.items()):
            if now - heard > SILENT:
                del self._rolling[name]
                self._quiet_from = now
