"""How units go through the windows: one source event at a time, or many."""

from collections.abc import Sequence

from espha.kernel.nodes import Node, Step, Target, Way
from espha.model.events import BadRecord, Event
from espha.windows.shared.splitter import ALL_SLOTS
from espha.windows.shared.stage import GatheringStage, Moment, Unit

Outputs = list[tuple[str, Event]]
Arrivals = list[tuple[int, Unit]]
"""What comes to a window for one source event: input and unit, in order."""


class Flow:
    """Puts units through windows.

    Attributes:
        at: when, and of which source event.
        refusals: (window, reason) of what was refused.
    """

    def __init__(self, line: Sequence[Node]) -> None:
        """Use the windows in this line."""
        self._line = line
        self.at = Moment()
        self.refusals: list[tuple[str, str]] = []

    def go(self, node: Node, units: Sequence[Unit], outputs: Outputs) -> None:
        """Send what leaves a window to the windows that follow it, and so on."""
        at = self.at
        pending: dict[int, Arrivals] = {}
        while True:
            if node.published:
                path = node.path
                for unit in units:
                    for event in unit:
                        outputs.append((path, event))
            if units and node.targets:
                only = node.only
                if only is not None and not pending:
                    # Most often there is one way to go.
                    node, at.port = only.node, only.port
                    units = self.through(node.path, node.steps, units)
                    continue
                self._spread(node, units, pending)
            if not pending:
                return
            rank = min(pending)
            node = self._line[rank]
            units = self._arrive(node, pending.pop(rank))

    def along(self, way: Way, units: Sequence[Unit], outputs: Outputs) -> None:
        """Send what leaves a window the one way that there is."""
        at = self.at
        for path, port, steps, published in way:
            at.port = port
            units = self.through(path, steps, units)
            if not units:
                return
            if published:
                for unit in units:
                    for event in unit:
                        outputs.append((path, event))

    def lapse(self, ranks: Sequence[int], outputs: Outputs) -> None:
        """Let time have passed for windows in which something is due."""
        pending: dict[int, Arrivals] = {rank: [] for rank in ranks}
        while pending:
            rank = min(pending)
            node = self._line[rank]
            units = [*self._lapsed(node), *self._arrive(node, pending.pop(rank))]
            if node.published:
                outputs += [(node.path, event) for unit in units for event in unit]
            self._spread(node, units, pending)

    def _lapsed(self, node: Node) -> list[Unit]:
        """Return what leaves a window because of the time."""
        leaving: list[Unit] = []
        for place, stage in node.timed:
            due = stage.due()
            if due is not None and due <= self.at.clock:
                self.at.port = 0
                leaving += self.through(node.path, node.steps[place + 1 :], stage.expire(self.at))
        return leaving

    def _arrive(self, node: Node, arrivals: Arrivals) -> Sequence[Unit]:
        """Put what one source event sends a window through its stages."""
        if node.gathers is not None:
            units = self._together(node, node.gathers, arrivals)
            return self.through(node.path, node.steps[1:], units)
        for step in node.steps:
            leaving: Arrivals = []
            for port, unit in arrivals:
                self.at.port = port
                try:
                    leaving += [(port, made) for made in step(unit, self.at)]
                except BadRecord as refusal:
                    self.refusals.append((node.path, refusal.reason))
            arrivals = leaving
        return [unit for _, unit in arrivals]

    def _together(self, node: Node, stage: GatheringStage, arrivals: Arrivals) -> list[Unit]:
        leaving: list[Unit] = []
        for result in stage.process_together(arrivals, self.at) if arrivals else ():
            if isinstance(result, BadRecord):
                self.refusals.append((node.path, result.reason))
            else:
                leaving += result
        return leaving

    def through(self, path: str, steps: Sequence[Step], units: Sequence[Unit]) -> Sequence[Unit]:
        """Put units through stages of a window; return what leaves."""
        at = self.at
        for step in steps:
            if len(units) == 1:
                try:
                    units = step(units[0], at)
                except BadRecord as refusal:
                    self.refusals.append((path, refusal.reason))
                    return ()
            else:
                units = self._each(path, step, units)
            if not units:
                break
        return units

    def _each(self, path: str, step: Step, units: Sequence[Unit]) -> Sequence[Unit]:
        leaving: list[Unit] = []
        for unit in units:
            try:
                leaving += step(unit, self.at)
            except BadRecord as refusal:
                self.refusals.append((path, refusal.reason))
        return leaving

    def _spread(self, node: Node, units: Sequence[Unit], pending: dict[int, Arrivals]) -> None:
        """Note where units go."""
        for unit in units:
            for target, part in self.routes(node, unit):
                pending.setdefault(target.node.rank, []).append((target.port, part))

    def routes(self, node: Node, unit: Unit) -> list[tuple[Target, Unit]]:
        """Say which targets get a unit, and in which form; a row can move from slot to slot."""
        slots = node.slots
        if slots is None:
            return [(target, unit) for target in node.targets]
        clock = self.at.clock
        try:
            new = slots(unit[0], clock)
            old = slots(unit[1], clock) if len(unit) > 1 else new
        except BadRecord as refusal:
            self.refusals.append((node.path, refusal.reason))
            return []
        routes: list[tuple[Target, Unit]] = []
        for target in node.targets:
            gets = target.slot is None or new in (target.slot, ALL_SLOTS)
            had = target.slot is None or old in (target.slot, ALL_SLOTS)
            if gets and had:
                routes.append((target, unit))
            elif gets:
                routes.append((target, (unit[0]._replace(opcode="I"),)))
            elif had:
                routes.append((target, unit[1:]))
        return routes
