"""Requests: events that change the parameters of a running algorithm.

A request is a row of pairs: events with the name of a parameter and its value, the last one with
no name. Until that one comes, nothing happens.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from espha.model.events import BadRecord, Value
from espha.model.project import Field
from espha.windows.calculate.contract import Algorithm, Setting
from espha.windows.calculate.reading import setting_of, wanted

_ACTION: Final = "action"
_ACTIONS: Final = frozenset({"reconfig", "reconfigure"})


class Requests:
    """Collects the pairs of a request."""

    def __init__(self, algorithm: Algorithm, counts: Mapping[str, int]) -> None:
        self._algorithm = algorithm
        self._counts = counts
        self._pairs: dict[str, Setting] = {}

    def take(
        self, row: Sequence[Value], fields: Sequence[Field], now: Mapping[str, Setting]
    ) -> dict[str, Setting] | None:
        """Take one event; return all settings if it ends a request that changes some.

        Raises:
            BadRecord: it names no parameter, or a value that the parameter cannot have.
        """
        name, value = _pair(row, fields)
        if name:
            self._note(name, value)
            return None
        changed, self._pairs = {**now, **self._pairs}, {}
        reason = self._algorithm.check(changed, self._counts)
        if reason:
            raise BadRecord(reason)
        return changed if changed != now else None

    def _note(self, name: str, value: str) -> None:
        if name == _ACTION:
            if value.lower() not in _ACTIONS:
                raise BadRecord(f"the request's action {value[:60]!r} is not one of: reconfig")
            return
        parameter = self._algorithm.parameters.get(name)
        if parameter is None:
            raise BadRecord(f"{name[:60]!r} is not a parameter of {self._algorithm.name}")
        setting = setting_of(parameter, value) if value else parameter.default
        if setting is None:
            raise BadRecord(f"{name} is {value[:60]!r}; give {wanted(parameter)}")
        self._pairs[name] = setting

    def state(self) -> Any:
        """Return the pairs so far."""
        return dict(self._pairs)

    def restore(self, state: Any) -> None:
        """Take over pairs."""
        self._pairs = dict(state)


def _pair(row: Sequence[Value], fields: Sequence[Field]) -> tuple[str, str]:
    """Return name and value: the first two fields that are no keys."""
    texts = [
        "" if value is None else str(value).strip()
        for value, field in zip(row, fields, strict=True)
        if not field.key
    ]
    name, value = (*texts, "", "")[:2]
    return name, value
