"""Sums without rounding, so that what was added can be taken out again without a trace."""

from espha.model.literals import LARGEST


class Exact:
    """A sum of doubles and whole numbers: `total` / 2 ** `bits`."""

    __slots__ = ("bits", "total")

    def __init__(self) -> None:
        self.total, self.bits = 0, 0

    def add(self, numerator: int, bits: int) -> None:
        """Add `numerator` / 2 ** `bits`."""
        if bits > self.bits:
            self.total <<= bits - self.bits
            self.bits = bits
        self.total += numerator << (self.bits - bits)


def parts(value: float) -> tuple[int, int]:
    """Return a finite number as (numerator, bits): numerator / 2 ** bits."""
    numerator, denominator = value.as_integer_ratio()
    return numerator, denominator.bit_length() - 1


def quotient(numerator: int, denominator: int) -> float | None:
    """Divide, rounded once; null when there is no such double."""
    if not denominator:
        return None
    try:
        value = numerator / denominator
    except OverflowError:
        return None
    return value if -LARGEST <= value <= LARGEST else None
