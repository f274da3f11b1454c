"""Filter windows."""

from espha.model.expressions import compile_expression
from espha.model.project import FilterWindow
from espha.windows.events import Event
from espha.windows.stage import Block, Journal


class Filter:
    """Lets events through when the expression is neither zero nor null.

    An update can move a row into the filter or out of it, so it can become an insert or a delete.
    A stateful filter knows its rows and leaves that to its index; a stateless one needs the old
    row, that is an update block.
    """

    def __init__(self, window: FilterWindow) -> None:
        self._passes = compile_expression(window.expression, window.fields).run
        self._stateful = window.stateful

    def process(self, block: Block, clock: int, journal: Journal) -> Block:
        """Return what is left of the block."""
        event = block[0]
        passes = bool(self._passes(event.values))
        if self._stateful and event.opcode != "I":
            return (_wish(event, passes),)
        if len(block) == 1:
            return block if passes else ()
        old = block[1]
        passed = bool(self._passes(old.values))
        if passes and passed:
            return block
        if passes:
            return (event._replace(opcode="I"),)
        return (old,) if passed else ()


def _wish(event: Event, passes: bool) -> Event:
    """Say what should be in the index, whatever is there now."""
    if event.opcode in {"D", "SD"} or not passes:
        return event._replace(opcode="SD")
    return event._replace(opcode="P")
