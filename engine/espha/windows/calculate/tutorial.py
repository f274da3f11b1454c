"""The algorithm Tutorial: least and greatest value so far, and an alert."""

from collections.abc import Mapping, Sequence
from typing import Any

from espha.windows.shared.exact import Number


class Tutorial:
    """Follows the ends of a field, and says whether its value is beyond what is normal."""

    def __init__(self, settings: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._normal: tuple[float, float] = (settings["normalMin"], settings["normalMax"])
        self._wanted = wanted
        self._ends: tuple[Number, Number] | None = None

    def observe(self, values: tuple[Any, ...]) -> Sequence[Sequence[Any]]:
        """Take one value; return one row."""
        (value,) = values
        alert = False
        if value is not None:
            low, high = self._ends or (value, value)
            self._ends = (min(low, value), max(high, value))
            alert = not self._normal[0] <= value <= self._normal[1]
        low, high = self._ends or (None, None)
        results = {"minOut": low, "maxOut": high, "alertOut": int(alert)}
        return ([results[name] for name in self._wanted],)

    def state(self) -> Any:
        """Return the ends."""
        return self._ends

    def restore(self, state: Any) -> None:
        """Take over ends."""
        self._ends = None if state is None else tuple(state)
