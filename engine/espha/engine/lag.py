"""Whether a standby is near the end of the order log: only then is it in sync."""

import time
from collections.abc import Callable

_AT_THE_END = 2
"""So few order records may be on their way at any moment."""
FAR = 500
"""Order records that take a standby long enough to be felt in a take-over."""
LATE_S = 3.0
"""Longer than any pause of a healthy engine."""


class Lag:
    """How far behind the order log an engine is, as it sees it itself.

    It is in sync when it has been at the end, and until it is far behind or has not been at the end
    for long. So one that is a little late does not come and go.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin far behind; `clock` tells seconds."""
        self._clock = clock
        self._at_end = clock()
        self._looked = clock()
        self._worked = 0.0
        self._in_sync = False
        self.records = 0
        """Order records that are known to be there and are not processed."""

    @property
    def ms(self) -> int:
        """How long ago it was at the end, in milliseconds; 0: it is there."""
        return round((self._looked - self._at_end) * 1000)

    @property
    def in_sync(self) -> bool:
        """Whether it may take over."""
        return self._in_sync

    def worked(self, seconds: float) -> None:
        """Note that so much of the time since the last look went into what was behind."""
        self._worked += seconds

    def look(self, waiting: int, deaf: bool = False) -> bool:
        """Note how many order records wait; tell whether it is in sync.

        Args:
            waiting: as far as it knows.
            deaf: there are more that it does not hear of.
        """
        now = self._clock()
        # A process that was frozen has missed nothing that it could have done.
        away = now - self._looked - self._worked
        if away > LATE_S / 2:
            self._at_end += away
        self._looked, self._worked, self.records = now, 0.0, waiting
        if deaf:
            self._in_sync = False
        elif waiting <= _AT_THE_END:
            self._at_end, self._in_sync = now, True
        elif waiting > FAR or now - self._at_end > LATE_S:
            self._in_sync = False
        return self._in_sync
