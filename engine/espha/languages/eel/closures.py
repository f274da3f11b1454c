"""Shapes of the functions that an expression becomes.

Each takes a row (the values of an event, in schema order) and returns a value. The common shapes
(a field and a constant, two fields) have functions of their own, because a call costs as much as
the operation. None of them raises, whatever the row holds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from espha.languages.eel.value_types import ValueType

Row = tuple[Any, ...]
Run = Callable[[Row], Any]
Apply = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Typed:
    """A typed expression.

    Attributes:
        type: of its values.
        run: computes the value.
        height: how deep the calls of `run` nest.
        place: which field it is, when it is one.
        constant: whether it is the same for every row, and free of effects.
        value: of a constant.
        folds: a comparison with it ignores case.
    """

    type: ValueType
    run: Run
    height: int = 1
    place: int | None = None
    constant: bool = False
    value: Any = None
    folds: bool = False


def constant(type_: ValueType, value: Any) -> Typed:
    """Return the expression that is always `value`."""
    return Typed(type_, lambda _row: value, constant=True, value=value)


def built(type_: ValueType, operands: Sequence[Typed], run: Run) -> Typed:
    """Return the expression that `run` computes from `operands`; constants are folded."""
    if all(operand.constant for operand in operands):
        return constant(type_, run(()))
    return Typed(type_, run, 1 + max(operand.height for operand in operands))


def bounded(apply: Apply, low: float, high: float, left: Typed, right: Typed) -> Run:
    """Apply to two numbers; null for a null, and for a result that is not from low to high."""
    if left.place is not None and right.constant and right.value is not None:
        return _bounded_field_constant(apply, low, high, left.place, right.value)
    if left.place is not None and right.place is not None:
        return _bounded_fields(apply, low, high, left.place, right.place)
    one, two = left.run, right.run

    def run(row: Row) -> Any:
        first = one(row)
        if first is None:
            return None
        second = two(row)
        if second is None:
            return None
        value = apply(first, second)
        return value if low <= value <= high else None

    return run


def _bounded_field_constant(apply: Apply, low: float, high: float, place: int, two: Any) -> Run:
    def run(row: Row) -> Any:
        first = row[place]
        if first is None:
            return None
        value = apply(first, two)
        return value if low <= value <= high else None

    return run


def _bounded_fields(apply: Apply, low: float, high: float, one: int, two: int) -> Run:
    def run(row: Row) -> Any:
        first = row[one]
        second = row[two]
        if first is None or second is None:
            return None
        value = apply(first, second)
        return value if low <= value <= high else None

    return run


def compared(apply: Apply, left: Typed, right: Typed) -> Run:
    """Compare; 1, 0, or null for a null."""
    if left.place is not None and right.constant and right.value is not None:
        return _compared_field_constant(apply, left.place, right.value)
    if left.place is not None and right.place is not None:
        return _compared_fields(apply, left.place, right.place)
    one, two = left.run, right.run

    def run(row: Row) -> int | None:
        first = one(row)
        if first is None:
            return None
        second = two(row)
        if second is None:
            return None
        return 1 if apply(first, second) else 0

    return run


def _compared_field_constant(apply: Apply, place: int, two: Any) -> Run:
    def run(row: Row) -> int | None:
        first = row[place]
        if first is None:
            return None
        return 1 if apply(first, two) else 0

    return run


def _compared_fields(apply: Apply, one: int, two: int) -> Run:
    def run(row: Row) -> int | None:
        first = row[one]
        second = row[two]
        if first is None or second is None:
            return None
        return 1 if apply(first, second) else 0

    return run


def decided(by: int, runs: Sequence[Run]) -> Run:
    """Three-valued logic: one operand that decides is enough, else a null makes it null.

    Operands behind one that decides are not computed.
    """
    if len(runs) == 2:
        return _decided_by_two(by, *runs)

    def run(row: Row) -> int | None:
        result: int | None = 1 - by
        for part in runs:
            value = part(row)
            if value is None:
                result = None
            elif (1 if value else 0) == by:
                return by
        return result

    return run


def _decided_by_two(by: int, one: Run, two: Run) -> Run:
    other = 1 - by

    def run(row: Row) -> int | None:
        first = one(row)
        if first is not None and (1 if first else 0) == by:
            return by
        second = two(row)
        if second is None:
            return None
        if (1 if second else 0) == by:
            return by
        return None if first is None else other

    return run


def mapped(apply: Apply, operand: Run) -> Run:
    """Apply to one value; null for a null."""

    def run(row: Row) -> Any:
        value = operand(row)
        return None if value is None else apply(value)

    return run


def applied(apply: Apply, operands: Sequence[Run], *, nulls: bool) -> Run:
    """Apply to any number of values; with `nulls` it sees them, else one makes the result null."""
    if len(operands) == 1:
        (one,) = operands
        return (lambda row: apply(one(row))) if nulls else mapped(apply, one)

    def run(row: Row) -> Any:
        values = [operand(row) for operand in operands]
        if not nulls and None in values:
            return None
        return apply(*values)

    return run


def chosen(branches: Sequence[tuple[Run, Run]], otherwise: Run) -> Run:
    """Return the value behind the first condition that is true."""
    if len(branches) == 1:
        ((condition, then),) = branches
        return lambda row: then(row) if condition(row) else otherwise(row)

    def run(row: Row) -> Any:
        for test, value in branches:
            if test(row):
                return value(row)
        return otherwise(row)

    return run
