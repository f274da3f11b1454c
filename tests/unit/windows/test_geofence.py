"""Geofences: what each position is in or near, event by event."""

import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espha.kernel import Kernel
from espha.model import ModelError
from espha.model.events import Event
from espha.reader import read_project
from espha.recovery.plain import dumps, loads
from espha.windows.geofence.shapes import Circle, centroid, haversine, inside, read_path, to_border
from support.models import SUB, source, xml

OUTPUT = (
    '<output geoid-fieldname="geo" geodesc-fieldname="about" geodistance-fieldname="far" '
    'eventtype-fieldname="type" eventnumber-fieldname="nr"/>'
)
GEOMETRY = (
    '<geometry data-fieldname="data" x-fieldname="gx" y-fieldname="gy" radius-fieldname="r" '
    'desc-fieldname="text" radius="7"/>'
)
SEGMENT = 'polygon-compute-distance-to="segment"'
SQUARE = "0 0 10 0 10 10 0 10 0 0"
HOLED = SQUARE + " 4 4 6 4 6 6 4 6 4 4"


ROLES = (
    '<edge source="in" target="out" role="position"/>'
    '<edge source="fences" target="out" role="geometry"/>'
)


def project(
    options: str = "",
    *,
    edges: str = ROLES,
    lookup: str = "0",
    output: str = OUTPUT,
    geometry: str = GEOMETRY,
    index: str = "pi_EMPTY",
    before: str = "",
) -> Any:
    windows = (
        source("id*:int64,x:double,y:double")
        + source("geo*:string,gx:double,gy:double,r:double,data:string,text:string", name="fences")
        + f'<window-geofence name="out" index="{index}">{before}<geofence {options}/>{geometry}'
        f'<position x-fieldname="x" y-fieldname="y" lookupdistance="{lookup}"/>{output}{SUB}'
        "</window-geofence>"
    )
    return read_project(xml(windows, edges))


class Run:
    """A kernel whose outputs are the values that the geofence adds."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.kernel = Kernel(project(*args, **options))

    def fence(self, name: str, data: Any = None, *, at: Any = (None, None), opcode: str = "I",
              r: Any = None, text: Any = None) -> list[str]:  # fmt: skip
        """Publish a geometry; return what is refused."""
        row = (name, *at, r, data, text)
        assert self.kernel.publish("q/fences", Event(opcode, "N", row), 0) == []
        return [reason for _, reason in self.kernel.take_refusals()]

    def at(self, x: Any, y: Any, opcode: str = "I", key: int = 1) -> list[Any]:
        """Publish a position; return what the window adds, with the opcode."""
        outputs = self.kernel.publish("q/in", Event(opcode, "N", (key, x, y)), 0)
        return [(event.opcode, *event.values[3:]) for _, event in outputs]


def test_a_position_is_in_a_polygon_or_outside() -> None:
    run = Run(SEGMENT)
    assert run.at(5.0, 5.0) == [("I", None, None, None, "outside", 0)]
    run.fence("square", HOLED, text="a yard")
    assert run.at(2.0, 5.0) == [("I", "square", "a yard", -2.0, "inside", 0)]
    assert run.at(5.0, 5.0) == [("I", None, None, None, "outside", 0)]  # in the hole
    assert run.at(10.0, 5.0) == [("I", "square", "a yard", 0.0, "inside", 0)]  # on the border
    assert run.at(11.0, 5.0) == [("I", None, None, None, "outside", 0)]
    assert run.at(None, 5.0) == [("I", None, None, None, "outside", 0)]


@pytest.mark.parametrize(
    "edges",
    [
        '<edge source="in fences" target="out"/>',
        '<edge source="in" target="out"/><edge source="fences" target="out" role="geometry"/>',
        '<edge source="fences" target="out"/><edge source="in" target="out" role="position"/>',
        '<edge source="fences" target="out" role="geometry"/><edge source="in" target="out"/>',
    ],
)
def test_an_edge_without_a_role_is_known_by_its_place(edges: str) -> None:
    run = Run(edges=edges)
    assert run.fence("square", SQUARE) == []
    assert [found[1] for found in run.at(5.0, 5.0)] == ["square"]


def test_the_type_of_a_geometry_and_the_radius_that_is_not_given() -> None:
    output = '<output geoid-fieldname="id_" geotype-fieldname="kind"/>'
    geometry = '<geometry data-fieldname="data" x-fieldname="gx" y-fieldname="gy"/>'
    run = Run(output=output, geometry=geometry, lookup="1")
    run.fence("round", at=(0.0, 0.0))
    assert run.at(999.0, 0.0) == [("I", "round", "Circle")]
    run.fence("square", "2000 0 2010 0 2010 10 2000 10 2000 0")
    assert run.at(2005.0, 5.0) == [("I", "square", "Polygon")]
    run.fence("way", "5000 0 6000 0")
    assert run.at(5500.0, 1.0) == [("I", "way", "Polyline")]


def test_a_position_is_in_a_circle_up_to_its_radius() -> None:
    run = Run()
    run.fence("round", at=(10.0, 0.0), r=5.0)
    assert run.at(5.0, 0.0) == [("I", "round", None, 5.0, "inside", 0)]
    assert run.at(4.9, 0.0)[0][4] == "outside"
    run.fence("default", at=(0.0, 100.0))  # radius="7" holds where the field is null
    assert run.at(0.0, 106.0) == [("I", "default", None, 6.0, "inside", 0)]


def test_the_lookup_distance_finds_what_is_near() -> None:
    run = Run(SEGMENT, lookup="3")
    run.fence("square", SQUARE)
    run.fence("round", at=(30.0, 0.0), r=5.0)
    run.fence("line", "0 50 10 50")
    assert run.at(12.0, 5.0) == [("I", "square", None, 2.0, "proximity", 0)]
    assert run.at(13.0, 14.0)[0][4] == "outside"
    assert run.at(22.0, 0.0) == [("I", "round", None, 8.0, "proximity", 0)]
    assert run.at(5.0, 53.0) == [("I", "line", None, 3.0, "proximity", 0)]
    assert run.at(5.0, 50.0) == [("I", "line", None, 0.0, "proximity", 0)]


def test_the_distance_to_a_polygon_can_be_that_to_its_centroid() -> None:
    run = Run('polygon-compute-distance-to="centroid"')
    run.fence("square", SQUARE)
    assert run.at(1.0, 5.0) == [("I", "square", None, 4.0, "inside", 0)]


def test_of_several_geometries_the_nearest_counts() -> None:
    run = Run()
    run.fence("large", at=(0.0, 0.0), r=50.0)
    run.fence("small", at=(3.0, 0.0), r=5.0)
    assert run.at(2.0, 0.0)[0][1] == "small"
    run.fence("same", at=(1.0, 0.0), r=5.0)  # as near as small: the older one wins
    assert run.at(2.0, 0.0)[0][1] == "small"


def test_several_results_are_numbered_in_the_order_of_the_geometries_or_by_distance() -> None:
    for sorted_, names in (("false", ["large", "small"]), ("true", ["small", "large"])):
        run = Run(f'output-multiple-results="true" output-sorted-results="{sorted_}"')
        run.fence("large", at=(0.0, 0.0), r=50.0)
        run.fence("small", at=(3.0, 0.0), r=5.0)
        found = run.at(2.0, 0.0)
        assert [(each[1], each[5]) for each in found] == [(names[0], 0), (names[1], 1)]
        assert run.at(99.0, 0.0) == [("I", None, None, None, "outside", 0)]


def test_a_stateful_window_takes_back_results_that_are_no_more() -> None:
    run = Run('output-multiple-results="true"', index="pi_HASH")
    run.fence("large", at=(0.0, 0.0), r=50.0)
    run.fence("small", at=(3.0, 0.0), r=5.0)
    assert [each[:2] for each in run.at(2.0, 0.0)] == [("I", "large"), ("I", "small")]
    assert [each[:2] for each in run.at(20.0, 0.0, "U")] == [
        ("U", "large"), ("D", "large"), ("D", "small")
    ]  # fmt: skip
    assert run.at(20.0, 0.0, "I") == []
    assert "insert of position 1, which exists" in str(run.kernel.take_refusals())
    assert [each[:2] for each in run.at(0.0, 0.0, "D")] == [("D", "large")]
    assert run.at(0.0, 0.0, "SD") == []


def test_a_stateful_window_keeps_one_row_a_position() -> None:
    run = Run(SEGMENT, index="pi_HASH")
    run.fence("square", SQUARE)
    assert run.at(5.0, 5.0) == [("I", "square", None, -5.0, "inside", 0)]
    assert [each[:2] for each in run.at(50.0, 5.0, "P")] == [("U", None), ("D", "square")]
    assert [each[:2] for each in run.at(50.0, 5.0, "D")] == [("D", None)]


def test_geometries_change_and_go() -> None:
    run = Run()
    run.fence("g", SQUARE)
    assert run.fence("g", SQUARE) == ["insert of geometry g, which exists"]
    assert run.fence("g", at=(100.0, 100.0), r=1.0, opcode="U") == []
    assert run.at(5.0, 5.0)[0][4] == "outside"
    assert run.at(100.0, 100.5)[0][4] == "inside"
    assert run.fence("g", opcode="D") == []
    assert run.at(100.0, 100.5)[0][4] == "outside"
    assert run.fence("g", opcode="D") == ["delete of geometry g, which does not exist"]
    assert run.fence("g", opcode="SD") == []


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("1 2 3", "3 numbers make no line or polygon"),
        ("1 2 3 x", "is not a point"),
        ("1 2 3 nan", "3.0, nan is beyond 1e+100"),
        ("0 0 1 0 1 1 0 0 5 5", "the last ring does not end"),
        (None, "the centre is null"),
    ],
)
def test_a_bad_geometry_is_refused_and_the_old_one_stays(data: Any, reason: str) -> None:
    run = Run()
    run.fence("g", SQUARE)
    before = run.kernel.state()
    assert reason in run.fence("g", data, opcode="U")[0]
    assert run.kernel.state()["windows"]["q/out"] == before["windows"]["q/out"]


def test_what_is_too_far_away_is_refused() -> None:
    run = Run(SEGMENT)
    refusals = run.fence("g", at=(0.0, 0.0), r=1e308)
    assert refusals == ["geometry g: the radius 1e+308 is not between 0 and 1e+100"]
    assert run.fence("g", at=(1e308, 0.0), r=1.0) == ["geometry g: 1e+308, 0.0 is beyond 1e+100"]
    assert run.fence("g", f"0 0 1e100 0 {1e100} {1e100} 0 0") == []
    assert run.fence("small", at=(1e100, 0.0), r=1e-300) == []
    assert run.at(1e100, 0.0)[0][1:3] == ("g", None)
    assert run.at(1e308, 0.0) == []
    assert run.kernel.take_refusals() == [("q/out", "1e+308, 0.0 is beyond 1e+100")]


def test_degrees_are_measured_on_the_globe() -> None:
    run = Run('coordinate-type="geographic"', lookup="200")
    run.fence("office", at=(8.682, 50.111), r=1000.0)
    metres = haversine((8.682, 50.111), (8.682, 50.119))
    assert math.isclose(metres, 0.008 * math.pi / 180 * 6_371_000)
    assert run.at(8.682, 50.119) == [("I", "office", None, metres, "inside", 0)]
    assert run.at(8.682, 50.121)[0][4] == "proximity"
    assert run.at(8.682, 50.122)[0][4] == "outside"
    assert run.at(8.682, 91.0) == []
    assert "latitude 91.0 is beyond 90 degrees" in str(run.kernel.take_refusals())


def test_a_fence_may_cross_the_180th_meridian() -> None:
    run = Run('coordinate-type="geographic"')
    run.fence("strait", "179 -1 -179 -1 -179 1 179 1 179 -1")
    run.fence("atoll", at=(-179.9, 50.0), r=50_000.0)
    assert [run.at(x, 0.0)[0][4] for x in (179.5, -179.5, 180.0, -180.0, 181.0)] == ["inside"] * 5
    assert [run.at(x, 0.0)[0][4] for x in (178.9, -178.9, 0.0)] == ["outside"] * 3
    assert run.at(179.9, 50.0)[0][1] == "atoll"
    assert "a ring goes round a pole" in run.fence("pole", "0 80 120 80 -120 80 0 80")[0]


def test_the_schema_is_that_of_the_positions_with_the_outputs() -> None:
    window = project().windows["q/out"]
    assert [(field.name, field.type, field.key) for field in window.fields] == [
        ("id", "int64", True), ("x", "double", False), ("y", "double", False),
        ("geo", "string", False), ("about", "string", False), ("far", "double", False),
        ("type", "string", False), ("nr", "int64", False),
    ]  # fmt: skip
    keys = [field.name for field in project('output-multiple-results="1"').windows["q/out"].fields
            if field.key]  # fmt: skip
    assert keys == ["id", "nr"]


def test_a_schema_can_be_given() -> None:
    given_ = "<schema-string>id*:int64,geo:string,far:double</schema-string>"
    output = '<output geoid-fieldname="geo" geodistance-fieldname="far"/>'
    kernel = Kernel(project(before=given_, output=output))
    kernel.publish("q/fences", Event("I", "N", ("g", 0.0, 0.0, 5.0, None, None)), 0)
    ((_, event),) = kernel.publish("q/in", Event("I", "N", (7, 3.0, 4.0)), 0)
    assert event.values == (7, "g", 5.0)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"options": 'coordinate-type="flat"'}, "coordinate-type 'flat' is not one of: cartesian"),
        ({"lookup": "-1"}, "lookupdistance is '-1'; give a number from 0 to 1e100"),
        ({"lookup": "inf"}, "lookupdistance is 'inf'"),
        ({"output": "<output/>"}, "needs the attribute geoid-fieldname"),
        ({"output": '<output geoid-fieldname="x"/>'}, "the positions have a field x already"),
        ({"geometry": "<geometry/>"}, "give data-fieldname for polygons"),
        ({"geometry": '<geometry data-fieldname="gx"/>'}, "'gx' is double, not a string"),
        ({"geometry": '<geometry data-fieldname="q"/>'}, "'q' is not a field of q/fences"),
        (
            {
                "options": 'output-multiple-results="true"',
                "output": '<output geoid-fieldname="g"/>',
            },
            "output-multiple-results needs eventnumber-fieldname",
        ),
        ({"before": "<schema-string>id*:int64,z:int64</schema-string>"}, "'z' is neither"),
        ({"before": "<schema-string>id*:int64,geo:int64</schema-string>"}, "not string"),
    ],
)
def test_what_cannot_run_is_refused_with_its_place(options: Any, reason: str) -> None:
    with pytest.raises(ModelError) as caught:
        project(**options)
    assert reason in str(caught.value)
    assert all(problem.line >= 1 for problem in caught.value.problems)


coordinate = st.floats(-20, 20) | st.sampled_from([-180.0, 180.0, 179.99, -179.99, 90.0, -90.0])
latitude = st.floats(-90, 90)
circles = st.lists(
    st.tuples(st.floats(-180, 180), latitude, st.floats(0, 3_000_000)), min_size=1, max_size=8
)


@settings(max_examples=150)
@given(circles, st.floats(-180, 180), latitude)
def test_the_grid_finds_what_a_walk_over_all_finds(
    fences: list[tuple[float, float, float]], x: float, y: float
) -> None:
    run = Run('coordinate-type="geographic" output-multiple-results="true"', lookup="1000")
    wanted: list[Any] = []
    for number, (gx, gy, r) in enumerate(fences):
        run.fence(str(number), at=(gx, gy), r=r)
        if haversine((gx, gy), (x, y)) - r <= 1000:
            wanted.append(str(number))
    assert [each[1] for each in run.at(x, y)] == (wanted or [None])


@settings(max_examples=50)
@given(st.integers(0, 12), st.integers(0, 2**32))
def test_a_restored_window_goes_on_as_the_first_one(cut: int, seed: int) -> None:
    dice = random.Random(seed)
    steps: list[tuple[str, Event]] = []
    for _ in range(12):
        opcode = dice.choice(["I", "U", "P", "D", "SD"])
        if dice.random() < 0.5:
            at = (float(dice.randrange(9)), float(dice.randrange(9)))
            data = dice.choice([None, SQUARE])
            row: Any = (dice.choice("ab"), *at, dice.choice([2.0, None]), data, None)
            steps.append(("q/fences", Event(opcode, "N", row)))
        else:
            row = (dice.randrange(2), float(dice.randrange(12)), dice.choice([1.0, None]))
            steps.append(("q/in", Event(opcode, "N", row)))
    options = {"options": 'output-multiple-results="true"', "index": "pi_HASH", "lookup": "1"}
    whole, first, second = (Kernel(project(**options)) for _ in range(3))
    expected = [whole.publish(path, event, 0) for path, event in steps]
    found = [first.publish(path, event, 0) for path, event in steps[:cut]]
    second.restore(loads(dumps(first.state())))
    found += [second.publish(path, event, 0) for path, event in steps[cut:]]
    assert found == expected
    assert second.state() == whole.state()


def test_ten_thousand_geometries_are_not_walked_over() -> None:
    run = Run('coordinate-type="geographic" output-multiple-results="true"')
    for number in range(10_000):
        run.fence(str(number), at=(number % 100 * 0.1, number // 100 * 0.1), r=100.0)
    (stage, *_) = run.kernel._nodes["q/out"].stages
    near = stage._fences.around((5.0, 5.0))  # type: ignore[attr-defined]
    assert len(near) <= 4
    assert [each[1] for each in run.at(5.0, 5.0)] == ["5050"]


def test_shapes() -> None:
    path = read_path("0,0,4,0,4,2,0,2,0,0", ",", globe=False)
    assert centroid(path) == (2.0, 1.0)
    assert centroid(read_path("0 0 4 0", " ", globe=False)) == (2.0, 0.0)
    assert to_border(path, (5.0, 3.0), globe=False) == math.sqrt(2)
    assert to_border(Circle((0.0, 0.0), 2.0), (5.0, 0.0), globe=False) == 3.0
    assert inside(path, (3.9, 1.9), globe=False)
    assert not inside(path, (4.1, 1.9), globe=False)
    assert haversine((0.0, 0.0), (180.0, 0.0)) == math.pi * 6_371_000.0
