"""How an engine runs the next model beside the one that leads, until the order log goes over to it.

A shadow follows the order log like a standby, with a model of its own: it processes what order
records name, and keeps what comes of it to itself. Its state begins where an order record says so,
so it asks the active engine for that. It stands for no election; only behind a record that goes
over to its model is it a standby like others.
"""

import time
from collections.abc import Callable

import structlog

from espha.engine.background import Background
from espha.engine.position import Position

_ASK_AGAIN_S = 2.0
_NOBODY_S = 30.0
"""An active engine commits every few seconds, whatever happens. Where nobody does for so long,
nobody runs the model of the order log any more, and this engine is needed for that."""
_SPARED_S = 20.0
_LOG = structlog.get_logger()

Ask = Callable[[int | None], str]
"""Asks the active engine to let the model begin: with empty state (None), or, where somebody has
its state, as it began behind an order record. Returns why that is refused; empty: it is not."""


class Switched(Exception):  # noqa: N818 - it names a state
    """The order log is of another model; this process ends, and the next one runs that one."""


class ShadowError(Exception):
    """The next model cannot be run beside the one that leads; the text says why."""


class Spared:
    """Whether an engine that runs the log's model can go back to the one that it was given.

    That is so when the log goes on without it: another engine is active, and this one is the last
    in the queue.
    """

    def __init__(self, given: bool, clock: Callable[[], float] = time.monotonic) -> None:
        """Look only where the engine was `given` another model than it runs."""
        self._given, self._clock = given, clock
        self._since: float | None = None

    def look(self, last: bool, at: Position) -> None:
        """Look whether it is the last in the queue, and another one active, for some time now.

        Raises:
            ShadowError: it is spared.
        """
        needed = not self._given or not last or at.age_ms > _SPARED_S * 1000
        if needed or self._since is None:
            self._since = None if needed else self._clock()
        elif self._clock() - self._since > _SPARED_S:
            raise ShadowError("another engine leads: it comes back with the model it was given")


class Shadowing:
    """Sees to it that the order log says where a model began, and that this is what runs."""

    def __init__(self, model: str, ask: Ask, clock: Callable[[], float] = time.monotonic) -> None:
        """Run the model with a digest; `clock` tells seconds."""
        self._model, self._ask, self._clock = model, ask, clock
        self._marked = False
        self._asking: Background | None = None
        self._asked: float | None = None
        self.refusal = ""
        """Why the active engine does not let it begin; empty: it does, or has not answered."""

    def look(self, at: Position) -> bool:
        """Look at the last order record; say whether what runs is what it has for a shadow.

        Raises:
            ShadowError: it is not, and will not be.
        """
        if at.age_ms > _NOBODY_S * 1000:
            raise ShadowError(f"no engine has been active for {_NOBODY_S:.0f} s")
        shadow = at.shadow
        if shadow is None or shadow.model != self._model:
            if self._marked:
                raise ShadowError("it was ended; the engine waits to be a shadow again")
            self._begin(at)
            return False
        if not at.begun:
            raise ShadowError(f"it began behind order record {shadow.since}, which was not read")
        if shadow.since != at.since:
            raise ShadowError(
                f"its state began behind order record {at.since}, the order log's shadow behind "
                f"{shadow.since}"
            )
        self._marked, self.refusal = True, ""
        return True

    def _begin(self, at: Position) -> None:
        now = self._clock()
        if self._asked is not None and now - self._asked < _ASK_AGAIN_S:
            return
        if self._asking is not None and not self._asking.ended:
            return
        self._asked = now
        since = at.since if at.begun else None
        self._asking = Background(lambda: self._hear(since), "shadow")

    def _hear(self, since: int | None) -> None:
        refusal = self._ask(since)
        if refusal != self.refusal:
            _LOG.warning("the active engine does not begin a shadow", reason=refusal)
        self.refusal = refusal
