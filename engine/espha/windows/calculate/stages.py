"""Calculate windows: one algorithm over the events of a window."""

import math
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, Protocol

from espha.model.events import Event, Value
from espha.model.project import Field
from espha.windows.calculate.bins import Histogram, Roc
from espha.windows.calculate.change import ChangeDetection, Mrr
from espha.windows.calculate.fit import DistributionFitting, FitStat
from espha.windows.calculate.pairs import Correlation, LagMonitor, SegmentedCorrelation
from espha.windows.calculate.spec import CalculateWindow
from espha.windows.calculate.summary import Summary
from espha.windows.shared.stage import Moment, Stage, Unit, places

Number = int | float
Settings = Mapping[str, int | float | str]


_DELETES: Final = frozenset({"D", "SD"})
_INFINITE: Final = math.inf


class Algorithm(Protocol):
    """What computes results; made of its settings and the names of the results wanted."""

    def observe(self, values: tuple[Any, ...]) -> Sequence[Sequence[Number | None]]:
        """Take the values of the inputs; return rows of results, None where there is none."""
        ...

    def state(self) -> Any:
        """Return a copy of the state, as plain picklable data."""
        ...

    def restore(self, state: Any) -> None:
        """Become what the algorithm was when `state()` returned `state`."""
        ...


ALGORITHMS: Final[Mapping[str, Callable[[Any, Sequence[str]], Algorithm]]] = {
    "Summary": Summary,
    "Correlation": Correlation,
    "SegmentedCorrelation": SegmentedCorrelation,
    "FitStat": FitStat,
    "MRR": Mrr,
    "Histogram": Histogram,
    "ROC": Roc,
    "ChangeDetection": ChangeDetection,
    "DistributionFitting": DistributionFitting,
    "LagMonitor": LagMonitor,
}


def stages(window: CalculateWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a calculate window."""
    return [Calculate(window, feeds[0])]


class Calculate:
    """Gives the algorithm each new row; deletes and old rows are no observations."""

    def __init__(self, window: CalculateWindow, feed: tuple[Field, ...]) -> None:
        names = [name for input_ in window.inputs for name in input_.fields]
        inputs = places(names, feed)
        first = inputs[0]
        # Most algorithms look at one field.
        self._given: Callable[[tuple[Value, ...]], tuple[Value, ...]] = (
            itemgetter(*inputs) if len(inputs) > 1 else lambda row: (row[first],)
        )
        wanted = {output.field: output.result for output in window.outputs}
        width, sources = len(feed), []
        results: list[str] = []
        self._makes: list[Callable[[Any], Number]] = []
        for field in window.fields:
            if field.name in wanted:
                sources.append(width + len(results))
                results.append(wanted[field.name])
                self._makes.append(int if field.type.startswith("int") else float)
            else:
                sources += places([field.name], feed)
        # Most often the results are appended to the fields of the input as they are.
        self._appended = sources == list(range(width + len(results)))
        self._sources = sources
        self._opcode = "P" if window.upserts else ""
        settings = {setting.name: setting.value for setting in window.settings}
        self._algorithm = ALGORITHMS[window.algorithm](settings, results)

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Return a unit for each row of results."""
        event = unit[0]
        if event.opcode in _DELETES:
            return ()
        row = event.values
        rows = self._algorithm.observe(self._given(row))
        opcode, flags = self._opcode or event.opcode, event.flags
        return [(Event(opcode, flags, self._row(row, results)),) for results in rows]

    def _row(self, row: tuple[Value, ...], results: Sequence[Number | None]) -> tuple[Value, ...]:
        # An infinite result is one that does not exist.
        made = [
            make(result) if result is not None and -_INFINITE < result < _INFINITE else None
            for make, result in zip(self._makes, results, strict=True)
        ]
        values = (*row, *made)
        return values if self._appended else tuple([values[place] for place in self._sources])

    def state(self) -> Any:
        """Return the algorithm's state."""
        return self._algorithm.state()

    def restore(self, state: Any) -> None:
        """Take over the algorithm's state."""
        self._algorithm.restore(state)
