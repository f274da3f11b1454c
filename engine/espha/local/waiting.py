"""Waiting for processes on a machine that may be busy with other things.

A wait ends when nothing has moved for long, not at a fixed time. Two things see to that:

- its clock is the processor's: time in which runnable tasks waited for a processor (the kernel's
  pressure stall information) counts for a tenth, since nobody could have done anything in it;
- whoever knows a fingerprint of progress (`moved`) starts the clock anew with each change of it.
"""

import time
from collections.abc import Callable
from pathlib import Path

_PRESSURE = Path("/proc/pressure/cpu")
_LEAST = 0.1
"""How much of a second counts at least: a machine that is busy for ever must not wait for ever."""


class StallDetector:
    """Counts the seconds in which somebody could have made progress."""

    def __init__(self, seconds: float, moved: Callable[[], object] | None = None) -> None:
        """Begin to count.

        Args:
            seconds: how long nothing may move.
            moved: returns a fingerprint of progress.
        """
        self._seconds, self._moved = seconds, moved
        self._seen: object = moved() if moved else None
        self._then, self._stalled = time.monotonic(), _stalled()
        self._idle = 0.0

    def over(self) -> bool:
        """Tell whether nothing has moved for long enough to give up."""
        now, stalled = time.monotonic(), _stalled()
        passed = now - self._then
        self._idle += max(_LEAST * passed, passed - (stalled - self._stalled))
        self._then, self._stalled = now, stalled
        if self._idle > self._seconds and self._moved is not None:
            seen = self._moved()
            if seen != self._seen:
                self._seen, self._idle = seen, 0.0
        return self._idle > self._seconds


def wait_until(
    condition: Callable[[], bool],
    timeout: float,
    what: str,
    each_s: float = 0.02,
    moved: Callable[[], object] | None = None,
) -> None:
    """Poll a condition until it holds.

    Args:
        condition: what is waited for.
        timeout: seconds, as `StallDetector` counts them, in which something must have moved.
        what: the condition in words.
        each_s: pause between two looks.
        moved: returns a fingerprint of progress; without it, only the condition's truth is one.

    Raises:
        AssertionError: nothing has moved for so long; the text says what was waited for.
    """
    stalled = StallDetector(timeout, moved)
    while not condition():
        if stalled.over():
            raise AssertionError(f"nothing has moved for {timeout:.0f} s: {what}")
        time.sleep(each_s)


def _stalled() -> float:
    """Return for how many seconds since boot somebody has waited for a processor."""
    try:
        some = _PRESSURE.read_text().split("\n", 1)[0]
    except OSError:  # a kernel that does not measure it
        return 0.0
    return int(some.rpartition("total=")[2]) / 1e6
