"""What reads the payloads of each schema of a registry."""

import math
from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeVar

from espha.adapters.config import ConfigError
from espha.adapters.formats.registry import NotGivenError, Registered, SchemaRegistry
from espha.model.events import BadRecord

_Plan = TypeVar("_Plan")

_AGAIN_S: Final = 10.0
"""After so long a registry is asked again for what it has not given. A producer registers a schema
and sends at once: the node that is asked may hear of it later."""
_MOST: Final = 1_000


class _Unfit(NamedTuple):
    """Why payloads of a schema cannot be read, and until when this counts."""

    reason: str
    until: float


class Plans(Generic[_Plan]):
    """Plans of reading, by the number of a schema and the place of a message in it."""

    def __init__(self, now: Callable[[], float]) -> None:
        """Know none yet; `now` is a clock that never goes back."""
        self._now = now
        self._known: dict[tuple[int, tuple[int, ...]], _Plan | _Unfit] = {}

    def of(
        self,
        registry: SchemaRegistry,
        identity: int,
        make: Callable[[Registered], _Plan],
        places: tuple[int, ...] = (),
    ) -> _Plan:
        """Return the plan for a schema; it is made once.

        Args:
            registry: has the schema.
            identity: its number there.
            make: makes the plan of it; raises ConfigError where it does not fit.
            places: of the message in it, where a schema has several.

        Raises:
            BadRecord: the registry has no such schema, or it does not fit.
            ConfigError: the registry refuses to say whether it has the schema.
            OSError: the registry is away.
        """
        key = identity, places
        plan = self._known.get(key)
        if plan is None or (isinstance(plan, _Unfit) and plan.until <= self._now()):
            plan = self._made(registry, identity, make)
            if len(self._known) > _MOST:  # whoever sends any numbers does not fill the memory
                self._known.clear()
            self._known[key] = plan
        if isinstance(plan, _Unfit):
            raise BadRecord(plan.reason)
        return plan

    def _made(
        self, registry: SchemaRegistry, identity: int, make: Callable[[Registered], _Plan]
    ) -> _Plan | _Unfit:
        found = registry.with_id(identity)
        if found is None:
            return self._for_now(f"the schema registry has no schema {identity}")
        try:
            return make(found)
        except NotGivenError as error:
            return self._for_now(f"schema {identity}: {error}")
        except ConfigError as error:  # the schema of a number never changes
            return _Unfit(f"schema {identity}: {error}", math.inf)

    def _for_now(self, reason: str) -> _Unfit:
        return _Unfit(reason, self._now() + _AGAIN_S)
