"""The clock of a run; tests bring their own."""

import time
from typing import Protocol


class Clock(Protocol):
    """Tells and takes time."""

    def now(self) -> int:
        """Return milliseconds since 1970, never going back."""
        ...

    def wait(self, milliseconds: int) -> None:
        """Let so much time pass."""
        ...


class SystemClock:
    """The machine's clock, held back where it is set back."""

    def __init__(self) -> None:
        self._start = time.time_ns() // 1_000_000 - time.monotonic_ns() // 1_000_000

    def now(self) -> int:
        """Return milliseconds since 1970, never going back."""
        return self._start + time.monotonic_ns() // 1_000_000

    def wait(self, milliseconds: int) -> None:
        """Sleep."""
        time.sleep(milliseconds / 1000)


class LeapingClock(SystemClock):
    """The machine's clock, but waiting takes no time: the clock leaps to its end."""

    def __init__(self) -> None:
        super().__init__()
        self._leapt = 0

    def now(self) -> int:
        """Return milliseconds since 1970, with what was waited for, never going back."""
        return super().now() + self._leapt

    def wait(self, milliseconds: int) -> None:
        """Leap."""
        self._leapt += milliseconds
