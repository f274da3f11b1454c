"""`espha graph`: windows as boxes, edges as arrows."""

from itertools import combinations, pairwise
from pathlib import Path
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from typer.testing import CliRunner

from espha.cli import app
from espha.offline.graph import COLOURS, svg
from espha.offline.layout import GAP_X, GAP_Y, Box, layout
from espha.reader import read_project
from espha.windows.shared.spec import Family
from support.models import SUB, source, xml

SVG = {"s": "http://www.w3.org/2000/svg"}
TITLE = 'a <b> & "c"'
ESCAPED = "a &lt;b> &amp; &quot;c&quot;"


def test_a_picture_says_what_a_window_is() -> None:
    """Name, kind, index, fields and connectors; names are text, whatever is in them."""
    long = ",".join(["id*:int64", *[f"f{place}:string" for place in range(9)]])
    windows = (
        source(long, name=ESCAPED)
        + f'<window-copy name="out" index="pi_HASH">{SUB}'
        + ("</window-copy>")
    )
    project = read_project(xml(windows, f'<edge source="{ESCAPED}" target="out"/>'))
    root = etree.fromstring(svg(project))
    texts = [
        [text.text for text in group.findall("s:text", SVG)] for group in root.findall("s:g", SVG)
    ]
    fields = ["id*: int64", "f0: string", "f1: string", "f2: string", "and 6 more"]
    assert texts == [
        [TITLE, "source, stateless", *fields],
        ["out", "copy, pi_HASH", *fields, "out to kafka out"],
    ]
    assert len(root.findall("s:path", SVG)) == 1


def test_each_family_of_windows_has_a_colour() -> None:
    assert set(COLOURS) == set(get_args(Family))
    assert len(set(COLOURS.values())) == len(COLOURS)


def test_roles_and_slots_stand_at_their_edges() -> None:
    schema = "id*:int64,x:int64"
    windows = (
        source(schema, body="<splitter-expr><expression>x % 2</expression></splitter-expr>")
        + '<window-copy name="odd"/>'
    )
    project = read_project(xml(windows, '<edge source="in" target="odd" slot="1"/>'))
    root = etree.fromstring(svg(project))
    assert [text.text for text in root.findall("s:text", SVG)] == ["slot 1"]


@given(st.integers(1, 12), st.data())
def test_boxes_never_touch_and_edges_point_down(count: int, data: st.DataObject) -> None:
    pairs = list(combinations([str(number) for number in range(count)], 2))
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True) if pairs else st.just([]))
    sizes = {
        str(number): (40.0 + 30 * (number % 4), 30.0 + 9 * (number % 3)) for number in range(count)
    }
    drawing = layout(sizes, edges)
    assert drawing == layout(sizes, edges)
    assert list(drawing.boxes) == list(sizes)
    for one, other in combinations(drawing.boxes.values(), 2):
        assert _apart(one, other)
    for (upper, lower), line in zip(edges, drawing.lines, strict=True):
        above, below = drawing.boxes[upper], drawing.boxes[lower]
        assert below.y >= above.y + above.height + GAP_Y
        assert all(after[1] > before[1] for before, after in pairwise(line))
    for box in drawing.boxes.values():
        assert box.x - box.width / 2 >= -0.001
        assert box.x + box.width / 2 <= drawing.width + 0.001
        assert box.y >= 0
        assert box.y + box.height <= drawing.height + 0.001


def _apart(one: Box, other: Box) -> bool:
    beside = abs(one.x - other.x) >= (one.width + other.width) / 2 + GAP_X - 0.001
    return beside or one.y + one.height < other.y or other.y + other.height < one.y


def test_the_command_writes_beside_the_model_or_where_it_is_told(tmp_path: Path) -> None:
    model = tmp_path / "m.xml"
    model.write_text(xml(source("id*:int64")), encoding="utf-8")
    runner = CliRunner()
    assert runner.invoke(app, ["graph", str(model)]).exit_code == 0
    other = tmp_path / "p.svg"
    assert runner.invoke(app, ["graph", str(model), "-o", str(other)]).exit_code == 0
    assert other.read_bytes() == (tmp_path / "m.svg").read_bytes()
    found = runner.invoke(app, ["graph", str(model), "-o", str(tmp_path / "no/p.svg")])
    assert found.exit_code == 1
    assert found.stderr == f"{tmp_path}/no/p.svg: No such file or directory\n"
    assert runner.invoke(app, ["graph", str(tmp_path / "none.xml")]).exit_code == 2
