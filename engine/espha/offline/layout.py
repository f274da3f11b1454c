"""Layered drawing of a graph without cycles: who feeds others stands above them.

Steps: (1) each node's layer is the longest way to it; (2) edges over several layers get a thin
node in each layer between; (3) layers are put in order by the mean place of their neighbours,
down and up again; (4) nodes stand side by side, moved towards their neighbours where there is
room. Every step is a function of the order of nodes and edges.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import NamedTuple

GAP_X = 32.0
GAP_Y = 64.0
_THIN = 8.0
_SWEEPS = 6
_FIXES = 12

Edge = tuple[str, str]


class Box(NamedTuple):
    """A node's place: its centre at the top, and its size."""

    x: float
    y: float
    width: float
    height: float


class Drawing(NamedTuple):
    """Where everything is.

    Attributes:
        boxes: of the nodes.
        lines: points of each edge, in the order of the edges.
        width: of the whole.
        height: of the whole.
    """

    boxes: dict[str, Box]
    lines: list[list[tuple[float, float]]]
    width: float
    height: float


def layout(sizes: Mapping[str, tuple[float, float]], edges: Sequence[Edge]) -> Drawing:
    """Place nodes of the given sizes (width, height); the edges have no cycle."""
    layer_of = _layers(list(sizes), edges)
    width_of = {name: width for name, (width, _) in sizes.items()}
    ways: list[list[str]] = []
    for number, (source, target) in enumerate(edges):
        between = range(layer_of[source] + 1, layer_of[target])
        thin = [f"\0{number}.{layer}" for layer in between]
        for name, layer in zip(thin, between, strict=True):
            layer_of[name], width_of[name] = layer, _THIN
        ways.append([source, *thin, target])
    rows = _ordered(layer_of, ways)
    x = _columns(rows, width_of, ways)
    return _drawing(sizes, rows, x, ways)


def _layers(names: list[str], edges: Sequence[Edge]) -> dict[str, int]:
    before: dict[str, list[str]] = {name: [] for name in names}
    for source, target in edges:
        before[target].append(source)
    layers: dict[str, int] = {}
    for name in TopologicalSorter(before).static_order():
        layers[name] = max((layers[source] + 1 for source in before[name]), default=0)
    return {name: layers[name] for name in names}


def _neighbours(ways: list[list[str]]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    above: dict[str, list[str]] = defaultdict(list)
    below: dict[str, list[str]] = defaultdict(list)
    for way in ways:
        for upper, lower in pairwise(way):
            below[upper].append(lower)
            above[lower].append(upper)
    return above, below


def _ordered(layer_of: Mapping[str, int], ways: list[list[str]]) -> list[list[str]]:
    """Order each layer so that few edges cross."""
    rows: list[list[str]] = [[] for _ in range(max(layer_of.values(), default=-1) + 1)]
    for name, layer in layer_of.items():
        rows[layer].append(name)
    above, below = _neighbours(ways)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        near = above if down else below
        for row in rows if down else reversed(rows):
            place = {name: number for other in rows for number, name in enumerate(other)}
            row.sort(key=lambda name, place=place, near=near: _mean(name, near, place))  # type: ignore[misc]
    return rows


def _mean(name: str, near: Mapping[str, list[str]], place: Mapping[str, int]) -> float:
    others = near.get(name)
    if not others:
        return float(place[name])
    return sum(place[other] for other in others) / len(others)


def _columns(
    rows: list[list[str]], width_of: Mapping[str, float], ways: list[list[str]]
) -> dict[str, float]:
    """Return the x of each node's centre."""
    x: dict[str, float] = {}
    for row in rows:
        left = 0.0
        for name in row:
            x[name] = left + width_of[name] / 2
            left += width_of[name] + GAP_X
    above, below = _neighbours(ways)
    for number in range(_FIXES):
        near = above if number % 2 == 0 else below
        for row in rows:
            _settle(row, x, width_of, near)
    return x


def _settle(
    row: list[str],
    x: dict[str, float],
    width_of: Mapping[str, float],
    near: Mapping[str, list[str]],
) -> None:
    """Move the nodes of a row towards their neighbours; the order and the gaps stay."""
    wanted = {
        name: sum(x[other] for other in near[name]) / len(near[name]) if near.get(name) else x[name]
        for name in row
    }
    placed: list[str] = []
    for name in row:
        x[name] = wanted[name]
        placed.append(name)
        # Push what stands too near to the left, half of the way each.
        for right, left in zip(reversed(placed), list(reversed(placed))[1:], strict=False):
            room = (width_of[left] + width_of[right]) / 2 + GAP_X
            lacking = room - (x[right] - x[left])
            if lacking <= 0:
                break
            x[right] += lacking / 2
            x[left] -= lacking / 2
    # What was pushed to the left may touch its neighbour again: only to the right now.
    for left, right in pairwise(row):
        room = (width_of[left] + width_of[right]) / 2 + GAP_X
        x[right] = max(x[right], x[left] + room)


def _drawing(
    sizes: Mapping[str, tuple[float, float]],
    rows: list[list[str]],
    x: Mapping[str, float],
    ways: list[list[str]],
) -> Drawing:
    left = min((x[name] - sizes[name][0] / 2 for name in sizes), default=0.0)
    boxes: dict[str, Box] = {}
    tops: dict[str, float] = {}
    top = 0.0
    for row in rows:
        height = max((sizes[name][1] for name in row if name in sizes), default=0.0)
        for name in row:
            tops[name] = top + height / 2
            if name in sizes:
                boxes[name] = Box(x[name] - left, top, *sizes[name])
        top += height + GAP_Y
    lines = []
    for way in ways:
        first, last = boxes[way[0]], boxes[way[-1]]
        bends = [(x[name] - left, tops[name]) for name in way[1:-1]]
        lines.append([(first.x, first.y + first.height), *bends, (last.x, last.y)])
    points = [point for line in lines for point in line]
    width = max([box.x + box.width / 2 for box in boxes.values()] + [point[0] for point in points])
    return Drawing({name: boxes[name] for name in sizes}, lines, width, top - GAP_Y)
