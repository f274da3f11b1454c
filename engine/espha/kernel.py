"""The windows of a project, wired together.

A unit (an event or an update block) goes through the windows depth first: what leaves a window
goes to the target of its first edge and through everything that follows, then to the target of the
second edge. Each window handles a unit as a whole before the next one is taken. So the order of the
outputs is a function of the model and the order of the inputs, and nothing else.

A window that refuses a unit drops it, for itself and the windows that follow it; the others
process it.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from espha.model import Project, model_digest
from espha.model.events import BadRecord, Event
from espha.model.project import Window
from espha.windows.build import build_stages
from espha.windows.shared.splitter import ALL_SLOTS, Slots, slots_of
from espha.windows.shared.stage import Moment, Stage, StatefulStage, TimedStage, Unit

State = dict[str, Any]
Outputs = list[tuple[str, Event]]


@dataclass(slots=True, eq=False)
class _Node:
    path: str
    stages: list[Stage]
    steps: list[Callable[[Unit, Moment], Sequence[Unit]]]
    """What the stages do, looked up once."""
    published: bool
    slots: Slots | None
    targets: list["_Target"] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Target:
    node: _Node
    port: int
    slot: int | None


class Kernel:
    """Runs a model, one event at a time. Deterministic, without I/O."""

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
        self._nodes = {
            path: _node(project, window, path in published)
            for path, window in project.windows.items()
        }
        self._connect(project)
        self._sources = {
            path: self._nodes[path]
            for path, window in project.windows.items()
            if window.type == "source"
        }
        self._timed = [
            (node, place, stage)
            for node in self._nodes.values()
            for place, stage in enumerate(node.stages)
            if isinstance(stage, TimedStage)
        ]
        self._at = Moment()
        self._tokens = 0
        self._refusals: list[tuple[str, str]] = []

    def _connect(self, project: Project) -> None:
        ports = dict.fromkeys(self._nodes, 0)
        for edge in project.edges:
            target = _Target(self._nodes[edge.target], ports[edge.target], edge.slot)
            ports[edge.target] += 1
            # First edge last, because the kernel takes what comes next from the end of a list.
            self._nodes[edge.source].targets.insert(0, target)

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
        at = self._at
        outputs = self.advance(clock) if clock > at.clock else []
        at.token, at.port = self._tokens, 0
        before = len(self._refusals)
        units = self._through(node, 0, ((event,),))
        if len(self._refusals) > before and not units:
            raise BadRecord(self._refusals.pop()[1], path)
        self._tokens += 1
        self._flow(node, units, outputs)
        return outputs

    def advance(self, clock: int) -> Outputs:
        """Let time pass: run what windows have to do by `clock` without an event."""
        outputs: Outputs = []
        if clock <= self._at.clock:
            return outputs
        self._at.clock = clock
        for node, place, stage in self._timed:
            due = stage.due()
            if due is not None and due <= clock:
                self._at.port = 0
                units = self._through(node, place + 1, stage.expire(self._at))
                self._flow(node, units, outputs)
        return outputs

    def due(self) -> int | None:
        """Return the clock (ms) at which a window has something to do next; None: never."""
        times = [due for _, _, stage in self._timed if (due := stage.due()) is not None]
        return min(times, default=None)

    def take_refusals(self) -> list[tuple[str, str]]:
        """Return (path, reason) of what windows after the sources refused since the last call."""
        refusals, self._refusals = self._refusals, []
        return refusals

    def state(self) -> State:
        """Return all state as plain picklable data; later events do not change it."""
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

    def _through(self, node: _Node, start: int, units: Sequence[Unit]) -> Sequence[Unit]:
        """Put units through the stages of a window, from stage `start` on."""
        at = self._at
        for step in node.steps[start:] if start else node.steps:
            if len(units) == 1:
                try:
                    units = step(units[0], at)
                except BadRecord as refusal:
                    self._refusals.append((node.path, refusal.reason))
                    return ()
            else:
                units = self._each(node, step, units)
            if not units:
                break
        return units

    def _each(
        self,
        node: _Node,
        step: Callable[[Unit, Moment], Sequence[Unit]],
        units: Sequence[Unit],
    ) -> Sequence[Unit]:
        leaving: list[Unit] = []
        for unit in units:
            try:
                leaving += step(unit, self._at)
            except BadRecord as refusal:
                self._refusals.append((node.path, refusal.reason))
        return leaving

    def _flow(self, node: _Node, units: Sequence[Unit], outputs: Outputs) -> None:
        """Send what leaves a window to the windows that follow it."""
        at = self._at
        waiting: list[tuple[_Target, Unit]] = []
        while True:
            if node.published:
                path = node.path
                for unit in units:
                    for event in unit:
                        outputs.append((path, event))
            targets = node.targets
            if len(units) == 1 == len(targets) and node.slots is None:
                # Most often there is one way to go.
                (target,), (unit,) = targets, units
            else:
                if units and targets:
                    self._wait(node, units, waiting)
                if not waiting:
                    return
                target, unit = waiting.pop()
            node = target.node
            at.port = target.port
            units = self._through(node, 0, (unit,))

    def _wait(
        self, node: _Node, units: Sequence[Unit], waiting: list[tuple[_Target, Unit]]
    ) -> None:
        """Note where units go; what comes next is at the end of `waiting`."""
        for unit in reversed(units):
            if node.slots is None:
                for target in node.targets:
                    waiting.append((target, unit))
            else:
                waiting += self._split(node, node.slots, unit)

    def _split(self, node: _Node, slots: Slots, unit: Unit) -> list[tuple[_Target, Unit]]:
        """Say which targets get a unit, and in which form; a row can move from slot to slot."""
        clock = self._at.clock
        try:
            new = slots(unit[0], clock)
            old = slots(unit[1], clock) if len(unit) > 1 else new
        except BadRecord as refusal:
            self._refusals.append((node.path, refusal.reason))
            return []
        routes: list[tuple[_Target, Unit]] = []
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


def _node(project: Project, window: Window, published: bool) -> _Node:
    feeds = [project.windows[edge.source].fields for edge in project.edges_into(window.path)]
    stages = build_stages(window, feeds)
    return _Node(
        window.path, stages, [stage.process for stage in stages], published, slots_of(window)
    )


def _state(stage: Stage) -> Any:
    return stage.state() if isinstance(stage, StatefulStage) else None
