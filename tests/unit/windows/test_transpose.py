"""Transpose windows: what stands side by side, and what one below the other."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espha.kernel import Kernel
from espha.model import ModelError, Project
from espha.model.events import Event
from espha.reader import read_project
from espha.recovery.plain import dumps, loads
from support.models import source, xml

FLIGHT = "id*:int64,plane:string,tag:string,value:int64,at:int64"
WIDE = 'mode="wide" tag-name="tag" tag-values="value,at" tags-included="pitch,yaw"'
LONG = 'mode="long" tag-name="tag" tag-values="value,at" tags-included="pitch,yaw"'
LONG_V = 'mode="long" tag-name="tag" tag-values="v" tags-included="pitch,yaw"'
SIDE_BY_SIDE = (
    "id*:int64,plane:string,pitch_value:int64,pitch_at:int64,yaw_value:int64,yaw_at:int64"
)


def project(schema: str, attributes: str, index: str = "pi_EMPTY") -> Project:
    windows = source(schema) + f'<window-transpose name="out" {attributes}/>'
    return read_project(xml(windows, '<edge source="in" target="out"/>', index=index))


def kernel(schema: str, attributes: str, index: str = "pi_EMPTY") -> Kernel:
    return Kernel(project(schema, attributes, index), published=["q/out"])


def publish(running: Kernel, opcode: str, *values: Any, clock: int = 1000) -> list[str]:
    """Publish; return what leaves as `I 1,jet,5,-`."""
    opcode, _, flags = opcode.partition("/")
    outputs = running.publish("q/in", Event(opcode, flags or "N", values), clock)
    return [
        f"{event.opcode} "
        + ",".join("-" if value is None else str(value) for value in event.values)
        for _, event in outputs
    ]


def fields(found: Project) -> str:
    return ",".join(
        f"{field.name}{'*' if field.key else ''}:{field.type}"
        for field in found.windows["q/out"].fields
    )


def test_the_wide_schema_has_a_field_for_each_value_of_each_tag() -> None:
    assert fields(project(FLIGHT, WIDE)) == SIDE_BY_SIDE


def test_wide_events_carry_the_last_values_of_all_tags() -> None:
    running = kernel(FLIGHT, WIDE)
    assert publish(running, "I", 1, "jet", "pitch", 5, 10) == ["I 1,jet,5,10,-,-"]
    assert publish(running, "I", 2, "jet", "yaw", 6, 11) == ["I 2,jet,5,10,6,11"]
    assert publish(running, "I", 3, "prop", "pitch", 7, 12) == ["I 3,prop,7,12,6,11"]
    assert publish(running, "I", 4, "jet", "speed", 8, 13) == []
    assert publish(running, "I", 5, "jet", None, 8, 13) == []
    assert publish(running, "I", 6, "jet", "yaw", None, 14) == ["I 6,jet,7,12,-,14"]


def test_groups_have_their_own_values() -> None:
    running = kernel(FLIGHT, WIDE + ' group-by="plane"')
    publish(running, "I", 1, "jet", "pitch", 5, 10)
    assert publish(running, "I", 2, "prop", "yaw", 6, 11) == ["I 2,prop,-,-,6,11"]
    assert publish(running, "I", 3, "jet", "yaw", 7, 12) == ["I 3,jet,5,10,7,12"]


def test_a_group_is_forgotten_when_nothing_comes_for_it() -> None:
    running = kernel(FLIGHT, WIDE + ' group-by="plane" clear-timeout="10 seconds"')
    publish(running, "I", 1, "jet", "pitch", 5, 10, clock=1_000)
    publish(running, "I", 2, "prop", "pitch", 6, 10, clock=5_000)
    publish(running, "I", 3, "jet", "pitch", 7, 10, clock=9_000)
    assert publish(running, "I", 4, "prop", "yaw", 8, 11, clock=15_000) == ["I 4,prop,-,-,8,11"]
    assert publish(running, "I", 5, "jet", "yaw", 9, 11, clock=18_999) == ["I 5,jet,7,10,9,11"]
    assert running.due() == 25_000


def test_a_delete_carries_the_values_and_changes_none() -> None:
    running = kernel(FLIGHT, WIDE)
    publish(running, "I", 1, "jet", "pitch", 5, 10)
    assert publish(running, "D", 1, "jet", "pitch", 5, 10) == ["D 1,jet,5,10,-,-"]
    assert publish(running, "I", 2, "jet", "yaw", 6, 11) == ["I 2,jet,5,10,6,11"]


def test_a_partial_update_leaves_the_other_value() -> None:
    running = kernel(FLIGHT, WIDE)
    publish(running, "I", 1, "jet", "pitch", 5, 10)
    assert publish(running, "U/P", 1, "jet", "pitch", None, 12) == ["U 1,jet,5,12,-,-"]


def test_of_an_update_block_the_old_row_carries_the_values_from_before() -> None:
    running = kernel(FLIGHT, WIDE, index="pi_HASH")
    publish(running, "I", 1, "jet", "pitch", 5, 10)
    assert publish(running, "U", 1, "jet", "pitch", 6, 11) == [
        "U 1,jet,6,11,-,-",
        "D 1,jet,5,10,-,-",
    ]


def test_the_long_schema_has_the_number_of_the_tag_as_a_key() -> None:
    assert fields(project(SIDE_BY_SIDE, LONG)) == (
        "id*:int64,tagNum*:int32,plane:string,tag:string,value:int64,at:int64"
    )


def test_long_makes_an_event_of_each_tag_that_has_a_value() -> None:
    running = kernel(SIDE_BY_SIDE, LONG)
    assert publish(running, "I", 1, "jet", 5, 10, 6, 11) == [
        "I 1,0,jet,pitch,5,10",
        "I 1,1,jet,yaw,6,11",
    ]
    assert publish(running, "D", 2, "jet", None, None, 7, None) == ["D 2,1,jet,yaw,7,-"]
    assert publish(running, "I", 3, "jet", None, None, None, None) == []


def test_in_an_update_block_a_tag_can_come_and_go() -> None:
    windows = source(SIDE_BY_SIDE, name="in") + '<window-copy name="kept" index="pi_HASH"/>'
    windows += f'<window-transpose name="out" {LONG}/>'
    edges = '<edge source="in" target="kept"/><edge source="kept" target="out"/>'
    running = Kernel(read_project(xml(windows, edges)), published=["q/out"])
    publish(running, "I", 1, "jet", 5, 10, None, None)
    assert publish(running, "U", 1, "jet", 6, 10, 7, 11) == [
        "U 1,0,jet,pitch,6,10",
        "D 1,0,jet,pitch,5,10",
        "I 1,1,jet,yaw,7,11",
    ]
    assert publish(running, "U", 1, "jet", None, None, 7, 11) == [
        "D 1,0,jet,pitch,6,10",
        "U 1,1,jet,yaw,7,11",
        "D 1,1,jet,yaw,7,11",
    ]


def test_a_single_value_can_stand_in_a_field_called_like_its_tag() -> None:
    attributes = 'mode="long" tag-name="tag" tag-values="value" tags-included="pitch,yaw"'
    running = kernel("id*:int64,pitch:double,yaw:double", attributes)
    assert publish(running, "I", 1, 0.5, 1.5) == ["I 1,0,pitch,0.5", "I 1,1,yaw,1.5"]


def test_long_is_the_way_back_from_wide() -> None:
    windows = source(FLIGHT) + f'<window-transpose name="wide" {WIDE}/>'
    windows += f'<window-transpose name="out" {LONG}/>'
    edges = '<edge source="in" target="wide"/><edge source="wide" target="out"/>'
    running = Kernel(read_project(xml(windows, edges)), published=["q/out"])
    assert publish(running, "I", 1, "jet", "pitch", 5, 10) == ["I 1,0,jet,pitch,5,10"]


def test_values_stand_in_the_place_of_the_tag() -> None:
    schema = "id*:int64,tag:string,value:int64,lat:int64"
    wide = 'tag-name="tag" tag-values="value" tags-included="pitch,yaw"'
    assert fields(project(schema, wide)) == (
        "id*:int64,pitch_value:int64,yaw_value:int64,lat:int64"
    )
    assert publish(kernel(schema, wide), "I", 1, "yaw", 5, 9) == ["I 1,-,5,9"]
    assert fields(project("pitch_v:int64,id*:int64,yaw_v:int64,lat:int64", LONG_V)) == (
        "id*:int64,tagNum*:int32,tag:string,v:int64,lat:int64"
    )


@pytest.mark.parametrize(
    ("schema", "attributes", "reason"),
    [
        (FLIGHT, WIDE.replace("wide", "broad"), "mode 'broad' is not one of: wide, long"),
        (FLIGHT, 'mode="wide" tag-values="value" tags-included="a"', "needs tag-name"),
        (FLIGHT, 'tag-name="tag" tags-included="a"', "needs tag-values"),
        (FLIGHT, 'tag-name="tag" tag-values="value"', "needs tags-included"),
        (FLIGHT, 'tag-name="tag" tag-values="value" tags-included="a b"', "'a b' cannot be part"),
        (FLIGHT, 'tag-name="tag" tag-values="wert" tags-included="a"', "'wert' is not a field"),
        (FLIGHT, 'tag-name="tag" tag-values="id" tags-included="a"', "'id' is a key"),
        (FLIGHT, 'tag-name="at" tag-values="value" tags-included="a"', "'at' is int64; it must"),
        (FLIGHT, WIDE + ' group-by="pilot"', "group-by: 'pilot' is not a field"),
        (FLIGHT, WIDE + ' clear-timeout="often"', "clear-timeout is 'often'"),
        ("id*:int64,tag:string,a:int64,t_a:int64",
         'tag-name="tag" tag-values="a" tags-included="t"', "'t_a' would occur twice"),
        ("id*:int64,pitch:int64", LONG, "'pitch_value' is not a field"),
        ("id*:int64,a_v:int64,b_v:double",
         'mode="long" tag-name="tag" tag-values="v" tags-included="a,b"',
         "'b_v' is double, that of another tag is int64"),
    ],
)  # fmt: skip
def test_refused(schema: str, attributes: str, reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        project(schema, attributes)


rows = st.tuples(
    st.sampled_from(["I", "U", "D", "U/P"]),
    st.integers(0, 3),
    st.sampled_from(["jet", "prop"]),
    st.sampled_from(["pitch", "yaw", "speed"]),
    st.integers(0, 9) | st.none(),
    st.integers(0, 9) | st.none(),
    st.integers(0, 3000),
)


@settings(max_examples=100)
@given(st.lists(rows, max_size=30), st.integers(0, 30))
def test_a_restored_window_goes_on_as_the_first_one(steps: list[Any], cut: int) -> None:
    attributes = WIDE + ' group-by="plane" clear-timeout="2 seconds"'
    whole, first, second = (kernel(FLIGHT, attributes) for _ in range(3))
    clock = 0
    for place, (*event, wait) in enumerate(steps):
        clock += wait
        if place == cut:
            second.restore(loads(dumps(first.state())))
        running = first if place < cut else second
        assert publish(running, *event, clock=clock) == publish(whole, *event, clock=clock)
