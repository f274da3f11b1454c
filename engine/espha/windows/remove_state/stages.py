"""Remove-state windows."""

from collections.abc import Container, Sequence
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
        self._stays = _stays(frozenset(window.remove))
        self._stays_as_old_row = not {"deletes", "updateBlockDeletes"} & set(window.remove)
        self._log_fields = window.log_fields
        self._next = 1

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Return an insert for each event of the unit that is not removed."""
        event = unit[0]
        result = [(self._insert(event),)] if self._stays[event.opcode, event.flags == "R"] else []
        if len(unit) > 1 and self._stays_as_old_row:
            result.append((self._insert(unit[1]),))
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


def _stays(removed: Container[str]) -> dict[tuple[str, bool], bool]:
    """Say for each opcode, by retention or not, whether such an event leaves the window."""
    words = {"U": "updates", "P": "updates", "D": "deletes", "SD": "deletes"}
    retention = {"updates": "retentionUpdates", "deletes": "retentionDeletes"}
    stays = {(opcode, False): word not in removed for opcode, word in words.items()}
    stays |= {(opcode, True): retention[word] not in removed for opcode, word in words.items()}
    return {("I", False): True, ("I", True): True, **stays}
