"""Remove-state windows."""

from collections.abc import Sequence
from typing import Any

from espha.model.events import Event
from espha.model.project import Field
from espha.windows.remove_state.spec import RemoveStateWindow
from espha.windows.shared.stage import Moment, Stage, Unit


def stages(window: RemoveStateWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a remove-state window."""
    return [RemoveState(window)]


class RemoveState:
    """Numbers events from 1 and makes inserts of them, each on its own."""

    def __init__(self, window: RemoveStateWindow) -> None:
        self._removed = frozenset(window.remove)
        self._log_fields = window.log_fields
        self._next = 1

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Return an insert for each event of the unit that is not removed."""
        result: list[Unit] = []
        for place, event in enumerate(unit):
            if not self._removed.intersection(_kinds(event, is_old_row=place > 0)):
                result.append((self._insert(event),))
        return result

    def _insert(self, event: Event) -> Event:
        number = self._next
        self._next += 1
        if self._log_fields:
            return Event("I", "N", (number, event.opcode, event.flags, *event.values))
        return Event("I", "N", (number, *event.values))

    def state(self) -> Any:
        """Return the next number."""
        return self._next

    def restore(self, state: Any) -> None:
        """Go on with this number."""
        self._next = state


def _kinds(event: Event, *, is_old_row: bool) -> tuple[str, ...]:
    """Return what the attribute `remove` calls such an event; nothing for an insert."""
    if is_old_row:
        return "deletes", "updateBlockDeletes"
    if event.opcode in {"U", "P"}:
        return ("retentionUpdates" if event.flags == "R" else "updates",)
    if event.opcode in {"D", "SD"}:
        return ("retentionDeletes" if event.flags == "R" else "deletes",)
    return ()
