"""Order: breadth first, whatever the graph; and blocks of events do what single events do."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espha.kernel import Kernel
from espha.model import Project
from espha.model.events import BadRecord, Event
from espha.reader import read_project
from espha.windows.shared.stage import Moment, Stage, Unit
from support.models import source, xml
from support.tables import event, text

SCHEMA = "id*:int64,k:int64,x:int64"
TYPES = ("copy", "recent", "filter", "compute", "union", "join", "tagged", "split", "sum")
BODIES = {
    "copy": '<window-copy name="{}"/>',
    "recent": '<window-copy name="{}"><retention type="bytime_sliding">3</retention></window-copy>',
    "filter": '<window-filter name="{}"><expression>x % 3 != 1</expression></window-filter>',
    "compute": '<window-compute name="{}"><schema-string>' + SCHEMA + "</schema-string><output>"
    "<field-expr>k</field-expr><field-expr>x + 1</field-expr></output></window-compute>",
    "union": '<window-union name="{}" strict="false"/>',
    "join": '<window-join name="{}"><join type="leftouter"><conditions>'
    '<fields left="k" right="id"/></conditions></join><output>'
    '<field-selection name="id" source="l_id"/><field-selection name="k" source="l_k"/>'
    '<field-selection name="x" source="r_x"/></output></window-join>',
    "split": '<window-copy name="{}"><splitter-expr><expression>x % 2</expression></splitter-expr>'
    "</window-copy>",
    "sum": '<window-aggregate name="{}"><schema-string>id*:int64,k:int64,x:int64</schema-string>'
    "<output><field-expr>ESP_aLast(k)</field-expr><field-expr>ESP_aSum(x)</field-expr></output>"
    "</window-aggregate>",
}
BODIES["tagged"] = BODIES["join"].replace("<join ", '<join use-tagged-token="true" ')
INPUTS = {"union": 3, "join": 2, "tagged": 2}


@st.composite
def graphs(draw: st.DrawFn) -> Project:
    """Draw a project of two sources and up to seven windows behind them, with forks and joins."""
    names = ["a", "b"]
    windows = source(SCHEMA, name="a") + source(SCHEMA, name="b")
    edges = ""
    kinds = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=7))
    splitting: set[str] = set()
    for number, kind in enumerate(kinds):
        name = f"w{number}"
        windows += BODIES[kind].format(name)
        feeding = draw(
            st.lists(
                st.sampled_from(names),
                min_size=1 if kind == "union" else INPUTS.get(kind, 1),
                max_size=INPUTS.get(kind, 1),
            )
        )
        for place, feed in enumerate(feeding):
            slot = f'slot="{draw(st.integers(0, 1))}"' if feed in splitting else ""
            role = 'role="{}"'.format(("left", "right")[place]) if "join" in BODIES[kind] else ""
            edges += f'<edge source="{feed}" target="{name}" {slot} {role}/>'
        names.append(name)
        if kind == "split":
            splitting.add(name)
    return read_project(xml(windows, edges, index="pi_HASH"))


small = st.integers(0, 3)
events = st.tuples(
    st.sampled_from(["q/a", "q/b"]),
    st.builds(
        Event,
        st.sampled_from(["I", "P", "P", "P", "U", "D", "SD", "X"]),
        st.just("N"),
        st.tuples(small, small, small | st.none()),
    ),
)
runs = st.lists(st.tuples(st.integers(0, 2_000), st.lists(events, max_size=8)), max_size=6)


def one_by_one(kernel: Kernel, block: Sequence[tuple[str, Event]], clock: int) -> list[Any]:
    results: list[Any] = []
    for path, one in block:
        try:
            outputs, bad = kernel.publish(path, one, clock), None
        except BadRecord as refusal:
            outputs, bad = [], refusal.reason
        results.append((outputs, bad, kernel.take_refusals()))
    return results


def together(kernel: Kernel, block: Sequence[tuple[str, Event]], clock: int) -> list[Any]:
    handled = kernel.publish_block(block, clock)
    return [(outputs, bad, list(refused)) for outputs, bad, refused in handled]


@settings(max_examples=150)
@given(graphs(), runs)
def test_a_block_does_what_its_events_do_one_by_one(project: Project, run: list[Any]) -> None:
    single, blocks = (Kernel(project, project.windows) for _ in range(2))
    clock = 1_000
    for passed, block in run:
        clock += passed
        # Time passes by itself here: the outputs of that have no event to go with.
        assert single.advance(clock) == blocks.advance(clock)
        expected = one_by_one(single, block, clock)
        assert together(blocks, block, clock) == expected
        assert single.take_refusals() == blocks.take_refusals()
        assert single.state() == blocks.state()


def test_what_time_does_goes_with_the_first_event_of_a_block() -> None:
    windows = source(SCHEMA, name="a") + BODIES["recent"].format("w")
    project = read_project(xml(windows, '<edge source="a" target="w"/>', index="pi_HASH"))
    kernel = Kernel(project, ["q/w"])
    kernel.publish_block([("q/a", event("I 1,2,3"))], 1_000)
    late = kernel.publish_block([("q/a", event("I 2,2,2")), ("q/a", event("I 3,2,2"))], 5_000)
    assert [text(out for _, out in each.outputs) for each in late] == [
        "D/R 1,2,3; I 2,2,2",
        "I 3,2,2",
    ]
    assert kernel.publish_block([], 90_000) == []


def test_what_time_has_refused_stays_where_no_event_comes() -> None:
    """Two windows in a row let the same row go: the second one has no such row any more."""
    windows = source(SCHEMA, name="a") + "".join(BODIES["recent"].format(name) for name in "vw")
    edges = '<edge source="a" target="v"/><edge source="v" target="w"/>'
    kernel = Kernel(read_project(xml(windows, edges, index="pi_HASH")), ["q/w"])
    kernel.publish_block([("q/a", event("I 1,2,3"))], 1_000)
    kernel.advance(90_000)
    assert kernel.publish_block([], 90_000) == []
    assert [path for path, _ in kernel.take_refusals()] == ["q/w"]


def outputs(windows: str, edges: str, *rows: str) -> list[tuple[str, str]]:
    """Return window and events of what the last row leads to, from the source `in`."""
    project = read_project(xml(source(SCHEMA) + windows, edges, index="pi_HASH"))
    kernel = Kernel(project, project.windows)
    for row in rows[:-1]:
        kernel.publish("q/in", event(row), 1_000)
    found = kernel.publish("q/in", event(rows[-1]), 1_000)
    return [(path.removeprefix("q/"), text([out])) for path, out in found if path != "q/in"]


def test_a_window_handles_all_of_an_event_before_those_behind_it() -> None:
    windows = BODIES["copy"].format("one") + BODIES["copy"].format("two")
    windows += '<window-copy name="last"/>'
    edges = '<edge source="in" target="one two"/><edge source="one" target="last"/>'
    assert outputs(windows, edges, "I 1,2,3") == [
        ("one", "I 1,2,3"),
        ("two", "I 1,2,3"),
        ("last", "I 1,2,3"),
    ]


def test_a_block_of_updates_stays_together() -> None:
    kept = '<window-copy name="kept"><retention type="bycount_jumping">2</retention></window-copy>'
    edges = '<edge source="in" target="kept"/><edge source="kept" target="next"/>'
    found = outputs(kept + BODIES["copy"].format("next"), edges, "I 1,2,3", "I 2,2,3", "I 3,2,3")
    assert [window for window, _ in found] == ["kept"] * 3 + ["next"] * 3


FORK = BODIES["sum"].replace("id*:int64,k:int64,x:int64", "k*:int64,id:int64,x:int64").format("sum")
FORK = FORK.replace("ESP_aLast(k)", "ESP_aLast(id)")
MEET = '<edge source="in" target="out" role="left"/><edge source="in" target="sum"/>'
MEET += '<edge source="sum" target="out" role="right"/>'
JOIN_BY_K = BODIES["join"].replace('right="id"', 'right="k"').format("out")


@pytest.mark.parametrize(
    ("tagged", "seen"),
    [
        ("", ["I 2,7,3", "U 1,7,5", "D 1,7,3", "U 2,7,5", "D 2,7,3"]),
        ('use-tagged-token="true"', ["U 1,7,5", "D 1,7,3", "I 2,7,5"]),
    ],
)
def test_a_join_behind_a_fork_sees_the_events_own_contribution_by_tagged_tokens(
    tagged: str, seen: list[str]
) -> None:
    model = xml(source(SCHEMA) + FORK + JOIN_BY_K, MEET, index="pi_HASH")
    for place in ("<project ", "<contquery "):
        project = read_project(model.replace(place, f"{place} {tagged} "))
        kernel = Kernel(project, ["q/out"])
        kernel.publish("q/in", event("I 1,7,3"), 1_000)
        found = kernel.publish("q/in", event("I 2,7,2"), 1_000)
        assert text(out for _, out in found).split("; ") == seen


class Doubling:
    """A stage that handles blocks."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Handle one unit."""
        (result,) = self.process_block([unit], [at])
        if isinstance(result, BadRecord):
            raise result
        return result

    def process_block(
        self, units: Sequence[Unit], moments: Sequence[Moment]
    ) -> Sequence[Sequence[Unit] | BadRecord]:
        """Double each unit but some, which are refused."""
        self.sizes.append(len(units))
        numbers = [at.token for at in moments]
        assert numbers == sorted(numbers)
        return [BadRecord("odd") if unit[0].values[2] == 1 else (unit, unit) for unit in units]


def test_a_stage_gets_the_units_of_a_block_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Doubling()
    made: list[Stage] = [stage]
    monkeypatch.setattr("espha.windows.copy.stages.stages", lambda window, feeds: made)
    edge = '<edge source="in" target="w"/>'
    project = read_project(xml(source(SCHEMA) + BODIES["copy"].format("w"), edge))
    single, blocks = Kernel(project, ["q/w"]), Kernel(project, ["q/w"])
    block = [("q/in", event(f"I {number},0,{number % 3}")) for number in range(5)]
    expected = one_by_one(single, block, 5)
    stage.sizes.clear()
    assert together(blocks, block, 5) == expected
    assert stage.sizes == [5]
    assert expected[1] == ([], None, [("q/w", "odd")])
