"""Compute windows."""

from collections.abc import Callable, Sequence
from typing import Any

from espha.model.expressions import Run, compile_expression, converter
from espha.model.kinds.compute import ComputeWindow
from espha.model.project import Field
from espha.windows.events import Event
from espha.windows.stage import Moment, Stage, Unit, places


def stages(window: ComputeWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a compute window."""
    return [Compute(window, feeds[0])]


class Compute:
    """Computes the fields that are no keys, of the new row and of the old one."""

    def __init__(self, window: ComputeWindow, feed: tuple[Field, ...]) -> None:
        texts = iter(window.expressions)
        self._columns = [
            _key(field, feed) if field.key else _computed(next(texts), field, feed)
            for field in window.fields
        ]

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Return the same events with computed values."""
        return (tuple([self._event(event) for event in unit]),)

    def _event(self, event: Event) -> Event:
        row = event.values
        values = tuple([convert(run(row)) for run, convert in self._columns])
        return Event(event.opcode, event.flags, values)


Column = tuple[Run, Callable[[Any], Any]]


def _computed(text: str, field: Field, feed: tuple[Field, ...]) -> Column:
    expression = compile_expression(text, feed)
    return expression.run, converter(expression.kind, field.type)


def _key(field: Field, feed: tuple[Field, ...]) -> Column:
    (place,) = places([field.name], feed)
    return (lambda row: row[place]), (lambda value: value)
