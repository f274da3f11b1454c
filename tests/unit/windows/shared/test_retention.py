"""Retention, event by event: what leaves, in which order, with which flag."""

from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espha.kernel import Kernel
from espha.model import Project
from espha.model.events import BadRecord, Event
from espha.reader import read_project
from espha.recovery.plain import dumps, loads
from support.models import SUB, behind, source, xml

SCHEMA = "id*:int64,t:date,x:int64"


@cache
def project(retention: str, schema: str, before: str) -> Project:
    window = f'<window-copy name="out" index="pi_HASH">{SUB}{retention}</window-copy>'
    return behind(schema, window, attributes=f'index="{before}"')


def kernel(retention: str, *, schema: str = SCHEMA, before: str = "pi_HASH") -> Kernel:
    return Kernel(project(retention, schema, before))


def by(type_: str, amount: str, attributes: str = "") -> str:
    return f'<retention type="{type_}" {attributes}>{amount}</retention>'


def text(events: Iterable[Event]) -> str:
    """Write events as `U id,t,x`; flags only when they are not N."""
    return "; ".join(
        f"{event.opcode}{'/' + event.flags if event.flags != 'N' else ''} "
        + ",".join("-" if value is None else str(value) for value in event.values)
        for event in events
    )


def put(target: Kernel, words: str, clock: int = 0) -> str:
    """Publish `U 1,5,7` and return what leaves, or the refusal behind an exclamation mark."""
    opcode, _, cells = words.partition(" ")
    values = tuple(None if cell == "-" else int(cell) for cell in cells.split(","))
    found = text(event for _, event in target.publish("q/in", Event(opcode, "N", values), clock))
    refusals = [f"! {reason}" for _, reason in target.take_refusals()]
    return "; ".join([*([found] if found else []), *refusals])


def test_sliding_by_count_the_eleventh_insert_deletes_the_oldest() -> None:
    window = kernel(by("bycount_sliding", "10"))
    for number in range(10):
        assert put(window, f"I {number},0,0") == f"I {number},0,0"
    assert put(window, "I 10,0,0") == "I 10,0,0; D/R 0,0,0"
    assert put(window, "I 11,0,0") == "I 11,0,0; D/R 1,0,0"


def test_sliding_by_count_an_update_makes_a_row_young_and_a_delete_makes_room() -> None:
    window = kernel(by("bycount_sliding", "2"))
    put(window, "I 1,0,1")
    put(window, "I 2,0,2")
    assert put(window, "U 1,0,9") == "U 1,0,9; D 1,0,1"
    assert put(window, "I 3,0,3") == "I 3,0,3; D/R 2,0,2"
    assert put(window, "D 3,-,-") == "D 3,0,3"
    assert put(window, "I 4,0,4") == "I 4,0,4"
    assert put(window, "I 5,0,5") == "I 5,0,5; D/R 1,0,9"


def test_a_row_that_left_can_come_again_and_is_no_longer_there_to_delete() -> None:
    """The source has no index, or it would know the row longer than the copy does."""
    window = kernel(by("bycount_sliding", "1"), before="pi_EMPTY")
    put(window, "I 1,0,1")
    assert put(window, "I 2,0,2") == "I 2,0,2; D/R 1,0,1"
    assert put(window, "D 1,-,-") == "! delete of key 1, which does not exist"
    assert put(window, "U 1,0,5") == "! update of key 1, which does not exist"
    assert put(window, "I 1,0,3") == "I 1,0,3; D/R 2,0,2"


def test_jumping_by_count_all_rows_leave_when_one_is_too_many() -> None:
    window = kernel(by("bycount_jumping", "3"))
    for number in (1, 2, 3):
        assert put(window, f"I {number},0,0") == f"I {number},0,0"
    assert put(window, "I 4,0,0") == "I 4,0,0; D/R 1,0,0; D/R 2,0,0; D/R 3,0,0"
    assert put(window, "I 5,0,0") == "I 5,0,0"
    assert put(window, "I 6,0,0") == "I 6,0,0"
    assert put(window, "I 7,0,0") == "I 7,0,0; D/R 4,0,0; D/R 5,0,0; D/R 6,0,0"


def test_sliding_by_data_time_the_latest_time_is_now() -> None:
    window = kernel(by("bytime_sliding", "10 seconds", 'field="t"'))
    assert put(window, "I 1,100,0") == "I 1,100,0"
    assert put(window, "I 2,105,0") == "I 2,105,0"
    assert put(window, "I 3,109,0") == "I 3,109,0"
    assert put(window, "I 4,110,0") == "I 4,110,0; D/R 1,100,0"
    assert put(window, "I 5,101,0") == "I 5,101,0", "late, and not yet too old"
    assert put(window, "I 6,100,0") == "I 6,100,0; D/R 6,100,0", "late and too old: it leaves again"
    assert put(window, "I 7,116,0") == "I 7,116,0; D/R 5,101,0; D/R 2,105,0", "oldest first"
    assert put(window, "U 3,117,0") == "U 3,117,0; D 3,109,0"
    assert put(window, "I 8,126,0") == "I 8,126,0; D/R 4,110,0; D/R 7,116,0"


def test_data_time_does_not_pass_with_the_clock() -> None:
    window = kernel(by("bytime_sliding", "10 seconds", 'field="t"'))
    put(window, "I 1,100,0", clock=1_000)
    assert window.due() is None
    assert window.advance(10**9) == []


def test_stamps_are_microseconds() -> None:
    window = kernel(
        by("bytime_sliding", "250 milliseconds", 'field="t"'), schema="id*:int64,t:stamp,x:int64"
    )
    put(window, "I 1,1000000,0")
    assert put(window, "I 2,1249999,0") == "I 2,1249999,0"
    assert put(window, "I 3,1250000,0") == "I 3,1250000,0; D/R 1,1000000,0"


def test_a_row_without_a_time_is_refused_and_changes_nothing() -> None:
    window = kernel(by("bytime_sliding", "10", 'field="t"'), before="pi_EMPTY")
    put(window, "I 1,100,5")
    before = window.state()["windows"]["q/out"]
    reason = "! field t, which tells the time for the retention, is null"
    assert put(window, "I 2,-,0") == reason
    assert put(window, "U 1,-,0") == reason
    assert window.state()["windows"]["q/out"] == before


def test_times_at_the_end_of_64_bits() -> None:
    window = kernel(by("bytime_sliding", "10", 'field="t"'))
    low, high = -(2**63), 2**63 - 1
    put(window, f"I 1,{low},0")
    assert put(window, f"I 2,{high},0") == f"I 2,{high},0; D/R 1,{low},0"


def test_jumping_by_data_time_intervals_begin_with_the_first_row() -> None:
    window = kernel(by("bytime_jumping", "10 seconds", 'field="t"'))
    put(window, "I 1,103,0")
    assert put(window, "I 2,112,0") == "I 2,112,0"
    assert put(window, "I 3,113,0") == "I 3,113,0; D/R 1,103,0; D/R 2,112,0"
    assert put(window, "I 4,104,0") == "I 4,104,0", "late: it belongs to the interval that runs"
    assert put(window, "U 3,150,1") == "U 3,150,1; D 3,113,0; D/R 4,104,0", "some are left out"
    assert put(window, "I 5,152,0") == "I 5,152,0"
    assert put(window, "I 6,153,0") == "I 6,153,0; D/R 3,150,1; D/R 5,152,0"


def test_sliding_by_clock_rows_leave_without_an_event() -> None:
    window = kernel(by("bytime_sliding", "2 seconds"))
    assert window.due() is None
    put(window, "I 1,0,0", clock=1_000)
    put(window, "I 2,0,0", clock=2_000)
    assert window.due() == 3_000
    assert text(event for _, event in window.advance(2_999)) == ""
    assert text(event for _, event in window.advance(3_000)) == "D/R 1,0,0"
    assert put(window, "U 2,0,9", clock=3_999) == "U 2,0,9; D 2,0,0"
    assert put(window, "I 3,0,0", clock=4_001) == "I 3,0,0", "the update made row 2 young"
    assert put(window, "D 3,-,-", clock=5_000) == "D 3,0,0"
    assert window.due() == 5_999
    assert put(window, "I 4,0,0", clock=9_000) == "D/R 2,0,9; I 4,0,0", "time passes first"


def test_jumping_by_clock_all_rows_leave_at_the_end_of_the_interval() -> None:
    window = kernel(by("bytime_jumping", "2 seconds"))
    put(window, "I 1,0,0", clock=1_000)
    put(window, "I 2,0,0", clock=2_999)
    assert window.due() == 3_000
    assert text(event for _, event in window.advance(3_500)) == "D/R 1,0,0; D/R 2,0,0"
    assert window.due() is None
    put(window, "I 3,0,0", clock=4_900)
    assert window.due() == 5_000, "intervals follow each other from the first row on"
    assert text(event for _, event in window.advance(5_000)) == "D/R 3,0,0"
    put(window, "I 4,0,0", clock=20_500)
    assert window.due() == 21_000


def test_retention_goes_on_through_the_windows_behind_with_its_flag() -> None:
    windows = (
        source(SCHEMA)
        + f'<window-copy name="a" index="pi_HASH">{by("bycount_sliding", "1")}</window-copy>'
        + f'<window-copy name="out" index="pi_HASH">{SUB}</window-copy>'
    )
    edges = '<edge source="in" target="a"/><edge source="a" target="out"/>'
    window = Kernel(read_project(xml(windows, edges)))
    put(window, "I 1,0,0")
    assert put(window, "I 2,0,0") == "I 2,0,0; D/R 1,0,0"


RETENTIONS = [
    by("bycount_sliding", "3"),
    by("bycount_jumping", "3"),
    by("bytime_sliding", "5", 'field="t"'),
    by("bytime_jumping", "5", 'field="t"'),
    by("bytime_sliding", "5"),
    by("bytime_jumping", "5"),
]
steps = st.lists(
    st.tuples(
        st.sampled_from(["I", "U", "P", "P", "D", "SD"]),
        st.integers(0, 6),
        st.integers(0, 30) | st.none(),
        st.integers(0, 3_000),
    ),
    max_size=60,
)


def run(target: Kernel, events: list[Any], clock: int = 0) -> tuple[list[Any], int]:
    results: list[Any] = []
    for opcode, key, time, passed in events:
        clock += passed
        try:
            out = target.publish("q/in", Event(opcode, "N", (key, time, passed)), clock)
            results.append((out, target.take_refusals()))
        except BadRecord as refusal:
            results.append(str(refusal))
    return results, clock


@pytest.mark.parametrize("retention", RETENTIONS)
@settings(max_examples=40)
@given(events=steps, cut=st.integers(0, 60))
def test_a_restored_window_goes_on_as_the_first_one(
    retention: str, events: list[Any], cut: int
) -> None:
    whole, first, second = (kernel(retention, before="pi_EMPTY") for _ in range(3))
    expected, _ = run(whole, events)
    before, clock = run(first, events[:cut])
    second.restore(loads(dumps(first.state())))
    assert before + run(second, events[cut:], clock)[0] == expected
    assert second.state() == whole.state()


@pytest.mark.parametrize("retention", RETENTIONS)
@settings(max_examples=40)
@given(events=steps)
def test_what_leaves_is_a_history_of_the_rows_that_are_kept(
    retention: str, events: list[Any]
) -> None:
    window = kernel(retention, before="pi_EMPTY")
    seen: dict[Any, Any] = {}
    for result in run(window, events)[0]:
        old = None
        for _, event in result[0] if isinstance(result, tuple) else []:
            key = event.values[0]
            if old is not None:
                assert event == Event("D", "N", old), "an update block has the old row behind"
                old = None
            elif event.opcode == "D":
                assert seen.pop(key) == event.values
            else:
                assert (key in seen) == (event.opcode == "U")
                old, seen[key] = seen.get(key), event.values
    rows, _ = window.state()["windows"]["q/out"][0]
    assert {key: row for (key,), row in rows.items()} == seen
    assert len(rows) <= (3 if "count" in retention else 7)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 200), st.booleans()), max_size=150),
)
def test_sliding_by_data_time_is_what_a_scan_of_all_rows_gives(events: list[Any]) -> None:
    window = kernel(by("bytime_sliding", "20", 'field="t"'))
    rows: dict[int, tuple[int, int]] = {}
    now = -1
    for number, (key, time, deletes) in enumerate(events):
        if deletes:
            put(window, f"SD {key},-,-")
            rows.pop(key, None)
            continue
        out = put(window, f"P {key},{time},0")
        now = max(now, time)
        rows[key] = (time, number)
        old = sorted(rows, key=lambda row: rows[row])
        left = [row for row in old if rows[row][0] <= now - 20]
        expected = "".join(f"; D/R {row},{rows[row][0]},0" for row in left)
        assert out.endswith(expected)
        assert out.count("D/R") == len(left)
        for row in left:
            del rows[row]
        # The source still has the row; it is deleted there too, so that it comes as an insert.
        for row in left:
            put(window, f"SD {row},-,-")
