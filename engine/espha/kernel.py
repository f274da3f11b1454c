"""The windows of a project, wired together.

An event goes through the windows depth first: what leaves a window goes to the target of its
first edge and everything behind that, then to the target of the second edge. Each window handles
an event as a whole before the next event is taken. So the order of the outputs is a function of
the model and the order of the inputs, and nothing else.
"""

from dataclasses import dataclass, field
from typing import Any

from espha.model import Project, model_digest
from espha.windows.build import build_stages
from espha.windows.events import BadRecord, Event
from espha.windows.stage import Block, Journal, Stage

State = dict[str, Any]


@dataclass(slots=True)
class _Node:
    path: str
    stages: list[Stage]
    published: bool
    targets: list["_Node"] = field(default_factory=list)


class Kernel:
    """Runs a model, one event at a time. Deterministic, without I/O."""

    def __init__(self, project: Project) -> None:
        self._model = model_digest(project)
        self._nodes = {path: _node(project, path) for path in project.windows}
        for path, node in self._nodes.items():
            # Reversed, because the kernel takes what comes next from the end of a list.
            node.targets = [self._nodes[target] for target in reversed(project.targets_of(path))]
        self._sources = {
            path: self._nodes[path]
            for path, window in project.windows.items()
            if window.kind == "source"
        }

    def publish(self, path: str, event: Event, clock: int) -> list[tuple[str, Event]]:
        """Put one event into a source window.

        Args:
            path: "query/window" of the source.
            event: the event, values in schema order.
            clock: milliseconds since 1970, from the order record; never going back.

        Returns:
            (path, event) for what leaves windows with a Kafka connector of type sub, in order.

        Raises:
            BadRecord: the event is refused, by the window that it names; nothing has changed.
            KeyError: there is no such source window.
        """
        node = self._sources[path]
        outputs: list[tuple[str, Event]] = []
        journal: Journal = []
        waiting: list[tuple[_Node, Block]] = [(node, (event,))]
        try:
            while waiting:
                node, block = waiting.pop()
                for stage in node.stages:
                    block = stage.process(block, clock, journal)
                    if not block:
                        break
                else:
                    if node.published:
                        for leaving in block:
                            outputs.append((node.path, leaving))
                    for target in node.targets:
                        waiting.append((target, block))
        except BaseException as error:
            # A window behind others can refuse what they have taken in already.
            while journal:
                journal.pop()()
            if isinstance(error, BadRecord):
                raise BadRecord(error.reason, node.path) from None
            raise
        return outputs

    def state(self) -> State:
        """Return all state as plain picklable data; later events do not change it."""
        windows = {
            path: [_state(stage) for stage in node.stages] for path, node in self._nodes.items()
        }
        return {"model": self._model, "windows": windows}

    def restore(self, state: State) -> None:
        """Become the kernel that returned `state`.

        Raises:
            ValueError: the state belongs to another model.
        """
        if state["model"] != self._model:
            raise ValueError(f"the state is of model {state['model']}, this one is {self._model}")
        for path, states in state["windows"].items():
            for stage, part in zip(self._nodes[path].stages, states, strict=True):
                if hasattr(stage, "restore"):
                    stage.restore(part)


def _node(project: Project, path: str) -> _Node:
    window = project.windows[path]
    inputs = project.inputs_of(path)
    feed = project.windows[inputs[0]].fields if inputs else ()
    return _Node(path, build_stages(window, feed), window.kafka("sub") is not None)


def _state(stage: Stage) -> Any:
    return stage.state() if hasattr(stage, "state") else None
