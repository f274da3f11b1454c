"""Sums without rounding.

A running sum of doubles remembers the rounding errors of values that left long ago, and a restored
engine would not have them. So doubles are added as what they are, whole numbers of some power of
two: nothing is lost, and what has left is gone. Only the result is rounded, once.
"""

import math
from typing import Any

Number = int | float


def ratio(value: Number) -> tuple[int, int]:
    """Return (n, k) with value == n / 2**k, exactly."""
    numerator, denominator = value.as_integer_ratio()
    return numerator, denominator.bit_length() - 1


def quotient(numerator: int, denominator: int) -> float | None:
    """Divide, rounded once; null when there is no such double."""
    if not denominator:
        return None
    try:
        return numerator / denominator  # never infinite: the quotient of whole numbers raises
    except OverflowError:
        return None


class ExactSum:
    """A sum of numbers that can be taken out again: `total / 2**scale`."""

    __slots__ = ("scale", "total")

    def __init__(self) -> None:
        self.total = self.scale = 0

    def add(self, value: Number, sign: int = 1) -> None:
        """Add a number; with the sign -1, take it out."""
        numerator, places = ratio(value)
        self.add_ratio(sign * numerator, places)

    def add_ratio(self, numerator: int, places: int) -> None:
        """Add `numerator / 2**places`."""
        if places > self.scale:
            self.total <<= places - self.scale
            self.scale = places
        self.total += numerator << (self.scale - places)

    def value(self, divisor: int = 1) -> float:
        """Return the sum, divided and rounded once.

        Raises:
            ArithmeticError: it is beyond the largest double, or the divisor is 0.
        """
        return self.total / (divisor << self.scale)

    def state(self) -> Any:
        """Return the sum."""
        return (self.total, self.scale)

    def restore(self, state: Any) -> None:
        """Take over a sum."""
        self.total, self.scale = state


class PairSums:
    """Sums over pairs (x, y), for their correlation."""

    __slots__ = ("n", "scale", "x", "xx", "xy", "y", "yy")

    def __init__(self) -> None:
        self.n = self.scale = self.x = self.y = self.xx = self.xy = self.yy = 0

    def add(self, x: Number, y: Number, sign: int = 1) -> None:
        """Add a pair; with the sign -1, take it out."""
        (x, x_places), (y, y_places) = ratio(x), ratio(y)
        most = max(x_places, y_places)
        if most > self.scale:
            self._rescale(most - self.scale)
        x <<= self.scale - x_places
        y <<= self.scale - y_places
        self.n += sign
        self.x += sign * x
        self.y += sign * y
        self.xx += sign * x * x
        self.xy += sign * x * y
        self.yy += sign * y * y

    def _rescale(self, places: int) -> None:
        self.scale += places
        self.x <<= places
        self.y <<= places
        self.xx <<= 2 * places
        self.xy <<= 2 * places
        self.yy <<= 2 * places

    def correlation(self, least: int = 2) -> float | None:
        """Return Pearson's r; None with fewer than `least` pairs, or where x or y is constant."""
        both = self.n * self.xy - self.x * self.y
        spread = (self.n * self.xx - self.x**2) * (self.n * self.yy - self.y**2)
        if self.n < least or not spread:
            return None
        size = math.sqrt(both * both / spread)
        return size if both >= 0 else -size

    def state(self) -> Any:
        """Return the sums."""
        return (self.n, self.scale, self.x, self.y, self.xx, self.xy, self.yy)

    def restore(self, state: Any) -> None:
        """Take over sums."""
        self.n, self.scale, self.x, self.y, self.xx, self.xy, self.yy = state
