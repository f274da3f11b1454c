"""Calculate windows: one algorithm over the events of a window."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final, Protocol, cast

from espha.model.events import Value, event_of
from espha.model.project import Field
from espha.windows.calculate.contract import Algorithm, Settings
from espha.windows.calculate.declared import ALGORITHMS
from espha.windows.calculate.requests import Requests
from espha.windows.calculate.rows import RowMaker, Take, Writer, looker
from espha.windows.calculate.spec import CalculateWindow
from espha.windows.shared.stage import Moment, Stage, Unit

_DELETES: Final = frozenset({"D", "SD"})


class Computation(Protocol):
    """What computes results; made of its settings and the names of the results wanted."""

    def observe(self, values: tuple[Any, ...]) -> Sequence[Sequence[Any]]:
        """Take the values of the inputs, in the order of the declaration.

        Returns:
            Rows of results, each in the order of those wanted; None for one that does not exist.
        """
        ...

    def state(self) -> Any:
        """Return a copy of the state, as plain picklable data."""
        ...

    def restore(self, state: Any) -> None:
        """Become what the algorithm was when `state()` returned `state`."""
        ...


def _code(algorithm: Algorithm) -> Callable[[Settings, Sequence[str]], Computation]:
    """Return what makes the computation of an algorithm; its module is imported by the call."""
    module, _, name = algorithm.code.partition(":")
    return cast(
        Callable[[Settings, Sequence[str]], Computation],
        getattr(import_module(f"espha.windows.calculate.{module}"), name),
    )


def stages(window: CalculateWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a calculate window."""
    return [Calculate(window, feeds)]


class Calculate:
    """Gives the algorithm each new row; deletes and old rows are no observations."""

    def __init__(self, window: CalculateWindow, feeds: Sequence[tuple[Field, ...]]) -> None:
        algorithm = ALGORITHMS[window.algorithm]
        self._make = _code(algorithm)
        self._settings = dict(window.settings)
        self._writer = Writer(
            window.outputs,
            [name for name, result in algorithm.results.items() if result.many],
            window.fields,
        )
        many = [role.many for role in algorithm.inputs.values()]
        # By port, of those that bring data: what is looked at, and what makes a row.
        self._ports: list[tuple[Take, Callable[..., tuple[Value, ...]]] | None] = [
            None
            if port in window.requests
            else (
                looker(window.inputs, many, feed),
                RowMaker(window.fields, self._writer.fields, feed).row,
            )
            for port, feed in enumerate(feeds)
        ]
        self._write = self._writer.values
        self._feeds = feeds
        self._requests = Requests(algorithm, {name: len(slots) for name, slots in window.inputs})
        self._opcode = "P" if window.upserts else ""
        self._begin()

    def _begin(self) -> None:
        self._algorithm = self._make(self._settings, self._writer.wanted)
        self._observe = self._algorithm.observe

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Return a unit for each row of results."""
        opcode, flags, row = unit[0]
        if opcode in _DELETES:
            return ()
        port = self._ports[at.port]
        if port is None:
            self._request(row, self._feeds[at.port])
            return ()
        look, made = port
        rows = self._observe(look(row))
        opcode, write = self._opcode or opcode, self._write
        if len(rows) == 1:  # most often
            return ((event_of((opcode, flags, made(row, write(rows[0])))),),)
        return [(event_of((opcode, flags, made(row, write(results)))),) for results in rows]

    def _request(self, row: tuple[Value, ...], fields: Sequence[Field]) -> None:
        """Take a request; with other settings the algorithm begins anew."""
        settings = self._requests.take(row, fields, self._settings)
        if settings is not None:
            self._settings = settings
            self._begin()

    def state(self) -> Any:
        """Return the settings, a request that has not ended, and the algorithm's state."""
        return (dict(self._settings), self._requests.state(), self._algorithm.state())

    def restore(self, state: Any) -> None:
        """Take over settings and the algorithm's state."""
        settings, pairs, algorithm = state
        self._settings = dict(settings)
        self._requests.restore(pairs)
        self._begin()
        self._algorithm.restore(algorithm)
