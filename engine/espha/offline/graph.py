"""A picture of a model: its windows as boxes, its edges as arrows."""

from collections.abc import Iterable, Mapping
from typing import Final

from lxml import etree

from espha.model import Edge, Project, Window
from espha.offline.layout import Drawing, layout
from espha.windows.shared.spec import Family
from espha.windows.types import WINDOWS

_SVG = "http://www.w3.org/2000/svg"
_LETTER = 7.0
_LINE = 16.0
_PAD = 10.0
_MARGIN = 24.0
_MOST_FIELDS = 4
_LONGEST = 44

COLOURS: Final[Mapping[Family, str]] = {
    "entry": "#cfe8cf",
    "choice": "#fde7c4",
    "computation": "#d6e4f7",
    "rows": "#ececec",
    "merging": "#e5dbf3",
    "statistics": "#f7d9d9",
    "patterns": "#f7e3ef",
    "places": "#d3eeee",
    "messages": "#f5f0c0",
}


def svg(project: Project) -> bytes:
    """Return the picture, as an SVG document."""
    labels = {path: _label(window, project) for path, window in project.windows.items()}
    sizes = {path: _size(lines) for path, lines in labels.items()}
    drawing = layout(sizes, [(edge.source, edge.target) for edge in project.edges])
    root = _canvas(project, drawing)
    for edge, line in zip(project.edges, drawing.lines, strict=True):
        _draw_edge(root, edge, line)
    for path, window in project.windows.items():
        _draw_window(root, window, labels[path], drawing)
    return etree.tostring(root, xml_declaration=True, encoding="utf-8", pretty_print=True)


def _label(window: Window, project: Project) -> list[str]:
    """Return the lines of a window's box."""
    queries = {other.query for other in project.windows.values()}
    kept = window.index if window.stateful else "stateless"
    lines = [window.name if len(queries) == 1 else window.path, f"{window.type}, {kept}"]
    keys = [field for field in window.fields if field.key]
    others = [field for field in window.fields if not field.key]
    shown = [f"{field.name}*: {field.type}" for field in keys[:_MOST_FIELDS]]
    shown += [f"{field.name}: {field.type}" for field in others][: _MOST_FIELDS - len(shown)]
    hidden = len(window.fields) - len(shown)
    lines += [*shown, *([f"and {hidden} more"] if hidden else [])]
    arrows = {"pub": "in from", "sub": "out to"}
    lines += [f"{arrows[one.type]} {one.class_} {one.name}".strip() for one in window.connectors]
    return [line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…" for line in lines]


def _size(lines: list[str]) -> tuple[float, float]:
    return max(map(len, lines)) * _LETTER + 2 * _PAD, len(lines) * _LINE + 2 * _PAD


def _canvas(project: Project, drawing: Drawing) -> etree._Element:
    width, height = drawing.width + 2 * _MARGIN, drawing.height + 2 * _MARGIN
    root = etree.Element(
        f"{{{_SVG}}}svg",
        {
            "viewBox": f"{-_MARGIN:g} {-_MARGIN:g} {width:.0f} {height:.0f}",
            "width": f"{width:.0f}",
            "height": f"{height:.0f}",
            "font-family": "sans-serif",
            "font-size": "12",
        },
        nsmap={None: _SVG},  # type: ignore[dict-item]
    )
    _add(root, "title").text = f"Project {project.name}"
    marker = _add(
        _add(root, "defs"),
        "marker",
        {"id": "tip", "viewBox": "0 0 8 8", "refX": "8", "refY": "4", "markerWidth": "8",
         "markerHeight": "8", "orient": "auto"},
    )  # fmt: skip
    _add(marker, "path", {"d": "M0,0 L8,4 L0,8 z", "fill": "#555555"})
    _add(
        root,
        "rect",
        {"x": f"{-_MARGIN:g}", "y": f"{-_MARGIN:g}", "width": f"{width:.0f}",
         "height": f"{height:.0f}", "fill": "#ffffff"},
    )  # fmt: skip
    return root


def _draw_edge(root: etree._Element, edge: Edge, line: list[tuple[float, float]]) -> None:
    x, y = line[0]
    path = f"M{x:.1f},{y:.1f}"
    for to_x, to_y in line[1:]:
        middle = (y + to_y) / 2
        path += f" C{x:.1f},{middle:.1f} {to_x:.1f},{middle:.1f} {to_x:.1f},{to_y:.1f}"
        x, y = to_x, to_y
    _add(
        root,
        "path",
        {"d": path, "fill": "none", "stroke": "#555555", "marker-end": "url(#tip)"},
    )
    words = [] if edge.role == "data" else [edge.role]
    words += [] if edge.slot is None else [f"slot {edge.slot}"]
    if words:
        (last_x, last_y), (end_x, end_y) = line[-2:]
        place = {"x": f"{(last_x + 3 * end_x) / 4 + 6:.1f}", "y": f"{end_y - 14:.1f}"}
        if end_y - last_y < 20:
            place["y"] = f"{(last_y + end_y) / 2:.1f}"
        _add(root, "text", {**place, "fill": "#555555"}).text = ", ".join(words)


def _draw_window(
    root: etree._Element, window: Window, lines: Iterable[str], drawing: Drawing
) -> None:
    box = drawing.boxes[window.path]
    left = box.x - box.width / 2
    group = _add(root, "g")
    _add(group, "title").text = f"{window.path} ({window.type}, line {window.line})"
    _add(
        group,
        "rect",
        {"x": f"{left:.1f}", "y": f"{box.y:.1f}", "width": f"{box.width:.1f}",
         "height": f"{box.height:.1f}", "rx": "6", "stroke": "#555555",
         "fill": COLOURS[WINDOWS[window.type].family]},
    )  # fmt: skip
    for number, line in enumerate(lines):
        place = {"x": f"{left + _PAD:.1f}", "y": f"{box.y + _PAD + (number + 0.75) * _LINE:.1f}"}
        style = {"font-weight": "bold"} if number == 0 else {"fill": "#333333"}
        _add(group, "text", {**place, **style}).text = line


def _add(
    parent: etree._Element, tag: str, attributes: dict[str, str] | None = None
) -> etree._Element:
    return etree.SubElement(parent, f"{{{_SVG}}}{tag}", attributes or {})
