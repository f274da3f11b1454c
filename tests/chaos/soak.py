"""Load without a fault: the longest gaps, and whether the host had left the machine alone then."""

import threading
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from tools.stolen import QUIET, Stolen


@dataclass(frozen=True)
class Gaps:
    """The longest gap (ms), and the longest one of seconds from which next to nothing was stolen.

    A gap is quiet when every second of which it has a part is.
    """

    longest_ms: float = 0.0
    quiet_ms: float = 0.0

    def and_of(self, other: "Gaps") -> "Gaps":
        """Return the longest ones of both."""
        return Gaps(
            max(self.longest_ms, other.longest_ms),
            max(self.quiet_ms, other.quiet_ms),
        )


class Seconds:
    """Measures each second what was stolen, in a thread, for as long as it is entered."""

    def __init__(self) -> None:
        """Begin with no second; those before count as quiet."""
        self.ends: list[float] = []
        self.shares: list[float] = []
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        threading.Thread(target=self._measure, name="stolen", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def _measure(self) -> None:
        while not self._ended.is_set():
            stolen = Stolen()
            self._ended.wait(1.0)
            self.shares.append(stolen.share())
            self.ends.append(time.monotonic())

    def gaps(self, times: Sequence[float]) -> Gaps:
        """Return the longest gaps between monotonic moments, all of them of seconds that are over.

        What is not measured yet counts as quiet.
        """
        gaps = [(after - before, before, after) for before, after in pairwise(times)]
        quiet = [length for length, before, after in gaps if self._is_quiet(before, after)]
        longest = max((length for length, _, _ in gaps), default=0.0)
        return Gaps(longest * 1000, max(quiet, default=0.0) * 1000)

    def _is_quiet(self, before: float, after: float) -> bool:
        first, last = bisect_left(self.ends, before), bisect_left(self.ends, after)
        return all(share <= QUIET for share in self.shares[first : last + 1])
