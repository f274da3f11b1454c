"""Circles, polygons and lines: whether a point is inside, and how far away it is.

In a plane, x and y and all distances have one unit. On the globe, x is the longitude and y the
latitude in degrees, distances are metres: between two points along the great circle (haversine),
to a border in the plane that touches the globe at the point, which is exact enough for fences.
A border takes the short way round the globe, so it may cross the 180th meridian.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

EARTH: Final = 6_371_000.0
"""Radius of the globe in metres."""

FARTHEST: Final = 1e100
"""Largest coordinate and distance: areas and centroids stay finite."""

MAX_POINTS: Final = 100_000

Point = tuple[float, float]


class Box(NamedTuple):
    """A rectangle that contains a shape and what is near it."""

    left: float
    bottom: float
    right: float
    top: float


class Circle(NamedTuple):
    """A circle; with the radius 0, a point."""

    centre: Point
    radius: float


class Path(NamedTuple):
    """A polygon (rings, each closed) or a line (one run of points that is not).

    Attributes:
        runs: of points; of a ring, the last is the first. A ring within a ring is a hole.
        closed: whether they are rings.
    """

    runs: tuple[tuple[Point, ...], ...]
    closed: bool


Shape = Circle | Path


def read_path(text: str, separator: str, *, globe: bool) -> Path:
    """Read `x1 y1 x2 y2 …`; a ring ends at the point that it began with.

    Raises:
        ValueError: no numbers, too few or too many points, a ring that goes round a pole.
    """
    cells = text.split() if separator == " " else text.split(separator)
    cells = [cell.strip() for cell in cells if cell.strip()]
    if len(cells) % 2 or len(cells) < 4:
        raise ValueError(f"{len(cells)} numbers make no line or polygon; give pairs of x and y")
    if len(cells) > 2 * MAX_POINTS:
        raise ValueError(f"more than {MAX_POINTS} points")
    points = [
        checked_point(x, y, globe=globe) for x, y in zip(cells[::2], cells[1::2], strict=True)
    ]
    return _rings(points, globe=globe)


def checked_point(x: str | float, y: str | float, *, globe: bool) -> Point:
    """Return a point.

    Raises:
        ValueError: not numbers, too large, or a latitude beyond 90 degrees.
    """
    try:
        point = float(x), float(y)
    except (ValueError, OverflowError):
        raise ValueError(f"{str(x)[:40]!r}, {str(y)[:40]!r} is not a point") from None
    if not all(abs(part) <= FARTHEST for part in point):
        raise ValueError(f"{point[0]}, {point[1]} is beyond {FARTHEST:g}")
    if globe and abs(point[1]) > 90:
        raise ValueError(f"latitude {point[1]} is beyond 90 degrees")
    if globe and abs(point[0]) > 360:
        raise ValueError(f"longitude {point[0]} is beyond 360 degrees")
    return point


def _rings(points: Sequence[Point], *, globe: bool) -> Path:
    runs: list[tuple[Point, ...]] = []
    run: list[Point] = []
    for point in points:
        run.append(point)
        if len(run) > 3 and point == run[0]:
            runs.append(_unwrapped(run) if globe else tuple(run))
            run = []
    if run and runs:
        raise ValueError("the last ring does not end at the point that it began with")
    if runs:
        return Path(tuple(runs), closed=True)
    return Path((_unwrapped(run, closed=False) if globe else tuple(run),), closed=False)


def _unwrapped(run: Sequence[Point], *, closed: bool = True) -> tuple[Point, ...]:
    """Let longitudes go on beyond 180 where the way crosses that meridian."""
    result = [run[0]]
    for x, y in run[1:]:
        result.append((x + 360 * round((result[-1][0] - x) / 360), y))
    if closed and result[0] != result[-1]:
        raise ValueError("a ring goes round a pole; cut it along a meridian")
    return tuple(result)


def haversine(one: Point, two: Point) -> float:
    """Return the metres between two points on the globe."""
    (x1, y1), (x2, y2) = one, two
    up = math.sin(math.radians(y2 - y1) / 2) ** 2
    along = math.sin(math.radians(x2 - x1) / 2) ** 2
    part = up + math.cos(math.radians(y1)) * math.cos(math.radians(y2)) * along
    return 2 * EARTH * math.asin(min(1.0, math.sqrt(part)))


def box_of(shape: Shape, margin: float, *, globe: bool) -> Box:
    """Return the box around a shape and `margin` (metres or units) around it."""
    if isinstance(shape, Circle):
        points, margin = [shape.centre], margin + shape.radius
    else:
        points = [point for run in shape.runs for point in run]
    bottom, top = (pick(y for _, y in points) for pick in (min, max))
    left, right = (pick(x for x, _ in points) for pick in (min, max))
    if not globe:
        return Box(left - margin, bottom - margin, right + margin, top + margin)
    # A hair more, since the two ways of measuring differ by less than that.
    up = math.degrees(margin / EARTH) * 1.01 + 1e-9
    widest = min(90.0, max(abs(bottom - up), abs(top + up)))
    along = up / math.cos(math.radians(widest)) if widest < 89.9 else 180.0
    along = min(along, 180.0)
    return Box(left - along, bottom - up, right + along, top + up)


def inside(shape: Shape, point: Point, *, globe: bool) -> bool:
    """Whether the point is in the circle, border included, or within the polygon's border."""
    if isinstance(shape, Circle):
        return distance(shape.centre, point, globe=globe) <= shape.radius
    if not shape.closed:
        return False
    odd = False
    x, y = point
    for run in shape.runs:
        for (x1, y1), (x2, y2) in pairwise(run):
            if (y1 > y) != (y2 > y) and x < (x2 - x1) * (y - y1) / (y2 - y1) + x1:
                odd = not odd
    return odd


def distance(one: Point, two: Point, *, globe: bool) -> float:
    """Return the distance of two points."""
    return haversine(one, two) if globe else math.hypot(one[0] - two[0], one[1] - two[1])


def to_border(shape: Shape, point: Point, *, globe: bool) -> float:
    """Return the distance to the nearest point of the border; of a circle, from outside."""
    if isinstance(shape, Circle):
        return max(0.0, distance(shape.centre, point, globe=globe) - shape.radius)
    x, y = point
    right, up = 1.0, 1.0
    if globe:
        up = math.radians(1) * EARTH
        right = up * math.cos(math.radians(y))
    nearest = math.inf
    for run in shape.runs:
        for (x1, y1), (x2, y2) in pairwise(run):
            ends = ((x1 - x) * right, (y1 - y) * up, (x2 - x) * right, (y2 - y) * up)
            nearest = min(nearest, _to_segment(*ends))
    return nearest


def _to_segment(x1: float, y1: float, x2: float, y2: float) -> float:
    """Return the distance of the origin to a segment."""
    dx, dy = x2 - x1, y2 - y1
    square = dx * dx + dy * dy
    part = 0.0 if square == 0 else min(1.0, max(0.0, -(x1 * dx + y1 * dy) / square))
    return math.hypot(x1 + part * dx, y1 + part * dy)


def centroid(shape: Shape) -> Point:
    """Return the centre of a circle, of a polygon's area, or of a line's points."""
    if isinstance(shape, Circle):
        return shape.centre
    x0, y0 = shape.runs[0][0]
    area, across, upwards = [], [], []
    for run in shape.runs if shape.closed else ():
        for (x1, y1), (x2, y2) in pairwise(run):
            # Seen from a corner, so that small fences far from the origin lose no digits.
            cross = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
            area.append(cross)
            across.append((x1 + x2 - 2 * x0) * cross)
            upwards.append((y1 + y2 - 2 * y0) * cross)
    whole = math.fsum(area)
    if whole:
        return x0 + math.fsum(across) / (3 * whole), y0 + math.fsum(upwards) / (3 * whole)
    points = [point for run in shape.runs for point in run]
    xs, ys = ([point[axis] for point in points] for axis in (0, 1))
    return math.fsum(xs) / len(xs), math.fsum(ys) / len(ys)
