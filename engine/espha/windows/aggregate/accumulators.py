"""What aggregate functions keep of a group.

Most of them keep something that follows from the rows of the group, in the order in which they
came: a restored engine gets it by adding the rows again. Only those of a history (`Last` and its
like) have a state of their own.
"""

import math
from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, Protocol

from espha.languages.eel.value_types import cast
from espha.model.literals import whole
from espha.windows.aggregate.functions import Call
from espha.windows.aggregate.histories import CountOpcodes, Lag, LastOpcode
from espha.windows.shared.exact import ExactSum, quotient, ratio

Arguments = tuple[Any, ...]
Key = tuple[Any, ...]


class Accumulator(Protocol):
    """One aggregate function over one group."""

    def change(self, key: Key, old: Arguments | None, new: Arguments | None) -> None:
        """Take a row's old arguments out (None: it is new) and its new ones in (None: it goes)."""
        ...

    def value(self) -> Any:
        """Return the result; null when there is none."""
        ...

    def state(self) -> Any:
        """Return what does not follow from the rows of the group, as plain data; mostly None."""
        ...

    def restore(self, state: Any) -> None:
        """Take over what `state` returned, after the rows were added again."""
        ...


class Multiset:
    """Base of what only depends on which values there are, without nulls."""

    def change(self, key: Key, old: Arguments | None, new: Arguments | None) -> None:
        """Take values out and in."""
        if old is not None and None not in old:
            self.count(old, -1)
        if new is not None and None not in new:
            self.count(new, 1)

    def count(self, arguments: Arguments, sign: int) -> None:
        """Put arguments in (1), or take them out (-1)."""
        raise NotImplementedError

    def state(self) -> Any:
        """Return nothing: all follows from the rows."""
        return None

    def restore(self, state: Any) -> None:
        """Do nothing."""


class Count(Multiset):
    """How many rows have a value."""

    def __init__(self) -> None:
        self._rows = 0

    def count(self, arguments: Arguments, sign: int) -> None:
        """Count a row."""
        self._rows += sign

    def value(self) -> int:
        """Return the number."""
        return self._rows


class CountRows(Count):
    """How many rows there are, nulls or not."""

    def change(self, key: Key, old: Arguments | None, new: Arguments | None) -> None:
        """Count a row."""
        self._rows += (new is not None) - (old is not None)


class CountNull(Count):
    """How many rows have a null."""

    def change(self, key: Key, old: Arguments | None, new: Arguments | None) -> None:
        """Count nulls."""
        if old is not None and None in old:
            self.count(old, -1)
        if new is not None and None in new:
            self.count(new, 1)


class Sum(Multiset):
    """The sum; whole numbers of more than 64 bits are null."""

    def __init__(self, kind: str) -> None:
        self._whole = kind != "double"
        self._rows = 0
        self._sum = ExactSum()

    def count(self, arguments: Arguments, sign: int) -> None:
        """Add or subtract."""
        numerator, bits = ratio(arguments[0])
        self._rows += sign
        self._sum.add_ratio(sign * numerator, bits)

    def value(self) -> float | None:
        """Return the sum, rounded once."""
        if not self._rows:
            return None
        if self._whole:
            return whole(self._sum.total)
        return quotient(self._sum.total, 1 << self._sum.scale)


class Average(Sum):
    """The mean."""

    def value(self) -> float | None:
        """Return the mean, rounded once."""
        return quotient(self._sum.total, self._rows << self._sum.scale)


class Variance(Multiset):
    """The sample variance (n - 1), or its root; 0 for one value."""

    def __init__(self, *, root: bool) -> None:
        self._root = root
        self._rows = 0
        self._sum, self._squares = ExactSum(), ExactSum()

    def count(self, arguments: Arguments, sign: int) -> None:
        """Add or subtract a value and its square."""
        numerator, bits = ratio(arguments[0])
        self._rows += sign
        self._sum.add_ratio(sign * numerator, bits)
        self._squares.add_ratio(sign * numerator * numerator, 2 * bits)

    def value(self) -> float | None:
        """Return the variance, rounded once, or the root of that."""
        rows, sum_, squares = self._rows, self._sum, self._squares
        if rows < 2:
            return 0.0 if rows else None
        # n * Q - S * S over n * (n - 1), on the denominator of the squares or of S * S.
        bits = max(squares.scale, 2 * sum_.scale)
        spread = (rows * squares.total) << (bits - squares.scale)
        spread -= (sum_.total * sum_.total) << (bits - 2 * sum_.scale)
        variance = quotient(spread, (rows * (rows - 1)) << bits)
        return math.sqrt(variance) if self._root and variance is not None else variance


class WeightedAverage(Multiset):
    """The mean of the second argument, weighted by the first; null when the weights sum to 0."""

    def __init__(self) -> None:
        self._weights, self._products = ExactSum(), ExactSum()

    def count(self, arguments: Arguments, sign: int) -> None:
        """Add or subtract weight and product."""
        weight, weight_bits = ratio(arguments[0])
        number, bits = ratio(arguments[1])
        self._weights.add_ratio(sign * weight, weight_bits)
        self._products.add_ratio(sign * weight * number, weight_bits + bits)

    def value(self) -> float | None:
        """Return the mean, rounded once."""
        weights, products = self._weights, self._products
        return quotient(products.total << weights.scale, weights.total << products.scale)


class Counted(Multiset):
    """How often each value is there, and the different ones in order."""

    def __init__(self) -> None:
        self._counts: dict[Any, int] = {}
        self._sorted: list[Any] = []

    def count(self, arguments: Arguments, sign: int) -> None:
        """Count a value."""
        value = arguments[0]
        before = self._counts.get(value, 0)
        if before + sign:
            self._counts[value] = before + sign
        else:
            del self._counts[value]
        self.moved(value, before, before + sign)

    def moved(self, value: Any, before: int, after: int) -> None:
        """Keep the order; a value is there so often now."""
        if not before:
            insort(self._sorted, value)
        elif not after:
            del self._sorted[bisect_left(self._sorted, value)]


class Minimum(Counted):
    """The smallest value."""

    def value(self) -> Any:
        """Return it."""
        return self._sorted[0] if self._sorted else None


class Maximum(Counted):
    """The largest value."""

    def value(self) -> Any:
        """Return it."""
        return self._sorted[-1] if self._sorted else None


class Range(Counted):
    """The largest value minus the smallest one."""

    def value(self) -> Any:
        """Return it; null when it is too large."""
        if not self._sorted:
            return None
        span = self._sorted[-1] - self._sorted[0]
        if isinstance(span, int):
            return whole(span)
        return span if math.isfinite(span) else None


class Mode(Counted):
    """The most frequent value; of several the smallest one."""

    def moved(self, value: Any, before: int, after: int) -> None:
        """Keep (-count, value) in order."""
        if before:
            del self._sorted[bisect_left(self._sorted, (-before, value))]
        if after:
            insort(self._sorted, (-after, value))

    def value(self) -> Any:
        """Return it."""
        return self._sorted[0][1] if self._sorted else None


class Distinct(Counted):
    """How many different values there are."""

    def moved(self, value: Any, before: int, after: int) -> None:
        """Need no order."""

    def value(self) -> int:
        """Return the number."""
        return len(self._counts)


class Ordered:
    """Base of what depends on the order in which the rows came; an update keeps its place."""

    def __init__(self) -> None:
        self._rows: OrderedDict[Key, Any] = OrderedDict()

    def change(self, key: Key, old: Arguments | None, new: Arguments | None) -> None:
        """Note or forget a row."""
        if new is None:
            self._rows.pop(key, None)
        else:
            self._rows[key] = new[0]

    def state(self) -> Any:
        """Return nothing: all follows from the rows."""
        return None

    def restore(self, state: Any) -> None:
        """Do nothing."""


class First(Ordered):
    """The value of the row that came first, of those that are there."""

    def value(self) -> Any:
        """Return it."""
        return next(iter(self._rows.values()), None)


class Concatenation(Ordered):
    """All values that have a text, in the order in which the rows came."""

    def __init__(self, kind: str, separator: str) -> None:
        super().__init__()
        self._text, self._separator = cast(kind, "string"), separator

    def value(self) -> str | None:
        """Return them as one text."""
        # A date beyond the calendar has no text.
        texts = [self._text(value) for value in self._rows.values()]
        there = [text for text in texts if text is not None]
        return self._separator.join(there) if there else None


_MAKERS: Final[dict[str, Callable[[Call], Accumulator]]] = {
    "sum": lambda call: Sum(call.kinds[0]),
    "ave": lambda call: Average(call.kinds[0]),
    "min": lambda call: Minimum(),
    "max": lambda call: Maximum(),
    "range": lambda call: Range(),
    "std": lambda call: Variance(root=True),
    "var": lambda call: Variance(root=False),
    "wave": lambda call: WeightedAverage(),
    "count": lambda call: CountRows(),
    "countnonnull": lambda call: Count(),
    "countnull": lambda call: CountNull(),
    "countdistinct": lambda call: Distinct(),
    "countopcodes": lambda call: CountOpcodes(str(call.constant)),
    "lastopcode": lambda call: LastOpcode(),
    "mode": lambda call: Mode(),
    "first": lambda call: First(),
    "last": lambda call: Lag(0),
    "lastnondelete": lambda call: Lag(0, deletes=False),
    "lag": lambda call: Lag(int(call.constant or 0)),
    "cat": lambda call: Concatenation(call.kinds[0], str(call.constant)),
}


class Timed:
    """A function that starts afresh when an event comes some time after the first one.

    The last argument is the time of the event in microseconds. Rows of an earlier time do not
    count any more, and their deletes do not either. Deletes and null times start nothing.
    """

    def __init__(self, make: Callable[[], Accumulator], seconds: float) -> None:
        self._make, self._length = make, seconds * 1_000_000
        self._start: float | None = None
        self._rows: dict[Key, Arguments] = {}
        self._inner = make()

    def change(self, key: Key, old: Arguments | None, new: Arguments | None) -> None:
        """Pass on what belongs to the time that runs."""
        if new is None:
            counted = self._rows.pop(key, None)
            if counted is not None:
                self._inner.change(key, counted, None)
            return
        time, arguments = new[-1], new[:-1]
        if time is not None and (self._start is None or time >= self._start + self._length):
            self._start, self._rows, self._inner = time, {}, self._make()
        self._inner.change(key, self._rows.get(key), arguments)
        self._rows[key] = arguments

    def value(self) -> Any:
        """Return the result since the start."""
        return self._inner.value()

    def state(self) -> Any:
        """Return the start, what counts since then, and the state of the plain function."""
        return self._start, tuple(self._rows.items()), self._inner.state()

    def restore(self, state: Any) -> None:
        """Take over a state, instead of all that was added."""
        self._start, rows, inner = state
        self._rows, self._inner = dict(rows), self._make()
        for key, arguments in rows:
            self._inner.change(key, None, arguments)
        self._inner.restore(inner)


def accumulator_of(call: Call) -> Accumulator:
    """Return what a call keeps of a group, with nothing in it."""
    make = _MAKERS[call.function]
    if call.seconds is None:
        return make(call)
    return Timed(lambda: make(call), call.seconds)
