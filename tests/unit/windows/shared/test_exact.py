"""Sums without rounding, against exact fractions."""

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from espha.windows.shared.exact import ExactSum, Number, quotient, ratio

numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63 - 1)


def nearest(value: Fraction) -> float:
    """Return the double next to a fraction; infinite beyond the largest one."""
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return math.inf


@given(numbers)
def test_a_ratio_is_its_number(value: Number) -> None:
    numerator, places = ratio(value)
    assert Fraction(numerator, 2**places) == Fraction(value)


@given(st.lists(st.tuples(numbers, st.booleans())), st.integers(1, 1_000))
def test_a_sum_is_the_fraction_rounded_once_and_what_left_is_gone(
    changes: list[tuple[Number, bool]], divisor: int
) -> None:
    sums, expected = ExactSum(), Fraction(0)
    for value, stays in changes:
        sums.add(value)
        if stays:
            expected += Fraction(value)
    for value, stays in changes:
        if not stays:
            sums.add(value, -1)
    assert Fraction(sums.total, 2**sums.scale) == expected
    rounded = nearest(expected / divisor)
    found = quotient(sums.total, divisor << sums.scale)
    assert found == (rounded if math.isfinite(rounded) else None)
    if math.isfinite(rounded):
        assert sums.value(divisor) == rounded
    again = ExactSum()
    again.restore(sums.state())
    assert (again.total, again.scale) == (sums.total, sums.scale)


@given(st.integers(), st.integers(0, 2_000), numbers)
def test_a_ratio_is_added_like_its_number(numerator: int, places: int, value: Number) -> None:
    sums = ExactSum()
    sums.add(value)
    sums.add_ratio(numerator, places)
    expected = Fraction(value) + Fraction(numerator, 2**places)
    assert Fraction(sums.total, 2**sums.scale) == expected
