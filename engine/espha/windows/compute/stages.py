"""Compute windows."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from espha.languages.eel import Language, converter
from espha.languages.eel.value_types import same
from espha.model.events import BadRecord, Event, Value
from espha.model.project import Field
from espha.scripts.world import World
from espha.windows.compute.spec import ComputeWindow
from espha.windows.shared.script import ScriptProjection
from espha.windows.shared.stage import Moment, SettlingStage, Stage, Unit, places
from espha.windows.shared.world import Sharing

Row = tuple[Value, ...]


class Projection(Protocol):
    """What computes rows."""

    def rows(self, events: Sequence[Event], at: Moment) -> Sequence[Row]:
        """Return the row of each event, in the order of the window's schema.

        Raises:
            BadRecord: it cannot be computed; the projection is as it was before.
        """

    def state(self) -> Any:
        """Return what the projection remembers, as plain picklable data."""

    def restore(self, state: Any) -> None:
        """Remember what the projection remembered when `state()` returned `state`."""


def stages(window: ComputeWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a compute window."""
    if window.code is None:
        expressions = FieldExpressions(window, feeds[0])
        return [Compute(expressions, window.fields, feeds[0], window.stateful)]
    script = ScriptProjection(window.code, window.path, window.fields, feeds[0])
    kind = ScriptCompute if window.code.language == "python" else Compute
    return [kind(script, window.fields, feeds[0], window.stateful)]


class FieldExpressions:
    """The projection of one expression for each field that is no key."""

    def __init__(self, window: ComputeWindow, feed: tuple[Field, ...]) -> None:
        self._language = Language(feed, window.initialize)
        texts = iter(window.expressions)
        self._columns = [
            self._key(field, feed) if field.key else self._computed(next(texts), field)
            for field in window.fields
        ]

    def _key(self, field: Field, feed: tuple[Field, ...]) -> Callable[..., Any]:
        (place,) = places([field.name], feed)
        return lambda event, _clock: event.values[place]

    def _computed(self, text: str, field: Field) -> Callable[..., Any]:
        expression = self._language.compile(text)
        run, convert = expression.run, converter(expression.type, field.type)
        if convert is same:
            return run
        return lambda event, clock: convert(run(event, clock))

    def rows(self, events: Sequence[Event], at: Moment) -> Sequence[Row]:
        """Return the rows; the variables that expressions keep stay when one of them fails."""
        if not self._language.keeps:
            return self._rows(events, at.clock)
        before = self._language.state()
        try:
            return self._rows(events, at.clock)
        except BadRecord:
            self._language.restore(before)
            raise

    def _rows(self, events: Sequence[Event], clock: int) -> list[Row]:
        columns = self._columns
        return [tuple([column(event, clock) for column in columns]) for event in events]

    def state(self) -> Any:
        """Return the variables that outlive an event."""
        return self._language.state()

    def restore(self, state: Any) -> None:
        """Take over the variables."""
        self._language.restore(state)


class Compute:
    """Computes the fields that are no keys.

    A stateful window keeps what it computed: of an update only the new row is computed, and for a
    delete nothing, since its index knows the old row. A stateless one computes both rows of an
    update, and the row of a delete.
    """

    def __init__(
        self,
        projection: Projection,
        fields: tuple[Field, ...],
        feed: tuple[Field, ...],
        stateful: bool,
    ) -> None:
        self._projection = projection
        self._stateful = stateful
        self._key = [places([field.name], feed)[0] if field.key else None for field in fields]

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Return the same events with computed values."""
        if self._stateful:
            event = unit[0]
            if event.opcode in {"D", "SD"}:
                return ((event._replace(values=self._key_of(event.values)),),)
            unit = (event,)
        rows = self._projection.rows(unit, at)
        if len(rows) == 1:
            event = unit[0]
            return ((Event(event.opcode, event.flags, rows[0]),),)
        pairs = zip(unit, rows, strict=True)
        return (tuple([Event(event.opcode, event.flags, row) for event, row in pairs]),)

    def _key_of(self, values: Row) -> Row:
        return tuple([None if place is None else values[place] for place in self._key])

    def share(self, world: World) -> None:
        """Give a script its world."""
        if isinstance(self._projection, Sharing):
            self._projection.share(world)

    def settle(self) -> None:
        """Bring here what the projection remembers elsewhere."""
        if isinstance(self._projection, SettlingStage):
            self._projection.settle()

    def state(self) -> Any:
        """Return what the projection remembers."""
        return self._projection.state()

    def restore(self, state: Any) -> None:
        """Give the projection its memory back."""
        self._projection.restore(state)


class ScriptCompute(Compute):
    """Computes fields by a script that is asked for many events at once."""

    def __init__(
        self,
        projection: ScriptProjection,
        fields: tuple[Field, ...],
        feed: tuple[Field, ...],
        stateful: bool,
    ) -> None:
        super().__init__(projection, fields, feed, stateful)
        self._in_block = projection.in_block

    def process_block(
        self, units: Sequence[Unit], moments: Sequence[Moment]
    ) -> Sequence[Sequence[Unit] | BadRecord]:
        """Return the events of each unit with computed values, or why it is refused."""
        return self._in_block(self.process, self._stateful, units, moments)
