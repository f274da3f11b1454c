"""What a join makes of each event of either side."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espha.kernel import Kernel
from espha.model import Project
from espha.model.events import Event
from espha.reader import read_project
from espha.recovery.plain import dumps, loads
from support.models import source, xml
from support.tables import out, play, put, two

FACTS = "id*:int64,k:int64,x:int64"
TABLE = "k*:int64,name:string"
SELECTION = (
    '<output><field-selection name="k" source="l_k"/><field-selection name="x" source="l_x"/>'
    '<field-selection name="name" source="r_name"/></output>'
)
ON_K = '<conditions><fields left="k" right="k"/></conditions>'


@cache
def project(
    type_: str,
    attributes: str = "",
    *,
    output: str = SELECTION,
    index: str = "pi_HASH",
    left: str = FACTS,
    right: str = TABLE,
    on: str = ON_K,
) -> Project:
    join = f'<join type="{type_}" {attributes}>{on}</join>{output}'
    return two(left, right, out("join", join, f'index="{index}"'))


def test_leftouter_a_fact_comes_out_with_or_without_a_partner() -> None:
    """The result has the fact's key in front, since it was not selected."""
    play(
        Kernel(project("leftouter")),
        [
            ("l", "I 1,7,5", "I 1,7,5,-"),
            ("r", "I 7,seven", "U 1,7,5,seven; D 1,7,5,-"),
            ("l", "I 2,7,6", "I 2,7,6,seven"),
            ("r", "U 7,SEVEN", "U 1,7,5,SEVEN; D 1,7,5,seven; U 2,7,6,SEVEN; D 2,7,6,seven"),
            ("l", "U 1,8,5", "U 1,8,5,-; D 1,7,5,SEVEN"),
            ("r", "I 8,eight", "U 1,8,5,eight; D 1,8,5,-"),
            ("l", "U/P 1,-,9", "U 1,8,9,eight; D 1,8,5,eight"),
            ("r", "D 7,-", "U 2,7,6,-; D 2,7,6,SEVEN"),
            ("l", "D 1,-,-", "D 1,8,9,eight"),
            ("l", "P 1,-,4", "I 1,-,4,-"),
            ("l", "SD 9,-,-", ""),
        ],
    )


def test_inner_only_facts_with_a_partner_come_out() -> None:
    play(
        Kernel(project("inner")),
        [
            ("l", "I 1,7,5", ""),
            ("r", "I 7,seven", "I 1,7,5,seven"),
            ("l", "U 1,8,5", "D 1,7,5,seven"),
            ("l", "U 1,7,6", "I 1,7,6,seven"),
            ("r", "D 7,-", "D 1,7,6,seven"),
            ("l", "D 1,-,-", ""),
        ],
    )


def test_a_bad_record_of_either_side_is_refused_and_changes_nothing() -> None:
    kernel = Kernel(project("leftouter"))
    put(kernel, "I 1,7,5", window="l")
    put(kernel, "I 7,seven", window="r")
    before = kernel.state()["windows"]["q/out"]
    play(
        kernel,
        [
            ("l", "I 1,7,6", "! insert of key 1, which exists"),
            ("l", "U 3,7,6", "! update of key 3, which does not exist"),
            ("r", "I 7,again", "! insert of key 7, which exists"),
            ("r", "D 8,-", "! delete of key 8, which does not exist"),
        ],
    )
    assert kernel.state()["windows"]["q/out"] == before


def test_no_regenerates_a_change_of_the_table_is_seen_by_later_facts_only() -> None:
    play(
        Kernel(project("leftouter", 'no-regenerates="true"')),
        [
            ("l", "I 1,7,5", "I 1,7,5,-"),
            ("r", "I 7,seven", ""),
            ("l", "I 2,7,6", "I 2,7,6,seven"),
            ("r", "U 7,SEVEN", ""),
            ("l", "D 2,-,-", "D 2,7,6,seven"),
            ("l", "U 1,7,8", "U 1,7,8,SEVEN; D 1,7,5,-"),
            ("r", "D 7,-", ""),
            ("l", "U 1,7,9", "U 1,7,9,-; D 1,7,8,SEVEN"),
        ],
    )


def test_without_index_and_regeneration_facts_pass_through() -> None:
    """Nothing is known of facts: the opcode goes on, and the same key can come again."""
    kernel = Kernel(project("leftouter", 'no-regenerates="true"', index="pi_EMPTY"))
    play(
        kernel,
        [
            ("r", "I 7,seven", ""),
            ("l", "I 1,7,5", "I 1,7,5,seven"),
            ("l", "I 1,7,5", "I 1,7,5,seven"),
            ("l", "U 1,8,5", "U 1,8,5,-"),
            ("l", "P 1,7,5", "P 1,7,5,seven"),
            ("l", "D 1,7,5", "D 1,7,5,seven"),
            ("r", "I 7,again", "! insert of key 7, which exists"),
        ],
    )
    ((table, _),) = kernel.state()["windows"]["q/out"]
    assert list(table) == [((7,), (7, "seven"))]


def test_without_index_an_update_block_can_enter_and_leave_an_inner_join() -> None:
    join = f'<join type="inner" no-regenerates="true">{ON_K}</join>{SELECTION}'
    windows = (
        source(FACTS, 'index="pi_HASH"', name="l")
        + source(TABLE, name="r")
        + out("join", join, 'index="pi_EMPTY"')
    )
    kernel = Kernel(read_project(xml(windows, '<edge source="l r" target="out"/>')))
    play(
        kernel,
        [
            ("r", "I 7,seven", ""),
            ("l", "I 1,8,5", ""),
            ("l", "U 1,7,5", "I 1,7,5,seven"),
            ("l", "U 1,7,6", "U 1,7,6,seven; D 1,7,5,seven"),
            ("l", "U 1,8,6", "D 1,7,6,seven"),
        ],
    )


def test_null_equals_nothing() -> None:
    play(
        Kernel(project("leftouter", right="key*:int64,k:int64,name:string")),
        [
            ("r", "I 1,-,nobody", ""),
            ("l", "I 1,-,5", "I 1,-,-,5,-"),
            ("r", "U 1,9,nobody", ""),
            ("l", "U 1,9,5", "D 1,-,-,5,-; I 1,1,9,5,nobody"),
        ],
    )


def fields_of(model: Project) -> str:
    return ",".join(field.name + "*" * field.key for field in model.windows["q/out"].fields)


def test_many_to_many_the_key_is_that_of_both_sides() -> None:
    """Each pair is a row; pairs that a change does not touch are not emitted again."""
    model = project("inner", right="n*:int64,k:int64,name:string")
    assert fields_of(model) == "id*,n*,k,x,name"
    play(
        Kernel(model),
        [
            ("r", "I 1,7,a", ""),
            ("r", "I 2,7,b", ""),
            ("l", "I 1,7,5", "I 1,1,7,5,a; I 1,2,7,5,b"),
            ("r", "I 3,7,c", "I 1,3,7,5,c"),
            ("r", "U 2,7,B", "U 1,2,7,5,B; D 1,2,7,5,b"),
            ("l", "U 1,7,6", "U 1,1,7,6,a; D 1,1,7,5,a; U 1,2,7,6,B; D 1,2,7,5,B; "
             "U 1,3,7,6,c; D 1,3,7,5,c"),
            ("r", "D 1,-,-", "D 1,1,7,6,a"),
            ("r", "U 2,8,B", "D 1,2,7,6,B"),
            ("r", "U 2,7,B", "I 1,2,7,6,B"),
            ("l", "D 1,-,-", "D 1,3,7,6,c; D 1,2,7,6,B"),
        ],
    )  # fmt: skip


def test_rightouter_the_right_side_streams() -> None:
    """One-to-many: the left key is in the condition, so a right row has one partner at most."""
    model = project("rightouter", left=TABLE, right=FACTS, output="")
    assert fields_of(model) == "k,name,id*,r_k,x"
    play(
        Kernel(model),
        [
            ("r", "I 1,7,5", "I -,-,1,7,5"),
            ("l", "I 7,seven", "U 7,seven,1,7,5; D -,-,1,7,5"),
            ("l", "I 8,eight", ""),
            ("l", "D 7,-", "U -,-,1,7,5; D 7,seven,1,7,5"),
            ("r", "D 1,-,-", "D -,-,1,7,5"),
        ],
    )


def test_rightouter_of_facts_and_a_table_has_table_rows_without_facts() -> None:
    model = project("rightouter")
    assert fields_of(model) == "id*,r_k*,k,x,name"
    play(
        Kernel(model),
        [
            ("r", "I 7,seven", "I -,7,-,-,seven"),
            ("l", "I 1,7,5", "D -,7,-,-,seven; I 1,7,7,5,seven"),
            ("l", "I 2,8,5", ""),
            ("l", "I 3,7,6", "I 3,7,7,6,seven"),
            ("l", "D 1,-,-", "D 1,7,7,5,seven"),
            ("l", "D 3,-,-", "D 3,7,7,6,seven; I -,7,-,-,seven"),
        ],
    )


def test_fullouter_on_equal_keys_has_one_key() -> None:
    """Where the left row is missing, its key is known from the right one."""
    model = project("fullouter", left="k*:int64,x:int64", output="")
    assert fields_of(model) == "k*,x,r_k,name"
    play(
        Kernel(model),
        [
            ("r", "I 7,seven", "I 7,-,7,seven"),
            ("l", "I 7,5", "U 7,5,7,seven; D 7,-,7,seven"),
            ("l", "I 8,6", "I 8,6,-,-"),
            ("r", "D 7,-", "U 7,5,-,-; D 7,5,7,seven"),
            ("l", "D 7,-", "D 7,5,-,-"),
            ("r", "I 8,eight", "U 8,6,8,eight; D 8,6,-,-"),
            ("l", "D 8,-", "U 8,-,8,eight; D 8,6,8,eight"),
        ],
    )


def test_fullouter_of_many_to_one() -> None:
    model = project("fullouter")
    assert fields_of(model) == "id*,r_k*,k,x,name"
    play(
        Kernel(model),
        [
            ("r", "I 7,seven", "I -,7,-,-,seven"),
            ("l", "I 1,8,5", "I 1,-,8,5,-"),
            ("l", "U 1,7,5", "D 1,-,8,5,-; D -,7,-,-,seven; I 1,7,7,5,seven"),
            ("r", "U 7,7even", "U 1,7,7,5,7even; D 1,7,7,5,seven"),
            ("l", "D 1,-,-", "D 1,7,7,5,7even; I -,7,-,-,7even"),
            ("r", "D 7,-", "D -,7,-,-,7even"),
        ],
    )


def test_the_result_of_an_outer_join_can_be_kept_behind_it() -> None:
    """A key with a part that is null is a key, as long as another part is not."""
    join = f'<join type="fullouter">{ON_K}</join>{SELECTION}'
    windows = (
        source(FACTS, name="l")
        + source(TABLE, name="r")
        + f'<window-join name="j" index="pi_HASH">{join}</window-join>'
        + out("copy", "", 'index="pi_HASH"')
    )
    edges = '<edge source="l r" target="j"/><edge source="j" target="out"/>'
    play(
        Kernel(read_project(xml(windows, edges))),
        [
            ("r", "I 7,seven", "I -,7,-,-,seven"),
            ("l", "I 1,7,5", "D -,7,-,-,seven; I 1,7,7,5,seven"),
        ],
    )


def test_expressions_see_both_sides() -> None:
    output = (
        '<output><field-expr name="cost" type="double">l_x * r_rate</field-expr>'
        '<field-expr name="known" type="int32">not isnull(r_rate)</field-expr></output>'
    )
    model = project("leftouter", output=output, right="k*:int64,rate:double")
    assert fields_of(model) == "id*,cost,known"
    play(
        Kernel(model),
        [
            ("l", "I 1,7,4", "I 1,-,0"),
            ("r", "I 7,2.5", "U 1,10.0,1; D 1,-,0"),
            ("r", "U 7,nan", "U 1,-,0; D 1,10.0,1"),
        ],
    )


def test_an_expression_that_does_not_end_is_null() -> None:
    output = (
        '<output><field-expr name="y" type="int64">integer i i = 0 '
        "while l_x == 5 i = i + 1 return i</field-expr></output>"
    )
    kernel = Kernel(project("leftouter", output=output))
    assert put(kernel, "I 1,7,5", window="l") == "I 1,-"
    assert put(kernel, "U 1,7,6", window="l") == "U 1,0; D 1,-"


def test_numbers_of_all_types_are_compared_by_value() -> None:
    model = project("inner", right="k*:double,name:string", output="")
    kernel = Kernel(model)
    big = 2**53
    play(
        kernel,
        [
            ("r", f"I {float(big)},a", ""),
            ("l", f"I 1,{big},5", f"I 1,{big},5,{float(big)},a"),
            ("l", f"I 2,{big + 1},5", ""),
            ("l", f"I 3,{2**63 - 1},5", ""),
            ("r", "I 0.0,zero", ""),
            ("l", "I 4,0,5", "I 4,0,5,0.0,zero"),
        ],
    )


def test_retention_before_a_join_takes_results_away_with_its_flag() -> None:
    join = f'<join type="inner">{ON_K}</join>{SELECTION}'
    windows = (
        source(FACTS, name="l")
        + source(TABLE, name="r")
        + '<window-copy name="c" index="pi_HASH"><retention type="bycount_sliding">1</retention>'
        "</window-copy>" + out("join", join, 'index="pi_HASH"')
    )
    edges = '<edge source="l" target="c"/><edge source="c r" target="out"/>'
    play(
        Kernel(read_project(xml(windows, edges))),
        [
            ("r", "I 7,seven", ""),
            ("l", "I 1,7,5", "I 1,7,5,seven"),
            ("l", "I 2,7,6", "I 2,7,6,seven; D/R 1,7,5,seven"),
        ],
    )


def test_the_roles_of_the_edges_say_which_side_is_left() -> None:
    join = f'<join type="leftouter">{ON_K}</join>{SELECTION}'
    windows = source(TABLE, name="r") + source(FACTS, name="l")
    windows += out("join", join, 'index="pi_HASH"')
    edges = (
        '<edge source="r" target="out" role="right"/><edge source="l" target="out" role="left"/>'
    )
    kernel = Kernel(read_project(xml(windows, edges)))
    play(kernel, [("l", "I 1,7,5", "I 1,7,5,-"), ("r", "I 7,s", "U 1,7,5,s; D 1,7,5,-")])


FORK = (
    '<window-filter name="big" index="pi_EMPTY"><expression>x &gt; 3</expression></window-filter>'
    '<window-compute name="twice" index="pi_EMPTY"><schema-string>id*:int64,y:int64'
    "</schema-string><output><field-expr>x * 2</field-expr></output></window-compute>"
)


@cache
def fork(attributes: str, index: str, type_: str = "leftouter") -> Project:
    join = (
        f'<join type="{type_}" {attributes}><conditions><fields left="id" right="id"/>'
        '</conditions></join><output><field-selection name="x" source="l_x"/>'
        '<field-selection name="y" source="r_y"/></output>'
    )
    windows = source("id*:int64,x:int64", 'index="pi_HASH"') + FORK
    windows += out("join", join, f'index="{index}"')
    return read_project(
        xml(
            windows, '<edge source="in" target="big twice"/><edge source="big twice" target="out"/>'
        )
    )


def test_without_tagged_tokens_a_fork_meets_in_two_steps() -> None:
    kernel = Kernel(fork("", "pi_HASH"))
    assert put(kernel, "I 1,5") == "I 1,5,-; U 1,5,10; D 1,5,-"


@pytest.mark.parametrize("index", ["pi_HASH", "pi_EMPTY"])
def test_tagged_tokens_the_join_waits_for_both_branches_of_an_event(index: str) -> None:
    kernel = Kernel(fork('use-tagged-token="true"', index))
    assert put(kernel, "I 1,5") == "I 1,5,10"
    assert put(kernel, "U 1,6") == "U 1,6,12; D 1,5,10"
    assert put(kernel, "I 2,1") == "", "one branch filters it"
    assert put(kernel, "D 2,-") == ""
    assert put(kernel, "D 1,-") == "D 1,6,12"


def test_facts_that_are_not_kept_are_joined_once() -> None:
    body = '<join type="leftouter" left-index="pi_EMPTY"><conditions>'
    body += '<fields left="k" right="t"/></conditions></join>'
    project = two("id*:int64,k:int64", "t*:int64,name:string", out("join", body), index="pi_HASH")
    play(
        Kernel(project),
        [
            ("r", "I 7,a", ""),
            ("l", "I 1,7", "I 1,7,7,a"),
            ("r", "U 7,b", ""),
            ("l", "P 1,7", "U 1,7,7,b; D 1,7,7,a"),
        ],
    )


def test_tagged_tokens_what_one_branch_did_alone_is_in_the_rows() -> None:
    """The event that moves row 1 into the filter comes with both branches, as it is there."""
    kernel = Kernel(fork('use-tagged-token="true"', "pi_HASH"))
    assert put(kernel, "I 1,1") == ""
    assert put(kernel, "U 1,7") == "I 1,7,14"
    assert put(kernel, "U 1,2") == "D 1,7,14"


steps = st.lists(
    st.tuples(
        st.sampled_from("llr"),
        st.sampled_from(["I", "U", "P", "P", "P", "D", "SD"]),
        st.integers(0, 4),
        st.integers(0, 3) | st.none(),
    ),
    max_size=50,
)
Step = tuple[str, str, int, int | None]
TYPES = ("inner", "leftouter", "rightouter", "fullouter")
RIGHTS = ("k*:int64,n:int64", "n*:int64,k:int64")


def publish(kernel: Kernel, steps: list[Step]) -> list[Any]:
    """Publish facts (key, k, k) and table rows (key, k); return all that leaves."""
    results: list[Any] = []
    for side, opcode, key, value in steps:
        values = (key, value, value) if side == "l" else (key, value)
        leaving = kernel.publish(f"q/{side}", Event(opcode, "N", values), 0)
        results.append(([event for _, event in leaving], kernel.take_refusals()))
    return results


def rows_left_by(results: list[Any]) -> set[tuple[Any, ...]]:
    """Replay what has left; check that it is a history of rows: I new, U and D of what was."""
    rows: set[tuple[Any, ...]] = set()
    for events, _ in results:
        waiting = None
        for event in events:
            if event.opcode == "U":
                waiting = event.values
                continue
            if event.opcode == "D":
                rows.remove(event.values)
            if event.opcode == "I" or waiting is not None:
                assert (waiting or event.values) not in rows
                rows.add(waiting or event.values)
                waiting = None
    return rows


def scan(type_: str, right: str, steps: list[Step]) -> set[tuple[Any, ...]]:
    """Join the rows of both sides by looking at all pairs; fields of both sides, left first."""
    kept: dict[str, dict[int, int | None]] = {"l": {}, "r": {}}
    for side, opcode, key, value in steps:
        rows = kept[side]
        there = key in rows
        if opcode in {"D", "SD"}:
            rows.pop(key, None)
        elif (opcode == "I" and not there) or (opcode == "U" and there) or opcode == "P":
            rows[key] = value
    lefts = [(key, value, value) for key, value in kept["l"].items()]
    rights = list(kept["r"].items())
    on = RIGHTS.index(right)
    pairs = [(one, two) for one in lefts for two in rights if one[1] is not None]
    pairs = [(one, two) for one, two in pairs if one[1] == two[on]]
    result: set[tuple[Any, ...]] = {one + two for one, two in pairs}
    if type_ in {"leftouter", "fullouter"}:
        result |= {(*one, None, None) for one in lefts if one not in [pair[0] for pair in pairs]}
    if type_ in {"rightouter", "fullouter"}:
        result |= {(None,) * 3 + two for two in rights if two not in [pair[1] for pair in pairs]}
    return result


def in_order(model: Project, rows: set[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    """Bring the fields l_id, l_k, l_x, r_first, r_second into the order of the window."""
    window: Any = model.windows["q/out"]
    right = [field.name for field in model.windows["q/r"].fields]
    names = ["l_id", "l_k", "l_x", *(f"r_{name}" for name in right)]
    places = [names.index(column.source) for column in window.columns]
    return {tuple(row[place] for place in places) for row in rows}


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("right", RIGHTS)
@settings(max_examples=40)
@given(steps=steps)
def test_what_was_emitted_is_what_a_scan_of_both_sides_gives(
    type_: str, right: str, steps: list[Step]
) -> None:
    model = project(type_, right=right, output="")
    assert rows_left_by(publish(Kernel(model), steps)) == in_order(model, scan(type_, right, steps))


ATTRIBUTES = ("", 'no-regenerates="true"', 'use-tagged-token="true"')
MODELS = [
    partial(project, type_, attributes, index=index, right=right, output="")
    for type_ in TYPES
    for attributes in ATTRIBUTES
    for index in ("pi_HASH", "pi_EMPTY")
    for right in RIGHTS
]


@pytest.mark.parametrize("read", MODELS)
@settings(max_examples=10)
@given(steps=steps, cut=st.integers(0, 50))
def test_a_restored_join_goes_on_as_the_first_one(
    read: Callable[[], Project], steps: list[Step], cut: int
) -> None:
    model = read()
    whole, first, second = (Kernel(model) for _ in range(3))
    expected = publish(whole, steps)
    before = publish(first, steps[:cut])
    second.restore(loads(dumps(first.state())))
    assert before + publish(second, steps[cut:]) == expected
    assert second.state() == whole.state()


@pytest.mark.parametrize("type_", ["inner", "leftouter"])
@settings(max_examples=40)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from("IUPPD"), st.integers(0, 3), st.integers(0, 8)), max_size=40
    )
)
def test_tagged_tokens_each_event_leads_to_the_rows_that_took_both_ways(
    type_: str, steps: list[tuple[str, int, int]]
) -> None:
    """After each event there is a result for each row above 3, complete, and no other."""
    kernel = Kernel(fork('use-tagged-token="true"', "pi_HASH", type_))
    rows: dict[int, int] = {}
    results: list[Any] = []
    for opcode, key, value in steps:
        if (opcode == "I" and key in rows) or (opcode in "UD" and key not in rows):
            continue
        leaving = kernel.publish("q/in", Event(opcode, "N", (key, value)), 0)
        results.append(([event for _, event in leaving], ()))
        assert len(leaving) <= 2, "an event, or an update block"
        if opcode == "D":
            del rows[key]
        else:
            rows[key] = value
        assert rows_left_by(results) == {(key, x, 2 * x) for key, x in rows.items() if x > 3}
    assert kernel.take_refusals() == []


@settings(max_examples=40)
@given(steps)
def test_without_regeneration_a_fact_keeps_what_it_was_joined_with(steps: list[Step]) -> None:
    """What has left is a history of rows all the same: an old row is the one that was emitted."""
    model = project("leftouter", 'no-regenerates="true"', right=RIGHTS[0], output="")
    kernel = Kernel(model)
    results = publish(kernel, steps)
    rows = rows_left_by(results)
    assert {row[0] for row in rows} == {row[0] for row in scan("leftouter", RIGHTS[0], steps)}
    assert all(not out_[0] for out_, step in zip(results, steps, strict=True) if step[0] == "r")
