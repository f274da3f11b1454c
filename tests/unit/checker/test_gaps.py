"""Gaps in the output, and the faults that they belong to."""

from datetime import UTC, datetime

import pytest

from espha.checker.gaps import Fault, after, longest, parse_fault


def test_the_longest_gap_belongs_to_its_fault() -> None:
    arrivals = [0.0, 0.1, 0.2, 1.2, 1.3, 5.3, 5.4]
    first, second = Fault(0.25, "first"), Fault(1.35, "second")
    found = dict(after(arrivals, [second, first]))
    assert found[first] == pytest.approx(1.0)
    assert found[second] == pytest.approx(4.0)
    assert longest(arrivals) == pytest.approx(4.0)


def test_a_fault_after_which_nothing_came_has_no_gap() -> None:
    assert after([0.0, 0.1], [Fault(0.2, "end")]) == [(Fault(0.2, "end"), None)]


def test_a_gap_a_minute_later_is_not_the_faults() -> None:
    arrivals = [0.0, 1.0, *(float(second) for second in range(2, 80)), 100.0]
    assert after(arrivals, [Fault(0.5, "f")])[0][1] == pytest.approx(1.0)


def test_fewer_than_two_arrivals_have_no_gap() -> None:
    assert longest([]) is None
    assert longest([1.0]) is None


def test_fault_lines() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()
    assert parse_fault("2026-01-02T03:04:05 pod killed\n") == Fault(moment, "pod killed")
    assert parse_fault("2026-01-02T04:04:05+01:00") == Fault(moment, "fault")
    assert parse_fault("17.5 x y") == Fault(17.5, "x y")
    with pytest.raises(ValueError, match="expected a time"):
        parse_fault("yesterday x")
