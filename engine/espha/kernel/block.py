"""Many source events at once, window by window.

Each window handles what all events of the block send it, event after event, before the windows
behind it get anything. Windows know nothing of each other but what comes along the edges, so the
results are those of the events one by one.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from espha.kernel.flow import Flow, Outputs
from espha.kernel.nodes import Node, Step
from espha.model.events import BadRecord
from espha.windows.shared.stage import BlockStage, GatheringStage, Moment, Unit

Item = tuple[int, int, Unit]
"""A unit: of which source event, to which input of a window it comes, and the unit itself."""

_number = itemgetter(0)
_MANY = -1
"""Token of no event."""


class Block:
    """The way of one block behind the source windows.

    Attributes:
        outputs: what leaves published windows, of each event.
        refusals: (window, reason) of what windows refuse, of each event.
    """

    def __init__(self, flow: Flow, size: int) -> None:
        """Prepare for so many events; the flow's moment says when."""
        self._flow, self._at = flow, flow.at
        self.outputs: list[Outputs] = [[] for _ in range(size)]
        self.refusals: list[list[tuple[str, str]]] = [[] for _ in range(size)]
        self._tokens = [0] * size
        self._left: dict[int, list[Item]] = {}
        self._queues: dict[int, list[Item]] = {}

    def enter(self, node: Node, number: int, units: Iterable[Unit]) -> None:
        """Note what leaves a source window of an event that has come there just now."""
        self._tokens[number] = self._at.token
        self._take_refusals(number)
        items = self._left.setdefault(node.rank, [])
        items += [(number, 0, unit) for unit in units]

    def go(self, line: Sequence[Node]) -> None:
        """Run all windows behind the sources."""
        for rank in sorted(self._left):
            self._leave(line[rank], self._left[rank])
        queues = self._queues
        while queues:
            rank = min(queues)
            node, items = line[rank], queues.pop(rank)
            if node.merges:
                items.sort(key=_number)
            self._leave(node, self._through(node, items))

    def culprit(self) -> int | None:
        """Say which event it was in which `go` failed; None: a window had many at once."""
        numbers = [place for place, token in enumerate(self._tokens) if token == self._at.token]
        # A refused event leaves nothing, and has the number of the next one.
        return 0 if len(self._tokens) == 1 else max(numbers, default=None)

    def _leave(self, node: Node, items: Sequence[Item]) -> None:
        if node.published:
            self._publish(node.path, items)
        if items:
            self._spread(node, items)

    def _publish(self, path: str, items: Iterable[Item]) -> None:
        outputs = self.outputs
        for number, _, unit in items:
            found = outputs[number]
            for event in unit:
                found.append((path, event))

    def _spread(self, node: Node, items: Sequence[Item]) -> None:
        queues = self._queues
        if node.slots is None and len(node.targets) == 1:
            (target,) = node.targets
            port = target.port
            queue = queues.setdefault(target.node.rank, [])
            queue += [(number, port, unit) for number, _, unit in items]
            return
        for number, _, unit in items:
            self._at.token = self._tokens[number]
            for target, part in self._flow.routes(node, unit):
                queues.setdefault(target.node.rank, []).append((number, target.port, part))
            self._take_refusals(number)

    def _take_refusals(self, number: int) -> None:
        if self._flow.refusals:
            self.refusals[number] += self._flow.refusals
            self._flow.refusals = []

    def _through(self, node: Node, items: list[Item]) -> list[Item]:
        for place, step in enumerate(node.steps):
            if not items:
                break
            if place == 0 and node.gathers is not None:
                items = list(self._together(node.path, node.gathers, items))
            elif place in node.blocks:
                items = list(self._at_once(node.path, node.blocks[place], items))
            else:
                items = self._one_by_one(node.path, step, items)
        return items

    def _one_by_one(self, path: str, step: Step, items: Iterable[Item]) -> list[Item]:
        at, tokens = self._at, self._tokens
        leaving: list[Item] = []
        for number, port, unit in items:
            at.token, at.port = tokens[number], port
            try:
                units = step(unit, at)
            except BadRecord as refusal:
                self.refusals[number].append((path, refusal.reason))
                continue
            for made in units:
                leaving.append((number, port, made))
        return leaving

    def _together(self, path: str, stage: GatheringStage, items: Iterable[Item]) -> Iterator[Item]:
        for number, group in groupby(items, key=_number):
            self._at.token = self._tokens[number]
            arrivals = [(port, unit) for _, port, unit in group]
            for result in stage.process_together(arrivals, self._at):
                if isinstance(result, BadRecord):
                    self.refusals[number].append((path, result.reason))
                    continue
                for unit in result:
                    yield number, 0, unit

    def _at_once(self, path: str, stage: BlockStage, items: Sequence[Item]) -> Iterator[Item]:
        clock, tokens = self._at.clock, self._tokens
        moments = [Moment(clock, port, tokens[number]) for number, port, _ in items]
        self._at.token = _MANY
        results = stage.process_block([unit for _, _, unit in items], moments)
        for (number, port, _), result in zip(items, results, strict=True):
            if isinstance(result, BadRecord):
                self.refusals[number].append((path, result.reason))
                continue
            for unit in result:
                yield number, port, unit
