"""The parts that a running window is made of."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from espha.model.events import BadRecord, Event
from espha.model.project import Field

Unit = tuple[Event, ...]
"""What a window handles as a whole: one event, or an update block.

An update block is the new row (U) followed by the old row (D). It stays together on its way.
"""


class Moment:
    """When a unit comes, and from where.

    Attributes:
        clock: milliseconds since 1970, from the order record; never going back.
        port: which of the window's inputs, as an index into its edges in the order of the XML.
        token: number of the source event that led here, from 0; the same on all ways of a fork.
    """

    __slots__ = ("clock", "port", "token")

    def __init__(self, clock: int = 0, port: int = 0, token: int = 0) -> None:
        self.clock, self.port, self.token = clock, port, token


class Stage(Protocol):
    """One step inside a window, for example its transformation or its index."""

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Return the units that leave the stage, in order.

        Args:
            unit: what comes in; never empty.
            at: valid during this call only.

        Raises:
            BadRecord: the unit is refused; the stage is as it was before.
        """
        ...


@runtime_checkable
class StatefulStage(Stage, Protocol):
    """A stage that remembers."""

    def state(self) -> Any:
        """Return the state, as plain data (`espha.recovery.plain`), without any set.

        It may share what the stage itself holds: it is to be read before the stage processes
        anything else. Of equal states the data are equal, with all orders in them, whatever led
        there.
        """
        ...

    def restore(self, state: Any) -> None:
        """Become what the stage was when `state()` returned `state`."""
        ...


@runtime_checkable
class SettlingStage(Protocol):
    """A stage of whose state a part lies in another process."""

    def settle(self) -> None:
        """Bring the state here: `state` asks nobody any more until the stage processes something.

        Raises:
            ValueError: the state cannot be kept.
        """
        ...


@runtime_checkable
class TimedStage(Stage, Protocol):
    """A stage that does something when time has passed, without an event."""

    def due(self) -> int | None:
        """Return the clock (ms) from which on `expire` has something to do; None: never."""
        ...

    def expire(self, at: Moment) -> Sequence[Unit]:
        """Return what leaves because of the time; afterwards `due()` is later than `at.clock`."""
        ...


@runtime_checkable
class BlockStage(Stage, Protocol):
    """A stage that is faster with many units at once, such as a script in another process."""

    def process_block(
        self, units: Sequence[Unit], moments: Sequence[Moment]
    ) -> Sequence[Sequence[Unit] | BadRecord]:
        """Handle units one after the other, as `process` would; nothing else happens meanwhile.

        Args:
            units: what comes in.
            moments: one for each unit.

        Returns:
            For each unit what leaves, or why it is refused.
        """
        ...


@runtime_checkable
class GatheringStage(Stage, Protocol):
    """A stage that takes all that one source event sends its window together."""

    def process_together(
        self, arrivals: Sequence[tuple[int, Unit]], at: Moment
    ) -> Sequence[Sequence[Unit] | BadRecord]:
        """Return what leaves, in order, and with it why some of the units are refused.

        Args:
            arrivals: input and unit, in the order in which they come; never empty.
            at: when; its `port` says nothing.
        """
        ...


class OnlyInserts:
    """Lets inserts out and nothing else (`output-insert-only`)."""

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Drop what is no insert."""
        return (unit,) if unit[0].opcode == "I" else ()


def places(names: Iterable[str], fields: Iterable[Field]) -> list[int]:
    """Return the positions of the fields `names` in `fields`."""
    by_name = {field.name: place for place, field in enumerate(fields)}
    return [by_name[name] for name in names]
