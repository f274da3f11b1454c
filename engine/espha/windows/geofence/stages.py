"""Geofence windows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from espha.model.events import BadRecord, Event, Value
from espha.model.project import Field
from espha.windows.geofence.shapes import (
    FARTHEST,
    Box,
    Circle,
    Point,
    Shape,
    box_of,
    centroid,
    checked_point,
    distance,
    inside,
    read_path,
    to_border,
)
from espha.windows.geofence.spec import GeofenceWindow
from espha.windows.shared.one_by_one import OneByOne
from espha.windows.shared.stage import Moment, Stage, Unit, places

Row = tuple[Value, ...]
Cell = tuple[int, int, int]

_GONE: Final = frozenset({"D", "SD"})
_SHIFTS: Final = (0.0, 360.0, -360.0)
_FINEST = -30


@dataclass(slots=True)
class _Fence:
    """A geometry: `number` counts them in the order in which they came."""

    number: int
    key: Value
    row: Row
    shape: Shape
    box: Box
    centre: Point
    cells: list[Cell]


@dataclass(slots=True)
class _Hit:
    fence: _Fence
    distance: float
    inside: bool


def stages(window: GeofenceWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a geofence window."""
    return [Geofence(window, feeds)]


class Fences:
    """Geometries by key, and by where they are.

    Each is in the cells (at most four) that its box touches in a grid whose cells are just
    larger than the box; there is a grid for each power of two. So a position looks into one cell
    of each grid, however many geometries there are.
    """

    def __init__(self, window: GeofenceWindow, fields: tuple[Field, ...]) -> None:
        self._globe, self._lookup = window.geographic, window.position.lookup
        self._geometry = window.geometry
        self._places = {field.name: place for place, field in enumerate(fields)}
        (self._key,) = [place for place, field in enumerate(fields) if field.key]
        self._fences: dict[Value, _Fence] = {}
        self._cells: dict[Cell, dict[int, _Fence]] = {}
        self._levels: dict[int, int] = {}
        self._next = 0

    def put(self, event: Event) -> None:
        """Insert, change or delete a geometry.

        Raises:
            BadRecord: it is no geometry, or its opcode does not fit; nothing has changed.
        """
        key = event.values[self._key]
        if key is None:
            raise BadRecord("the key of a geometry is null")
        old = self._fences.get(key)
        if event.opcode in _GONE:
            if old is None and event.opcode == "D":
                raise BadRecord(f"delete of geometry {_shown(key)}, which does not exist")
            if old is not None:
                self._remove(old)
            return
        if event.opcode == "I" and old is not None:
            raise BadRecord(f"insert of geometry {_shown(key)}, which exists")
        row = event.values
        if event.flags == "P" and old is not None:
            row = tuple([b if a is None else a for a, b in zip(row, old.row, strict=True)])
        number = self._next if old is None else old.number
        fence = self._made(number, key, row)
        if old is not None:
            self._remove(old)
        self._add(fence)

    def _made(self, number: int, key: Value, row: Row) -> _Fence:
        try:
            shape = self._shape(row)
        except ValueError as error:
            raise BadRecord(f"geometry {_shown(key)}: {error}") from None
        box = box_of(shape, self._lookup, globe=self._globe)
        return _Fence(number, key, row, shape, box, centroid(shape), _cells(box))

    def _shape(self, row: Row) -> Shape:
        geometry = self._geometry
        data = row[self._places[geometry.data]] if geometry.data else None
        if isinstance(data, str) and data.strip():
            return read_path(data, geometry.separator, globe=self._globe)
        if not geometry.x:
            raise ValueError(f"field {geometry.data} is empty")
        x, y = (row[self._places[name]] for name in (geometry.x, geometry.y))
        radius = row[self._places[geometry.radius]] if geometry.radius else None
        if not isinstance(radius, int | float):
            radius = geometry.default_radius
        if not isinstance(x, int | float) or not isinstance(y, int | float):
            raise ValueError("the centre is null")
        if not 0 <= radius <= FARTHEST:
            raise ValueError(f"the radius {radius} is not between 0 and {FARTHEST:g}")
        return Circle(checked_point(x, y, globe=self._globe), float(radius))

    def _add(self, fence: _Fence) -> None:
        self._fences[fence.key] = fence
        self._next = max(self._next, fence.number + 1)
        for cell in fence.cells:
            self._cells.setdefault(cell, {})[fence.number] = fence
        level = fence.cells[0][0]
        self._levels[level] = self._levels.get(level, 0) + 1

    def _remove(self, fence: _Fence) -> None:
        del self._fences[fence.key]
        for cell in fence.cells:
            del self._cells[cell][fence.number]
            if not self._cells[cell]:
                del self._cells[cell]
        level = fence.cells[0][0]
        self._levels[level] -= 1
        if not self._levels[level]:
            del self._levels[level]

    def around(self, point: Point) -> list[tuple[_Fence, Point]]:
        """Return the geometries whose box holds the point, oldest first.

        With each comes the point as the geometry sees it: on the globe its longitude can differ
        by 360 degrees.
        """
        found: dict[int, tuple[_Fence, Point]] = {}
        x, y = point
        for shift in _SHIFTS if self._globe else (0.0,):
            seen = (x + shift, y)
            for level in self._levels:
                size = math.ldexp(1.0, level)
                cell = (level, math.floor(seen[0] / size), math.floor(y / size))
                for number, fence in self._cells.get(cell, {}).items():
                    left, bottom, right, top = fence.box
                    if left <= seen[0] <= right and bottom <= y <= top:
                        found.setdefault(number, (fence, seen))
        return [found[number] for number in sorted(found)]

    def state(self) -> Any:
        """Return the next number and the rows with theirs, oldest first."""
        fences = sorted(self._fences.values(), key=lambda fence: fence.number)
        return (self._next, OneByOne(lambda: ((fence.number, fence.row) for fence in fences)))

    def restore(self, state: Any) -> None:
        """Take over the rows."""
        self._fences, self._cells, self._levels = {}, {}, {}
        for number, row in state[1]:
            self._add(self._made(number, row[self._key], row))
        self._next = state[0]


def _cells(box: Box) -> list[Cell]:
    size = max(box.right - box.left, box.top - box.bottom)
    level = max(math.frexp(size)[1], _FINEST)
    step = math.ldexp(1.0, level)
    left, bottom, right, top = (math.floor(edge / step) for edge in box)
    return [(level, x, y) for x in range(left, right + 1) for y in range(bottom, top + 1)]


class Geofence:
    """Keeps the geometries and looks up each position."""

    def __init__(self, window: GeofenceWindow, feeds: Sequence[tuple[Field, ...]]) -> None:
        self._window = window
        positions, geometries = feeds[window.position.port], feeds[window.geometry.port]
        self._fences = Fences(window, geometries)
        self._x, self._y = places([window.position.x, window.position.y], positions)
        self._description = (
            places([window.geometry.description], geometries)[0]
            if window.geometry.description
            else None
        )
        self._key = [place for place, field in enumerate(positions) if field.key]
        self._sources = _sources(window, positions)
        self._results: dict[Row, int] = {}

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Take a geometry, or return what is known about a position."""
        if at.port == self._window.geometry.port:
            self._fences.put(unit[0])
            return ()
        if unit[0].flags == "P":
            raise BadRecord("a partial update has no position; let a stateful window complete it")
        if not self._window.multiple:
            return (
                tuple([self._event(event, event.opcode, self._hits(event), 0) for event in unit]),
            )
        return self._several(unit) if self._window.stateful else self._each(unit)

    def _each(self, unit: Unit) -> list[Unit]:
        """Return one event a geometry, with the opcode that the position has."""
        return [
            (self._event(event, event.opcode, hits, number),)
            for event in unit
            for hits in [self._hits(event)]
            for number in range(max(1, len(hits)))
        ]

    def _several(self, unit: Unit) -> list[Unit]:
        """Return the rows that the position has now, and delete those that it has no more."""
        event = unit[0]
        key = tuple([event.values[place] for place in self._key])
        if None in key:
            raise BadRecord("the key is null")
        before = self._results.get(key, 0)
        if event.opcode in _GONE:
            if not before and event.opcode == "D":
                raise BadRecord(f"delete of position {_shown(*key)}, which is unknown")
            now, hits = 0, []
        else:
            if event.opcode == "I" and before:
                raise BadRecord(f"insert of position {_shown(*key)}, which exists")
            if event.opcode == "U" and not before:
                raise BadRecord(f"update of position {_shown(*key)}, which is unknown")
            hits = self._hits(event)
            now = max(1, len(hits))
        self._results[key] = now
        if not now:
            del self._results[key]
        units: list[Unit] = [(self._event(event, "P", hits, number),) for number in range(now)]
        units += [(self._event(event, "SD", [], number),) for number in range(now, before)]
        return units

    def _hits(self, event: Event) -> list[_Hit]:
        x, y = event.values[self._x], event.values[self._y]
        if not isinstance(x, int | float) or not isinstance(y, int | float):
            return []
        window = self._window
        globe, lookup = window.geographic, window.position.lookup
        try:
            point = checked_point(x, y, globe=globe)
        except ValueError as error:
            raise BadRecord(str(error)) from None
        hits = []
        for fence, seen in self._fences.around(point):
            shape = fence.shape
            border = to_border(shape, seen, globe=globe)
            on_border = border == 0 and (isinstance(shape, Circle) or shape.closed)
            within = on_border or inside(shape, seen, globe=globe)
            if within or border <= lookup:
                centred = window.to_centroid or isinstance(shape, Circle)
                far = distance(fence.centre, seen, globe=globe) if centred else border
                if within and not centred:
                    far = -border
                hits.append(_Hit(fence, far, within))
        if window.sorted or not window.multiple:
            hits.sort(key=lambda hit: (hit.distance, hit.fence.number))
        return hits

    def _event(self, event: Event, opcode: str, hits: list[_Hit], number: int) -> Event:
        found: tuple[Value, ...] = (None, None, None, None, "outside", number)
        if number < len(hits):
            hit = hits[number]
            row = hit.fence.row
            found = (
                hit.fence.key,
                _kind(hit.fence.shape),
                None if self._description is None else row[self._description],
                hit.distance,
                "inside" if hit.inside else "proximity",
                number,
            )
        values = event.values + found
        return Event(opcode, event.flags, tuple([values[place] for place in self._sources]))

    def state(self) -> Any:
        """Return the geometries, and how many rows each position has."""
        return (self._fences.state(), self._results)

    def restore(self, state: Any) -> None:
        """Take over the geometries and the counts."""
        self._fences.restore(state[0])
        self._results = dict(state[1])


def _sources(window: GeofenceWindow, positions: tuple[Field, ...]) -> list[int]:
    """Return where each field comes from: the position's values, then the six outputs."""
    names = [field.name for field in positions]
    order = ("geoid", "geotype", "geodesc", "geodistance", "eventtype", "eventnumber")
    places_ = {name: place for place, name in enumerate(names)}
    for place, output in enumerate(order, start=len(names)):
        if output in window.outputs:
            places_[window.outputs[output]] = place
    return [places_[field.name] for field in window.fields]


def _kind(shape: Shape) -> str:
    if isinstance(shape, Circle):
        return "Circle"
    return "Polygon" if shape.closed else "Polyline"


def _shown(*key: Value) -> str:
    return ", ".join(str(part)[:60] for part in key)
