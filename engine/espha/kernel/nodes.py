"""The windows as the kernel sees them: stages, and where their events go."""

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from espha.model import Project
from espha.model.project import Window
from espha.windows.build import build_stages
from espha.windows.shared.splitter import Slots, slots_of
from espha.windows.shared.stage import BlockStage, GatheringStage, Moment, Stage, TimedStage, Unit

Step = Callable[[Unit, Moment], Sequence[Unit]]


Way = Sequence[tuple[str, int, Sequence[Step], bool]]
"""Windows one after the other: path, input, steps, whether its events are outputs."""


@dataclass(slots=True, eq=False)
class Node:
    """One window.

    Attributes:
        path: "query/window".
        rank: its place in the line of all windows.
        stages: what runs it.
        steps: what the stages do, looked up once.
        blocks: the stages that handle many units at once, by their place.
        gathers: the first stage, if it takes all units of a source event together.
        timed: the stages that do something when time has passed, with their places, last first.
        published: whether its events are outputs of the kernel.
        slots: its splitter.
        targets: where its events go, in the order of the edges.
        only: the one target, where all events go the one way and one by one.
        merges: events come from several windows.
        way: where all events of the window go, itself first; None: the way forks, or windows
            gather what they get.
    """

    path: str
    stages: list[Stage]
    steps: list[Step]
    blocks: dict[int, BlockStage]
    gathers: GatheringStage | None
    timed: list[tuple[int, TimedStage]]
    published: bool
    slots: Slots | None
    targets: list["Target"] = field(default_factory=list)
    only: "Target | None" = None
    rank: int = 0
    merges: bool = False
    way: Way | None = None


@dataclass(slots=True, eq=False)
class Target:
    """One edge: its window, which of the inputs of that window it is, and the slot it takes."""

    node: Node
    port: int
    slot: int | None


def nodes_of(project: Project, published: Collection[str]) -> list[Node]:
    """Return the windows of a project in line: each behind all that feed it."""
    nodes = {
        path: _node(project, window, path in published) for path, window in project.windows.items()
    }
    feeding: dict[str, int] = dict.fromkeys(nodes, 0)
    for edge in project.edges:
        target = Target(nodes[edge.target], feeding[edge.target], edge.slot)
        feeding[edge.target] += 1
        nodes[edge.source].targets.append(target)
    return _in_line(nodes, feeding)


def _in_line(nodes: dict[str, Node], feeding: dict[str, int]) -> list[Node]:
    waiting = deque(node for path, node in nodes.items() if not feeding[path])
    line: list[Node] = []
    missing = dict(feeding)
    while waiting:
        node = waiting.popleft()
        node.rank, node.merges = len(line), feeding[node.path] > 1
        line.append(node)
        if len(node.targets) == 1 and node.slots is None and node.targets[0].node.gathers is None:
            node.only = node.targets[0]
        for target in node.targets:
            path = target.node.path
            missing[path] -= 1
            if not missing[path]:
                waiting.append(target.node)
    for node in line:
        node.way = _way(node)
    return line


def _way(node: Node) -> Way | None:
    way: list[tuple[str, int, Sequence[Step], bool]] = [(node.path, 0, (), node.published)]
    while node.targets:
        only = node.only
        if only is None:
            return None
        node = only.node
        way.append((node.path, only.port, node.steps, node.published))
    return way


def _node(project: Project, window: Window, published: bool) -> Node:
    feeds = [project.windows[edge.source].fields for edge in project.edges_into(window.path)]
    stages = build_stages(window, feeds)
    places = list(enumerate(stages))
    gathers = stages[0] if stages and isinstance(stages[0], GatheringStage) else None
    return Node(
        path=window.path,
        stages=stages,
        steps=[stage.process for stage in stages],
        blocks={place: stage for place, stage in places if isinstance(stage, BlockStage)},
        gathers=gathers,
        timed=[(place, stage) for place, stage in places[::-1] if isinstance(stage, TimedStage)],
        published=published,
        slots=slots_of(window),
    )
