"""The algorithm Summary of calculate windows."""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from espha.windows.shared.exact import Number

_LARGEST_POWER: Final = 1024


class Summary:
    """Statistics of one field over the last events, this one included, or over all.

    Sums are exact (see `calculate_exact`), so an event costs the same whatever the length of the
    window. `total` and `squares` are sums of whole numbers: of the values times 2**scale, and of
    their squares; `one` is 2**scale, `one_squared` 4**scale.
    """

    def __init__(self, settings: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._length: int = settings["windowLength"]
        self._wanted = [STATISTICS[name] for name in wanted]
        self._has_squares = not _SQUARES.isdisjoint(wanted)
        self._has_ends = not _ENDS.isdisjoint(wanted)
        self._clear()

    def _clear(self) -> None:
        self.n = self.missing = self.total = self.squares = 0
        self._note_scale(0)
        self.least: Number | None = None
        self.greatest: Number | None = None
        self._window: deque[Number | None] = deque()
        self._scaled: deque[int | None] = deque()
        # Values that are the least (the greatest) of all that came after them, and their numbers.
        self._lows: deque[tuple[int, Number]] = deque()
        self._highs: deque[tuple[int, Number]] = deque()
        self._number = 0

    def observe(self, values: tuple[Any, ...]) -> Sequence[Sequence[Number | None]]:
        """Take one value; return one row."""
        self._put(values[0])
        try:
            return ([statistic(self) for statistic in self._wanted],)
        except (ArithmeticError, ValueError):
            return ([self._or_null(statistic) for statistic in self._wanted],)

    def _or_null(self, statistic: "Statistic") -> Number | None:
        """Return null for what does not exist.

        That is: no value, one where two are needed, a mean of zero, beyond the largest double.
        """
        try:
            return statistic(self)
        except (ArithmeticError, ValueError):
            return None

    def _put(self, value: Number | None) -> None:
        scaled = None
        if value is None:
            self.missing += 1
        else:
            scaled = self._scale(value)
            self.n += 1
            self.total += scaled
            if self._has_squares:
                self.squares += scaled * scaled
        if self._length:
            self._window.append(value)
            self._scaled.append(scaled)
            if len(self._window) > self._length:
                self._leave()
        if self._has_ends:
            self._number += 1
            self._note_ends(value)

    def _scale(self, value: Number) -> int:
        """Return the value times 2**scale; the scale grows when that is no whole number."""
        if type(value) is int:
            return value << self.scale
        # To multiply by a power of two is exact, or infinite and so no whole number.
        scaled = value * self._factor
        if scaled.is_integer():
            return int(scaled)
        numerator, denominator = value.as_integer_ratio()
        places = denominator.bit_length() - 1
        if places > self.scale:
            more = places - self.scale
            self._note_scale(places)
            self.total <<= more
            self.squares <<= 2 * more
            self._scaled = deque([None if old is None else old << more for old in self._scaled])
        return numerator << (self.scale - places)

    def _note_scale(self, scale: int) -> None:
        self.scale, self.one, self.one_squared = scale, 1 << scale, 1 << 2 * scale
        self._factor = math.ldexp(1.0, scale) if scale < _LARGEST_POWER else math.inf

    def _leave(self) -> None:
        """Take the oldest value out."""
        self._window.popleft()
        scaled = self._scaled.popleft()
        if scaled is None:
            self.missing -= 1
            return
        self.n -= 1
        self.total -= scaled
        if self._has_squares:
            self.squares -= scaled * scaled

    def _note_ends(self, value: Number | None) -> None:
        if not self._length:
            if value is not None:
                self.least = value if self.least is None else min(self.least, value)
                self.greatest = value if self.greatest is None else max(self.greatest, value)
            return
        lows, highs, gone = self._lows, self._highs, self._number - self._length
        if value is not None:
            entry = (self._number, value)
            while lows and lows[-1][1] >= value:
                lows.pop()
            lows.append(entry)
            while highs and highs[-1][1] <= value:
                highs.pop()
            highs.append(entry)
        if lows and lows[0][0] <= gone:
            lows.popleft()
        if highs and highs[0][0] <= gone:
            highs.popleft()
        self.least = lows[0][1] if lows else None
        self.greatest = highs[0][1] if highs else None

    def spread(self) -> int:
        """Return n times the sum of squared distances from the mean, times 4**scale.

        Raises:
            ValueError: there is no value.
        """
        if not self.n:
            raise ValueError("no observations")
        return self.n * self.squares - self.total * self.total

    def state(self) -> Any:
        """Return the window, oldest first; of all events, what they add up to."""
        if self._length:
            return tuple(self._window)
        sums = (self.n, self.missing, self.total, self.squares, self.scale)
        return (*sums, self.least, self.greatest)

    def restore(self, state: Any) -> None:
        """Take over the observations."""
        self._clear()
        if self._length:
            for value in state:
                self._put(value)
        else:
            self.n, self.missing, self.total, self.squares, scale, *ends = state
            self.least, self.greatest = ends
            self._note_scale(scale)


def _sum(of: Summary) -> float:
    if not of.n:
        raise ValueError("no observations")
    return of.total / of.one


def _mean(of: Summary) -> float:
    return of.total / (of.n * of.one)


def _css(of: Summary) -> float:
    return of.spread() / (of.n * of.one_squared)


def _uss(of: Summary) -> float:
    if not of.n:
        raise ValueError("no observations")
    return of.squares / of.one_squared


def _var(of: Summary) -> float:
    n = of.n
    return of.spread() / (n * (n - 1) * of.one_squared)


def _std(of: Summary) -> float:
    # One call for the most frequent statistic, not three.
    n = of.n
    if not n:
        raise ValueError("no observations")
    spread = n * of.squares - of.total * of.total
    return math.sqrt(spread / (n * (n - 1) * of.one_squared))


def _stderr(of: Summary) -> float:
    n = of.n
    return math.sqrt(of.spread() / (n * n * (n - 1) * of.one_squared))


def _cv(of: Summary) -> float:
    return 100 * _std(of) / _mean(of)


Statistic = Callable[[Summary], Number | None]

STATISTICS: Final[dict[str, Statistic]] = {
    "nOut": attrgetter("n"),
    "nmissOut": attrgetter("missing"),
    "minOut": attrgetter("least"),
    "maxOut": attrgetter("greatest"),
    "sumOut": _sum,
    "meanOut": _mean,
    "stdOut": _std,
    "varOut": _var,
    "cssOut": _css,
    "ussOut": _uss,
    "stderrOut": _stderr,
    "cvOut": _cv,
}
"""By the name in the output map; each is rounded once, from exact sums (cvOut from rounded ones).

Raises:
    ArithmeticError or ValueError: the statistic does not exist.
"""

_SQUARES: Final = frozenset({"stdOut", "varOut", "cssOut", "ussOut", "stderrOut", "cvOut"})
_ENDS: Final = frozenset({"minOut", "maxOut"})
