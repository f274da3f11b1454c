"""Filter windows."""

import re
from collections.abc import Sequence
from typing import Any, Final, Protocol

from espha.languages.eel import Language
from espha.model.events import BadRecord, Event
from espha.model.project import Field
from espha.scripts.world import World
from espha.windows.filter.spec import FilterWindow
from espha.windows.shared.script import ScriptPredicate
from espha.windows.shared.stage import Moment, SettlingStage, Stage, Unit
from espha.windows.shared.world import Sharing

_HEAD: Final = re.compile(r"\besp_(opcode|flags)\b", re.IGNORECASE)
"""What an expression calls the opcode and the flags of the event."""


class Predicate(Protocol):
    """What decides whether events pass."""

    def passes(self, events: Sequence[Event], at: Moment) -> Sequence[object]:
        """Return something true for each event that passes, something false for each other.

        Raises:
            BadRecord: it cannot be said; the predicate is as it was before.
        """

    def state(self) -> Any:
        """Return what the predicate remembers, as plain picklable data."""

    def restore(self, state: Any) -> None:
        """Remember what the predicate remembered when `state()` returned `state`."""


def stages(window: FilterWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a filter window."""
    if window.code is None:
        by_head = bool(_HEAD.search(window.expression))
        return [Filter(Condition(window), window.stateful, by_head)]
    predicate = ScriptPredicate(window.code, window.path)
    kind = ScriptFilter if window.code.language == "python" else Filter
    return [kind(predicate, window.stateful)]


class Condition:
    """The judgement of an expression."""

    def __init__(self, window: FilterWindow) -> None:
        self._language = Language(window.fields, window.initialize)
        self._run = self._language.compile(window.expression).run

    def passes(self, events: Sequence[Event], at: Moment) -> Sequence[object]:
        """Return the values of the expression; the variables it keeps stay when it fails."""
        run, clock = self._run, at.clock
        if not self._language.keeps:
            return [run(event, clock) for event in events]
        before = self._language.state()
        try:
            return [run(event, clock) for event in events]
        except BadRecord:
            self._language.restore(before)
            raise

    def state(self) -> Any:
        """Return the variables that outlive an event."""
        return self._language.state()

    def restore(self, state: Any) -> None:
        """Take over the variables."""
        self._language.restore(state)


class Filter:
    """Lets events through that a predicate lets pass.

    An update can move a row into the filter or out of it, so it can become an insert or a delete.
    A stateful filter knows its rows and leaves that to its index; a stateless one needs the old
    row, that is an update block. So does one that asks for the opcode or the flags of an event:
    that it holds a row says nothing of the events to come.
    """

    def __init__(self, predicate: Predicate, stateful: bool, by_head: bool = False) -> None:
        self._predicate = predicate
        self._stateful = stateful
        self._by_head = by_head

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Return what is left of the unit."""
        event = unit[0]
        if self._stateful and event.opcode != "I":
            if self._by_head:
                return self._judged(unit, at)
            return ((self._index_change(event, at),),)
        if len(unit) == 1:
            return (unit,) if self._predicate.passes(unit, at)[0] else ()
        passes, passed = self._predicate.passes(unit, at)
        if passes and passed:
            return (unit,)
        if passes:
            return ((event._replace(opcode="I"),),)
        return ((unit[1],),) if passed else ()

    def _index_change(self, event: Event, at: Moment) -> Event:
        """Say what should be in the index, whatever is there now."""
        if event.opcode in {"D", "SD"} or not self._predicate.passes((event,), at)[0]:
            return event._replace(opcode="SD")
        return event._replace(opcode="P")

    def share(self, world: World) -> None:
        """Give a script its world."""
        if isinstance(self._predicate, Sharing):
            self._predicate.share(world)

    def _judged(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Say what should be in the index by the events alone."""
        event, passes = unit[0], self._predicate.passes(unit, at)
        if passes[0]:
            return ((event._replace(opcode="SD" if event.opcode in {"D", "SD"} else "P"),),)
        return ((unit[1]._replace(opcode="SD"),),) if len(unit) > 1 and passes[1] else ()

    def settle(self) -> None:
        """Bring here what the predicate remembers elsewhere."""
        if isinstance(self._predicate, SettlingStage):
            self._predicate.settle()

    def state(self) -> Any:
        """Return what the predicate remembers."""
        return self._predicate.state()

    def restore(self, state: Any) -> None:
        """Give the predicate its memory back."""
        self._predicate.restore(state)


class ScriptFilter(Filter):
    """A filter whose script is asked for many events at once."""

    def __init__(self, predicate: ScriptPredicate, stateful: bool) -> None:
        super().__init__(predicate, stateful)
        self._in_block = predicate.in_block

    def process_block(
        self, units: Sequence[Unit], moments: Sequence[Moment]
    ) -> Sequence[Sequence[Unit] | BadRecord]:
        """Return what is left of each unit, or why it is refused."""
        return self._in_block(self.process, self._stateful, units, moments)
