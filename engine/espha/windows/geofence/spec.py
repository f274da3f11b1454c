"""Geofence windows: which circles and polygons a position is in, or near."""

import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from lxml import etree

from espha.model.project import Field, Window
from espha.model.schema import read_schema
from espha.model.types import DOUBLES, INTEGERS, TypeName
from espha.model.xml import attributes, boolean, only_child
from espha.windows.shared.spec import Feed, Reading, WindowType


class Position(NamedTuple):
    """Where things are.

    Attributes:
        port: the input that they come from.
        x: field with the longitude in degrees, or the x.
        y: field with the latitude in degrees, or the y.
        lookup: how far from a geometry counts as near it; metres, or units of x and y.
    """

    port: int
    x: str
    y: str
    lookup: float


class Geometry(NamedTuple):
    """Where the fences are; each is a polygon or a line (`data`), or else a circle.

    Attributes:
        port: the input that they come from.
        x: field with the x of a circle's centre; empty: there are no circles. So with `y`.
        radius: field with its radius; empty: `default_radius` for all. Metres or units.
        data: field with the points of a polygon; empty: there are none.
        separator: what separates its numbers.
        description: field with a text for the output; empty: none.
    """

    port: int
    x: str
    y: str
    radius: str
    default_radius: float
    data: str
    separator: str
    description: str


class GeofenceWindow(Window):
    """Adds to each position the geometry that it is in or near.

    Attributes:
        geographic: x and y are degrees, distances metres; else both are the same plain unit.
        multiple: one event for each geometry, else one for the nearest.
        sorted: of several geometries the nearest first, else the oldest.
        to_centroid: the distance to a polygon is that to its centroid, else to its border, which is
            negative inside.
        outputs: field names by what is written to them: geoid, geotype, geodesc, geodistance,
            eventtype, eventnumber.
    """

    type: Literal["geofence"] = "geofence"
    geographic: bool
    multiple: bool
    sorted: bool
    to_centroid: bool
    position: Position
    geometry: Geometry
    outputs: dict[str, str]


_TUNING: Final = frozenset(
    {"log-invalid-geometry", "max-meshcells-per-geometry", "autosize-mesh", "mesh-factor-x",
     "mesh-factor-y"}
)  # fmt: skip
"""How ESP lays out its index; ours needs no advice."""

_GEOFENCE: Final = frozenset(
    {"coordinate-type", "output-multiple-results", "output-sorted-results",
     "polygon-compute-distance-to"}
)  # fmt: skip
_GEOMETRY: Final = frozenset(
    {"x-fieldname", "y-fieldname", "radius-fieldname", "radius", "data-fieldname",
     "data-separator", "desc-fieldname"}
)  # fmt: skip
_POSITION: Final = frozenset({"x-fieldname", "y-fieldname", "lookupdistance"})
_ROLES: Final = ("position", "geometry")
_OUTPUTS: Final = ("geoid", "geotype", "geodesc", "geodistance", "eventtype", "eventnumber")
_RADIUS: Final = "1000"
"""Of circles without one."""
_NUMBERS: Final = frozenset({*INTEGERS, *DOUBLES})
_WANTED: Final[Mapping[str, frozenset[str]]] = {
    "geotype": frozenset({"string"}),
    "geodesc": frozenset({"string"}),
    "geodistance": DOUBLES,
    "eventtype": frozenset({"string"}),
    "eventnumber": frozenset({"int32", "int64"}),
}


def _read(reading: Reading) -> GeofenceWindow | None:
    before = len(reading.findings.problems)
    ports = _ports(reading)
    if ports is None:
        return None
    positions, geometries = (reading.feeds[ports[role]] for role in _ROLES)
    parts = {tag: _part(reading, tag) for tag in ("geofence", "geometry", "position", "output")}
    geometry = _geometry(reading, parts["geometry"], geometries, ports["geometry"])
    position = _position(reading, parts["position"], positions, ports["position"])
    options = _options(reading, parts["geofence"])
    outputs = _outputs(reading, parts["output"])
    fields = _fields(reading, positions, geometries, outputs, multiple=options["multiple"])
    if len(reading.findings.problems) > before or fields is None:
        return None
    return GeofenceWindow(
        **reading.common,
        **options,
        fields=fields,
        position=position,
        geometry=geometry,
        outputs=outputs,
    )


def _ports(reading: Reading) -> dict[str, int] | None:
    """Say which input is which: by role, else the first one has the positions."""
    roles = [feed.role for feed in reading.feeds]
    if roles[0] == roles[1] != "data":
        reading.refuse('needs one edge with role="position" and one with role="geometry"')
        return None
    swapped = roles[0] == "geometry" or roles[1] == "position"
    return dict(zip(_ROLES, (1, 0) if swapped else (0, 1), strict=True))


def _part(reading: Reading, tag: str) -> etree._Element:
    element = only_child(reading.element, tag, reading.findings)
    if element is None:
        if tag != "geofence":
            reading.refuse(f"needs a <{tag}>")
        element = etree.SubElement(reading.element, tag)
    return element


def _options(reading: Reading, element: etree._Element) -> dict[str, bool]:
    findings = reading.findings
    attributes(element, _GEOFENCE | _TUNING, findings)
    kind = element.get("coordinate-type", "cartesian")
    if kind not in {"cartesian", "geographic"}:
        findings.refuse(element, f"coordinate-type {kind!r} is not one of: cartesian, geographic")
    end = element.get("polygon-compute-distance-to", "centroid")
    if end not in {"segment", "centroid"}:
        reason = f"polygon-compute-distance-to {end!r} is not one of: segment, centroid"
        findings.refuse(element, reason)
    return {
        "geographic": kind == "geographic",
        "multiple": boolean(element, "output-multiple-results", findings),
        "sorted": boolean(element, "output-sorted-results", findings),
        "to_centroid": end == "centroid",
    }


def _geometry(reading: Reading, element: etree._Element, feed: Feed, port: int) -> Geometry:
    attributes(element, _GEOMETRY, reading.findings)
    x, y, radius = (
        _field(reading, element, f"{name}-fieldname", feed, _NUMBERS)
        for name in ("x", "y", "radius")
    )
    data = _field(reading, element, "data-fieldname", feed, frozenset({"string"}))
    if bool(x) != bool(y) or not (x or data):
        reason = "give data-fieldname for polygons, or x-fieldname and y-fieldname for circles"
        reading.findings.refuse(element, reason)
    keys = [field for field in feed.fields if field.key]
    if len(keys) != 1 or keys[0].type not in {"int64", "int32", "string"}:
        reason = "the window with the geometries needs one key, of type int64, int32 or string"
        reading.refuse(reason)
    return Geometry(
        port,
        x,
        y,
        radius,
        _distance(reading, element, "radius", _RADIUS),
        data,
        element.get("data-separator") or " ",
        _field(reading, element, "desc-fieldname", feed, frozenset({"string"})),
    )


def _position(reading: Reading, element: etree._Element, feed: Feed, port: int) -> Position:
    attributes(element, _POSITION, reading.findings)
    x, y = (
        _field(reading, element, f"{name}-fieldname", feed, _NUMBERS, needed=True)
        for name in ("x", "y")
    )
    return Position(port, x, y, _distance(reading, element, "lookupdistance"))


def _field(
    reading: Reading,
    element: etree._Element,
    attribute: str,
    feed: Feed,
    types: frozenset[str],
    *,
    needed: bool = False,
) -> str:
    name = element.get(attribute, "")
    if not name:
        if needed:
            reading.findings.refuse(element, f"needs the attribute {attribute}")
        return ""
    found = {field.name: field.type for field in feed.fields}.get(name)
    if found is None:
        reading.findings.refuse(element, f"{attribute}: {name!r} is not a field of {feed.path}")
    elif found not in types:
        wanted = "a string" if "string" in types else "a number"
        reading.findings.refuse(element, f"{attribute}: {name!r} is {found}, not {wanted}")
    return name


def _distance(
    reading: Reading, element: etree._Element, attribute: str, default: str = "0"
) -> float:
    text = element.get(attribute, "").strip() or default
    try:
        value = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if 0 <= value <= 1e100:
        return value
    reading.findings.refuse(element, f"{attribute} is {text!r}; give a number from 0 to 1e100")
    return 0.0


def _outputs(reading: Reading, element: etree._Element) -> dict[str, str]:
    attributes(element, frozenset(f"{name}-fieldname" for name in _OUTPUTS), reading.findings)
    found = {name: element.get(f"{name}-fieldname", "") for name in _OUTPUTS}
    outputs = {name: field for name, field in found.items() if field}
    if "geoid" not in outputs:
        reading.findings.refuse(element, "needs the attribute geoid-fieldname")
    if len(set(outputs.values())) < len(outputs):
        reading.findings.refuse(element, "two outputs go to the same field")
    return outputs


def _fields(
    reading: Reading, positions: Feed, geometries: Feed, outputs: dict[str, str], *, multiple: bool
) -> tuple[Field, ...] | None:
    """Return the schema: as given, or that of the positions and then the outputs."""
    if multiple and "eventnumber" not in outputs:
        reading.refuse("output-multiple-results needs eventnumber-fieldname: it is part of the key")
        return None
    ids: list[TypeName] = [field.type for field in geometries.fields if field.key]
    id_type = ids[0] if ids else "string"
    added = {
        "geoid": Field(outputs.get("geoid", ""), id_type),
        "geotype": Field(outputs.get("geotype", ""), "string"),
        "geodesc": Field(outputs.get("geodesc", ""), "string"),
        "geodistance": Field(outputs.get("geodistance", ""), "double"),
        "eventtype": Field(outputs.get("eventtype", ""), "string"),
        "eventnumber": Field(outputs.get("eventnumber", ""), "int64", multiple),
    }
    by_name = {added[name].name: added[name] for name in outputs}
    given = {"schema", "schema-string"} & {str(child.tag) for child in reading.element}
    if given:
        return _checked(reading, positions.fields, by_name, outputs, id_type)
    double = sorted(set(by_name) & {field.name for field in positions.fields})
    if double:
        reading.refuse(f"the positions have a field {', '.join(double)} already; rename the output")
    return (*positions.fields, *by_name.values())


def _checked(
    reading: Reading,
    positions: Sequence[Field],
    added: Mapping[str, Field],
    outputs: Mapping[str, str],
    id_type: str,
) -> tuple[Field, ...] | None:
    fields = read_schema(reading.element, reading.findings)
    if fields is None:
        return None
    known = {field.name: field for field in positions}
    roles = {field: role for role, field in outputs.items()}
    for field in fields:
        role = roles.get(field.name)
        if role is None and field.name not in known:
            reading.refuse(f"field {field.name!r} is neither in the positions nor an output")
            continue
        wanted = {known[field.name].type} if role is None else _WANTED.get(role, {id_type})
        if field.type not in wanted:
            there = " or ".join(sorted(wanted))
            reading.refuse(f"field {field.name!r} is {field.type}, not {there}")
    keys = {field.name for field in positions if field.key}
    keys |= {field.name for field in added.values() if field.key}
    if {field.name for field in fields if field.key} != keys:
        reading.refuse(f"the key must be {', '.join(sorted(keys))}")
    return fields


WINDOW = WindowType(
    "geofence",
    _read,
    "places",
    elements=frozenset({"schema", "schema-string", "geofence", "geometry", "position", "output"}),
    inputs=(2, 2),
    roles=frozenset(_ROLES),
)
