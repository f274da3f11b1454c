"""What runs the model in a run: the kernel alone."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from espha.kernel import kernel_of
from espha.model import Project
from espha.model.events import Event
from espha.offline.arrivals import Arrival

Outputs = list[tuple[str, Event]]


@dataclass(slots=True)
class Outcome:
    """What one step gives.

    Attributes:
        ticked: (window, event) that left because of the time alone, in order.
        passed: (window, event) that left because of the arrivals, in order.
        refused: (arrival, window, reason) for each refusal; the arrival is None for a refusal
            because of the time alone.
    """

    ticked: Outputs = field(default_factory=list)
    passed: Outputs = field(default_factory=list)
    refused: list[tuple[Arrival | None, str, str]] = field(default_factory=list)


class Engine(Protocol):
    """Runs a model step by step.

    Attributes:
        shown: "query/window" of the windows whose events come out.
        polled: `due` does not know, and says when to look again.
    """

    shown: Collection[str]
    polled: bool

    def step(self, clock: int, arrivals: Sequence[Arrival]) -> Outcome:
        """Let time pass up to `clock` (ms since 1970), then publish `arrivals` in order."""
        ...

    def due(self, now: int) -> int | None:
        """Return when (ms) time alone changes something; None: never."""
        ...

    def close(self) -> None:
        """End."""
        ...


class KernelEngine:
    """The kernel in this process; every window's events come out."""

    polled = False

    def __init__(self, project: Project) -> None:
        self.shown: Collection[str] = tuple(project.windows)
        self._kernel = kernel_of(project, published=self.shown)

    def step(self, clock: int, arrivals: Sequence[Arrival]) -> Outcome:
        """See `Engine`."""
        kernel = self._kernel
        outcome = Outcome(ticked=kernel.advance(clock))
        outcome.refused += [(None, *refusal) for refusal in kernel.take_refusals()]
        good = [(each.window, each.event) for each in arrivals if each.event is not None]
        handled = iter(kernel.publish_block(good, clock))
        for arrival in arrivals:
            if arrival.event is None:
                outcome.refused.append((arrival, "", arrival.reason))
                continue
            outputs, bad, refused = next(handled)
            outcome.passed += outputs
            if bad is not None:
                outcome.refused.append((arrival, arrival.window, bad))
            outcome.refused += [(arrival, *refusal) for refusal in refused]
        return outcome

    def due(self, now: int) -> int | None:
        """See `Engine`."""
        return self._kernel.due()

    def close(self) -> None:
        """There is nothing to end."""
