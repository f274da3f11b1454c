"""Calculate windows with the algorithm Summary."""

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from espha.model.kinds.calculate import CalculateWindow
from espha.model.project import Field
from espha.windows.events import Event
from espha.windows.stage import Moment, Stage, Unit, places

Number = int | float


def stages(window: CalculateWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a calculate window."""
    return [Summary(window, feeds[0])]


class Summary:
    """Statistics of one field over the last events, this one included.

    Each event computes over the whole window afresh: a running sum would keep rounding errors of
    values that left long ago, and a restored engine would not have them.
    """

    def __init__(self, window: CalculateWindow, feed: tuple[Field, ...]) -> None:
        (self._input,) = places([window.input], feed)
        self._length = window.window_length
        self._values: deque[Number | None] = deque()
        written = {output.field: output.statistic for output in window.outputs}
        width, sources = len(feed), []
        statistics: list[Callable[[Sample], Number | None]] = []
        for field in window.fields:
            if field.name in written:
                sources.append(width + len(statistics))
                statistics.append(_typed(STATISTICS[written[field.name]], field.type))
            else:
                sources += places([field.name], feed)
        # Most often the statistics are appended to the fields of the input as they are.
        self._appended = sources == list(range(width + len(statistics)))
        self._sources, self._statistics = sources, statistics

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Take one observation; deletes and old rows are none, and nothing leaves for them."""
        event = unit[0]
        if event.opcode in {"D", "SD"}:
            return ()
        self._observe(event.values[self._input])  # type: ignore[arg-type]
        sample = Sample(self._values)
        row = event.values + tuple([statistic(sample) for statistic in self._statistics])
        if not self._appended:
            row = tuple([row[place] for place in self._sources])
        return ((Event(event.opcode, event.flags, row),),)

    def _observe(self, value: Number | None) -> None:
        self._values.append(value)
        if len(self._values) > self._length:
            self._values.popleft()

    def state(self) -> Any:
        """Return the observations, oldest first."""
        return tuple(self._values)

    def restore(self, state: Any) -> None:
        """Take over the observations."""
        self._values = deque(state)


class Sample:
    """The window's observations without nulls."""

    def __init__(self, window: Sequence[Number | None]) -> None:
        self.values = [value for value in window if value is not None]
        self.missing = len(window) - len(self.values)

    def n(self) -> int:
        """Return how many there are."""
        return len(self.values)

    def sum(self) -> float:
        """Return the correctly rounded sum."""
        if not self.values:
            raise ValueError("no observations")
        total = sum(self.values)
        # Whole numbers add up exactly; doubles need fsum for that.
        return float(total) if type(total) is int else math.fsum(self.values)

    def mean(self) -> float:
        """Return the mean."""
        return self.sum() / len(self.values)

    def css(self) -> float:
        """Return the sum of squared distances from the mean."""
        mean = self.mean()
        return math.fsum([(value - mean) * (value - mean) for value in self.values])

    def uss(self) -> float:
        """Return the sum of squares."""
        if not self.values:
            raise ValueError("no observations")
        return math.fsum([float(value) * value for value in self.values])

    def var(self) -> float:
        """Return the sample variance (n - 1)."""
        return self.css() / (len(self.values) - 1)

    def std(self) -> float:
        """Return the sample standard deviation."""
        return math.sqrt(self.var())

    def stderr(self) -> float:
        """Return the standard error of the mean."""
        return math.sqrt(self.var() / len(self.values))

    def cv(self) -> float:
        """Return the coefficient of variation in percent."""
        return 100 * self.std() / self.mean()


STATISTICS: Final[dict[str, Callable[[Sample], Number]]] = {
    "nOut": Sample.n,
    "nmissOut": lambda sample: sample.missing,
    "minOut": lambda sample: min(sample.values),
    "maxOut": lambda sample: max(sample.values),
    "sumOut": Sample.sum,
    "meanOut": Sample.mean,
    "stdOut": Sample.std,
    "varOut": Sample.var,
    "cssOut": Sample.css,
    "ussOut": Sample.uss,
    "stderrOut": Sample.stderr,
    "cvOut": Sample.cv,
}


def _typed(statistic: Callable[[Sample], Number], type_: str) -> Callable[[Sample], Number | None]:
    """Return the statistic as a value of the field; null when it does not exist."""
    make = int if type_.startswith("int") else float

    def value(sample: Sample) -> Number | None:
        try:
            result = make(statistic(sample))
        except (ArithmeticError, ValueError):
            # No observation, one where two are needed, a mean of zero, a double overflow.
            return None
        return result if math.isfinite(result) else None

    return value
