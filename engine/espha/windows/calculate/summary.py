"""The algorithm Summary of calculate windows."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from espha.windows.calculate.order import Recent
from espha.windows.calculate.statistics import (
    CUBES,
    ENDS,
    ORDERED,
    SQUARES,
    STATISTICS,
    Statistic,
)
from espha.windows.shared.exact import Number

_LARGEST_POWER = 1024


class Summary:
    """Statistics of one field over the last events, this one included, or over all.

    Sums are exact (see `calculate_exact`), so an event costs the same whatever the length of the
    window. `total` and `squares` are sums of whole numbers: of the values times 2**scale, and of
    their squares; `one` is 2**scale, `one_squared` 4**scale. `cubes` and `fourths` are sums of
    higher powers.
    """

    def __init__(self, settings: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._length: int = settings["windowLength"]
        self.settings = settings
        self._wanted = [STATISTICS[name] for name in wanted]
        self._has_cubes = not CUBES.isdisjoint(wanted)
        self._has_squares = self._has_cubes or not SQUARES.isdisjoint(wanted)
        self._has_ends = not ENDS.isdisjoint(wanted)
        self._has_order = not ORDERED.isdisjoint(wanted)
        self._clear()

    def _clear(self) -> None:
        self.n = self.missing = self.total = self.squares = self.cubes = self.fourths = 0
        self.recent = Recent(self._length)
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

    def _or_null(self, statistic: Statistic) -> Number | None:
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
                self._add_powers(scaled, 1)
        if self._has_order:
            self.recent.put(value)
        if self._length:
            self._window.append(value)
            self._scaled.append(scaled)
            if len(self._window) > self._length:
                self._leave()
        if self._has_ends:
            self._number += 1
            self._note_ends(value)

    def _add_powers(self, scaled: int, sign: int) -> None:
        square = scaled * scaled
        self.squares += sign * square
        if self._has_cubes:
            self.cubes += sign * square * scaled
            self.fourths += sign * square * square

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
            self.cubes <<= 3 * more
            self.fourths <<= 4 * more
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
            self._add_powers(scaled, -1)

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
        sums = (self.n, self.missing, self.total, self.squares, self.cubes, self.fourths)
        return (*sums, self.scale, self.least, self.greatest, self.recent.state())

    def restore(self, state: Any) -> None:
        """Take over the observations."""
        self._clear()
        if self._length:
            for value in state:
                self._put(value)
            return
        self.n, self.missing, self.total, self.squares, self.cubes, self.fourths, *rest = state
        scale, self.least, self.greatest, recent = rest
        self._note_scale(scale)
        self.recent.restore(recent)
