"""The parts that a running window is made of."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from espha.model.project import Field
from espha.windows.events import Event

Block = tuple[Event, ...]
"""What one event becomes in a window: nothing, one event, or an update block.

An update block is the new row (U) followed by the old row (D). It stays together on its way.
"""

Journal = list[Callable[[], object]]
"""How to take back what an event changed, oldest change first; see `espha.kernel`."""


class Stage(Protocol):
    """One step inside a window, for example its transformation or its index."""

    def process(self, block: Block, clock: int, journal: Journal) -> Block:
        """Return what leaves the stage.

        Args:
            block: what comes in; never empty.
            clock: milliseconds since 1970, from the order record.
            journal: gets an undo for every change of state.

        Raises:
            BadRecord: the block is refused.
        """
        ...


class StatefulStage(Stage, Protocol):
    """A stage that remembers."""

    def state(self) -> Any:
        """Return a copy of the state, as plain picklable data."""
        ...

    def restore(self, state: Any) -> None:
        """Become what the stage was when `state()` returned `state`."""
        ...


class Collapse:
    """Makes one U of an update block (`collapse-updates`)."""

    def process(self, block: Block, clock: int, journal: Journal) -> Block:
        """Keep only the new row."""
        return block[:1]


def places(names: Iterable[str], fields: Iterable[Field]) -> list[int]:
    """Return where in `fields` the fields `names` stand."""
    by_name = {field.name: place for place, field in enumerate(fields)}
    return [by_name[name] for name in names]
