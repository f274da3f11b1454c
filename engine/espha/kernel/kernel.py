"""Runs a model."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from espha.kernel.block import Block
from espha.kernel.flow import Flow, Outputs
from espha.kernel.nodes import Node, nodes_of
from espha.model import Project, model_digest
from espha.model.events import BadRecord, Event
from espha.windows.shared.stage import SettlingStage, Stage, StatefulStage

State = dict[str, Any]


class Handled(NamedTuple):
    """What became of one event of a block.

    Attributes:
        outputs: (path, event) for what leaves published windows, in order.
        bad: why the source window refuses the event; None: it does not. Outputs are then those that
            came before it.
        refused: (path, reason) of what windows after the source refuse.
    """

    outputs: Outputs
    bad: str | None
    refused: Sequence[tuple[str, str]]


_handled: Final[Callable[[tuple[Outputs, str | None, Sequence[tuple[str, str]]]], Handled]] = (
    partial(tuple.__new__, Handled)
)
"""What became of an event, several times as fast as by name."""


class Kernel:
    """Runs a model, one event at a time or in blocks. Deterministic, without I/O."""

    def __init__(self, project: Project, published: Collection[str] | None = None) -> None:
        """Start with empty state.

        Args:
            project: the model.
            published: paths of the windows whose events are returned; by default those with a
                Kafka connector of type sub.
        """
        self._model = model_digest(project)
        if published is None:
            published = [path for path, window in project.windows.items() if window.kafka("sub")]
        self._line = nodes_of(project, published)
        by_path = {node.path: node for node in self._line}
        self._nodes = {path: by_path[path] for path in project.windows}
        self._sources = {
            path: self._nodes[path]
            for path, window in project.windows.items()
            if window.type == "source"
        }
        self._blocks = any(node.blocks for node in self._line)
        self._timed = [(node.rank, stage) for node in self._line for _, stage in node.timed]
        self._flow = Flow(self._line)
        self._at = self._flow.at
        self._tokens = 0
        self._culprit: Callable[[], int | None] = _nobody

    def publish(self, path: str, event: Event, clock: int) -> Outputs:
        """Put one event into a source window.

        Args:
            path: "query/window" of the source.
            event: the event, values in schema order.
            clock: milliseconds since 1970, from the order record; never going back.

        Returns:
            (path, event) for what leaves published windows, in order; first what is due by then.

        Raises:
            BadRecord: the source window refuses the event; what other windows refuse is kept for
                `take_refusals`.
            KeyError: there is no such source window.
        """
        node = self._sources[path]
        outputs = self.advance(clock) if clock > self._at.clock else []
        bad = self._run(node, event, outputs)
        if bad is not None:
            raise BadRecord(bad, path)
        return outputs

    def publish_block(self, events: Sequence[tuple[str, Event]], clock: int) -> list[Handled]:
        """Put events into source windows; the results are those of `publish`, one by one.

        Args:
            events: "query/window" of a source, and the event, in order.
            clock: milliseconds since 1970, from the order record; never going back. What is due
                by then is done first; its outputs and refusals are those of the first event, if
                `advance` has not been called before.

        Raises:
            KeyError: there is no such source window.
        """
        self._culprit = _nobody
        if not events:  # what `advance` has refused stays for `take_refusals`
            return []
        nodes = [self._sources[path] for path, _ in events]
        outputs = self.advance(clock)
        late = self.take_refusals()
        handled = (self._at_once if self._blocks else self._in_turn)(nodes, events)
        if outputs or late:
            first = handled[0]
            handled[0] = Handled(outputs + first.outputs, first.bad, [*late, *first.refused])
        return handled

    def culprit(self) -> int | None:
        """Say which event of the block it was in which `publish_block` failed; None: nobody knows.

        An exception that is no refusal leaves the state half changed: the kernel is of no use then.
        """
        return self._culprit()

    def _run(self, node: Node, event: Event, outputs: Outputs) -> str | None:
        """Put an event through all windows; return why the source refuses it, if it does."""
        flow, at = self._flow, self._at
        at.token, at.port = self._tokens, 0
        before = len(flow.refusals)
        units = flow.through(node.path, node.steps, ((event,),))
        if not units and len(flow.refusals) > before:
            return flow.refusals.pop()[1]
        self._tokens += 1
        if units and node.way is not None:
            flow.along(node.way, units, outputs)
        elif units:
            flow.go(node, units, outputs)
        return None

    def _in_turn(self, nodes: Sequence[Node], events: Sequence[tuple[str, Event]]) -> list[Handled]:
        """Handle events one by one."""
        handled: list[Handled] = []
        self._culprit = handled.__len__
        flow, run = self._flow, self._run
        for node, (_, event) in zip(nodes, events, strict=True):
            outputs: Outputs = []
            bad = run(node, event, outputs)
            handled.append(_handled((outputs, bad, self.take_refusals() if flow.refusals else ())))
        return handled

    def _at_once(self, nodes: Sequence[Node], events: Sequence[tuple[str, Event]]) -> list[Handled]:
        """Handle events window by window."""
        flow, at = self._flow, self._at
        block = Block(flow, len(events))
        bad: list[str | None] = []
        self._culprit = bad.__len__
        for number, (node, (_, event)) in enumerate(zip(nodes, events, strict=True)):
            at.token, at.port = self._tokens, 0
            units = flow.through(node.path, node.steps, ((event,),))
            refused = not units and bool(flow.refusals)
            bad.append(flow.refusals.pop()[1] if refused else None)
            self._tokens += not refused
            block.enter(node, number, units)
        self._culprit = block.culprit
        block.go(self._line)
        return [Handled(*each) for each in zip(block.outputs, bad, block.refusals, strict=True)]

    def advance(self, clock: int) -> Outputs:
        """Let time pass: run what windows have to do by `clock` without an event."""
        outputs: Outputs = []
        if clock <= self._at.clock:
            return outputs
        self._at.clock, self._at.token = clock, self._tokens
        ranks = self._ranks_due(clock)
        if ranks:
            self._flow.lapse(ranks, outputs)
        return outputs

    def _ranks_due(self, clock: int) -> list[int]:
        return [
            rank for rank, stage in self._timed if (due := stage.due()) is not None and due <= clock
        ]

    def due(self) -> int | None:
        """Return the clock (ms) at which a window has something to do next; None: never."""
        times = [due for _, stage in self._timed if (due := stage.due()) is not None]
        return min(times, default=None)

    def take_refusals(self) -> list[tuple[str, str]]:
        """Return (path, reason) of what windows after the sources refused since the last call.

        What was refused of a block is in its result.
        """
        refusals, self._flow.refusals = self._flow.refusals, []
        return refusals

    def settle(self) -> None:
        """Bring all state into this process; `state` asks no other one until the next event.

        Raises:
            ValueError: the state of a script cannot be kept.
        """
        for node in self._line:
            for part in (*node.stages, node.slots):
                if isinstance(part, SettlingStage):
                    part.settle()

    def state(self) -> State:
        """Return all state as plain data, to be read before the next event; see `StatefulStage`."""
        windows = {
            path: [_state(stage) for stage in node.stages] for path, node in self._nodes.items()
        }
        slots = {path: node.slots.state() for path, node in self._nodes.items() if node.slots}
        return {
            "model": self._model,
            "clock": self._at.clock,
            "tokens": self._tokens,
            "windows": windows,
            "slots": slots,
        }

    def restore(self, state: State) -> None:
        """Become the kernel that returned `state`.

        Raises:
            ValueError: the state belongs to another model.
        """
        if state["model"] != self._model:
            raise ValueError(f"the state is of model {state['model']}, this one is {self._model}")
        self._at.clock, self._tokens = state["clock"], state["tokens"]
        for path, states in state["windows"].items():
            for stage, part in zip(self._nodes[path].stages, states, strict=True):
                if isinstance(stage, StatefulStage):
                    stage.restore(part)
        for path, node in self._nodes.items():
            if node.slots:
                node.slots.restore(state["slots"][path])


def _nobody() -> None:
    """Know of no event that is to blame."""


def _state(stage: Stage) -> Any:
    return stage.state() if isinstance(stage, StatefulStage) else None
