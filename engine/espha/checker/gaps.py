"""How long nothing came: overall, and around faults."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

_WINDOW_S = 60.0


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that was done on purpose, at a moment in seconds since 1970."""

    time: float
    name: str


def parse_fault(line: str) -> Fault:
    """Read `TIME [NAME…]`; TIME is seconds since 1970 or ISO 8601 (UTC unless it says otherwise).

    Raises:
        ValueError: the time is neither.
    """
    time, _, name = line.strip().partition(" ")
    try:
        moment = float(time)
    except ValueError:
        try:
            parsed = datetime.fromisoformat(time)
        except ValueError:
            raise ValueError(f"{line.strip()!r}: expected a time, then a name") from None
        moment = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    return Fault(moment, name or "fault")


def longest(arrivals: Sequence[float]) -> float | None:
    """Return the longest time in seconds between two arrivals; None when there are fewer."""
    return max((later - earlier for earlier, later in pairwise(arrivals)), default=None)


def after(arrivals: Sequence[float], faults: Iterable[Fault]) -> list[tuple[Fault, float | None]]:
    """Return the longest gap that each fault can have caused, in seconds.

    A gap belongs to the newest fault before its end, when it began at most a minute after it.
    None: nothing came after this fault, or before the next one.
    """
    ordered = sorted(faults, key=lambda fault: fault.time)
    next_times = [fault.time for fault in ordered][1:] + [float("inf")] * bool(ordered)
    return [
        (fault, _between(arrivals, fault.time, next_time))
        for fault, next_time in zip(ordered, next_times, strict=True)
    ]


def _between(arrivals: Sequence[float], start: float, end: float) -> float | None:
    gaps = (
        later - earlier
        for earlier, later in pairwise(arrivals)
        if start < later <= end and earlier < start + _WINDOW_S
    )
    return max(gaps, default=None)
