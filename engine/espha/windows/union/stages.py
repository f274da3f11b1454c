"""Union windows."""

from collections.abc import Sequence

from espha.model.project import Field
from espha.windows.shared.stage import Moment, Stage, Unit
from espha.windows.union.spec import UnionWindow


def stages(window: UnionWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a union: its index refuses doubles, unless inserts come as upserts.

    Without an index there are no doubles to tell, and all events pass as they are.
    """
    return [Lenient()] if window.stateful and not window.strict else []


class Lenient:
    """Makes upserts of inserts."""

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Return the unit, an insert as an upsert."""
        event = unit[0]
        return ((event._replace(opcode="P"),),) if event.opcode == "I" else (unit,)
