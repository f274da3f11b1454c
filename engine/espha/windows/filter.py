"""Filter windows."""

from collections.abc import Sequence

from espha.model.expressions import compile_expression
from espha.model.kinds.filter import FilterWindow
from espha.model.project import Field
from espha.windows.events import Event
from espha.windows.stage import Moment, Stage, Unit


def stages(window: FilterWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a filter window."""
    return [Filter(window)]


class Filter:
    """Lets events through when the expression is neither zero nor null.

    An update can move a row into the filter or out of it, so it can become an insert or a delete.
    A stateful filter knows its rows and leaves that to its index; a stateless one needs the old
    row, that is an update block.
    """

    def __init__(self, window: FilterWindow) -> None:
        self._passes = compile_expression(window.expression, window.fields).run
        self._stateful = window.stateful

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Return what is left of the unit."""
        event = unit[0]
        passes = bool(self._passes(event.values))
        if self._stateful and event.opcode != "I":
            return ((_wish(event, passes),),)
        if len(unit) == 1:
            return (unit,) if passes else ()
        old = unit[1]
        passed = bool(self._passes(old.values))
        if passes and passed:
            return (unit,)
        if passes:
            return ((event._replace(opcode="I"),),)
        return ((old,),) if passed else ()


def _wish(event: Event, passes: bool) -> Event:
    """Say what should be in the index, whatever is there now."""
    if event.opcode in {"D", "SD"} or not passes:
        return event._replace(opcode="SD")
    return event._replace(opcode="P")
