"""What the main loop of a child is doing, noted so cheaply that it can be done for each batch."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from espha.protocol.order import Range
from espha.protocol.states import Step
from espha.protocol.status import Activity, HeldTopic


class Doing:
    """Notes steps in the main loop's thread; the heartbeat's thread tells of the last one.

    A step is one tuple, replaced as a whole, so neither thread needs a lock.
    """

    def __init__(self) -> None:
        self._now: tuple[Step, int, float, int | None, int, Sequence[Range]] | None = None
        self._turn = -1
        self.unordered_since: float | None = None
        """Since when (monotonic, s) a standby has seen input that nobody orders; None: it has not.
        """

        self.held: Callable[[], tuple[str, float] | None] = lambda: None
        """Says which input is held up by somebody's open transaction."""

    def begin(
        self,
        step: Step,
        sequence: int | None = None,
        records: int = 0,
        inputs: Sequence[Range] = (),
    ) -> None:
        """Note that a step begins, and with it the end of the one before.

        Args:
            step: what it is.
            sequence: the order record that it is about, or the first one of several.
            records: how many input records are under way.
            inputs: which ones, of the first order record.
        """
        self._turn += 1
        self._now = (step, self._turn, time.monotonic(), sequence, records, inputs)

    def moved(self) -> None:
        """Note that the step gets on: a part of it is done, and it counts as begun anew."""
        if self._now:
            self.begin(self._now[0], *self._now[3:])

    @contextmanager
    def within(
        self,
        step: Step,
        sequence: int | None = None,
        records: int = 0,
        inputs: Sequence[Range] = (),
    ) -> Iterator[None]:
        """Note a step inside of another one, which begins anew behind it; see `begin`.

        Where there is no other one, nothing is being done behind it that could take too long.
        """
        outer = self._now
        self.begin(step, sequence, records, inputs)
        try:
            yield
        finally:
            self._now = None
            if outer:
                self.begin(outer[0], *outer[3:])

    def told(self) -> Activity | None:
        """Return what is being done; None: no step is noted, as in adapters most of the time."""
        if self._now is None:
            return None
        step, turn, since, sequence, records, inputs = self._now
        return Activity(
            step=step,
            turn=turn,
            age_ms=round((time.monotonic() - since) * 1000),
            sequence=sequence,
            records=records,
            inputs=tuple(inputs),
        )

    def held_topic(self) -> HeldTopic | None:
        """Return which input topic is held up, and for how long already."""
        found = self.held()
        return found and HeldTopic(topic=found[0], age_s=round(time.monotonic() - found[1], 1))

    def unordered_ms(self) -> int | None:
        """Return for how long input has waited for an order record, as a standby sees it."""
        since = self.unordered_since
        return None if since is None else round((time.monotonic() - since) * 1000)
