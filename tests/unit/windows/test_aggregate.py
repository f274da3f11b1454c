"""What an aggregate makes of each event, and that nothing stays of what has left."""

import math
import statistics
from collections import Counter
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espha.kernel import Kernel
from espha.model import Project
from espha.model.events import Event
from espha.reader import read_project
from espha.recovery.plain import digest, dumps, loads
from support.models import behind, source, xml
from support.tables import out, put

SCHEMA = "id*:int64,g:string,x:int64,d:double"


@cache
def project(columns: str, schema: str = SCHEMA, extra: str = "", before: str = "") -> Project:
    """Return an aggregate over `g`; columns are written as `name:type=expression|…`."""
    fields, texts = [], []
    for column in columns.split("|"):
        field, _, text = column.partition("=")
        fields.append(field)
        texts.append(f"<field-expr><![CDATA[{text}]]></field-expr>")
    body = f"{extra}<schema-string>g*:string,{','.join(fields)}</schema-string>"
    body += f"<output>{''.join(texts)}</output>"
    return behind(schema, out("aggregate", body), attributes=before)


def kernel(columns: str, **named: str) -> Kernel:
    return Kernel(project(columns, **named))


def play(target: Kernel, steps: list[tuple[str, str]]) -> None:
    for words, expected in steps:
        assert put(target, words) == expected, words


def test_a_group_appears_changes_and_disappears() -> None:
    play(
        kernel("n:int64=ESP_aCount(x)|s:int64=ESP_aSum(x)"),
        [
            ("I 1,a,5,0", "I a,1,5"),
            ("I 2,a,7,0", "U a,2,12; D a,1,5"),
            ("I 3,b,1,0", "I b,1,1"),
            ("U 1,a,6,0", "U a,2,13; D a,2,12"),
            ("P 1,a,6,0", "U a,2,13; D a,2,13"),
            ("D 2,-,-,-", "U a,1,6; D a,2,13"),
            ("I 1,a,5,0", "! insert of key 1, which exists"),
            ("D 1,-,-,-", "D a,1,6"),
            ("D 1,-,-,-", "! delete of key 1, which does not exist"),
            ("SD 1,-,-,-", ""),
            ("I 1,a,2,0", "I a,1,2"),
        ],
    )


def test_an_update_can_move_a_row_from_group_to_group() -> None:
    """The group that it leaves comes first."""
    play(
        kernel("n:int64=ESP_aCount(x)|s:int64=ESP_aSum(x)"),
        [
            ("I 1,a,5,0", "I a,1,5"),
            ("I 2,a,7,0", "U a,2,12; D a,1,5"),
            ("U 2,b,9,0", "U a,1,5; D a,2,12; I b,1,9"),
            ("U 1,b,5,0", "D a,1,5; U b,2,14; D b,1,9"),
        ],
    )


@pytest.mark.parametrize("before", ['index="pi_EMPTY"', 'index="pi_HASH"'])
def test_the_input_may_or_may_not_give_old_rows(before: str) -> None:
    """Updates without the old row, partial updates, upserts and deletes by key come out alike."""
    play(
        kernel("s:int64=ESP_aSum(x)", before=before),
        [
            ("P 1,a,5,0", "I a,5"),
            ("U/P 1,-,-,2", "U a,5; D a,5"),
            ("U/P 1,-,6,-", "U a,6; D a,5"),
            ("P 1,a,7,0", "U a,7; D a,6"),
            ("SD 1,-,-,-", "D a,7"),
        ],
    )


def test_a_collapsed_update_is_an_update() -> None:
    play(
        kernel("s:int64=ESP_aSum(x)", before='index="pi_HASH" collapse-updates="true"'),
        [("I 1,a,5,0", "I a,5"), ("U 1,a,6,0", "U a,6; D a,5"), ("U 1,b,1,0", "D a,6; I b,1")],
    )


def test_nulls_do_not_count_but_for_the_counts_of_rows_and_nulls() -> None:
    columns = (
        "n:int64=ESP_aCount(x)|v:int64=ESP_aCountNonNull(x)|z:int64=ESP_aCountNull(x)|"
        "s:int64=ESP_aSum(x)|a:double=ESP_aAve(x)|m:int64=ESP_aMin(x)|t:double=ESP_aStd(x)|"
        "c:string=ESP_aCat(x)|f:int64=ESP_aFirst(x)"
    )
    play(
        kernel(columns),
        [
            ("I 1,a,-,0", "I a,1,0,1,-,-,-,-,-,-"),
            ("I 2,a,4,0", "U a,2,1,1,4,4.0,4,0.0,4,-; D a,1,0,1,-,-,-,-,-,-"),
            ("U 1,a,2,0", "U a,2,2,0,6,3.0,2,1.4142135623730951,2,4,2; "
             "D a,2,1,1,4,4.0,4,0.0,4,-"),
        ],
    )  # fmt: skip


def test_each_function_by_hand() -> None:
    columns = {
        "ESP_aSum(x)": ("int64", 15),
        "ESP_aSum(d)": ("double", 10.0),
        "ESP_aAve(x)": ("double", 3.75),
        "ESP_aMin(x)": ("int64", 1),
        "ESP_aMax(x)": ("int64", 9),
        "ESP_aMin(name)": ("string", "ann"),
        "ESP_aMax(name)": ("string", "eve"),
        "ESP_aRange(x)": ("int64", 8),
        "ESP_aRange(d)": ("double", 3.0),
        "ESP_aCount()": ("int64", 4),
        "ESP_aCount(x)": ("int64", 4),
        "ESP_aCountNonNull(name)": ("int64", 4),
        "ESP_aCountDistinct(name)": ("int64", 3),
        "ESP_aMode(name)": ("string", "bob"),
        "ESP_aMode(d)": ("double", 1.0),
        "ESP_aVar(d)": ("double", 5 / 3),
        "ESP_aStd(d)": ("double", math.sqrt(5 / 3)),
        "ESP_aWAve(d, x)": ("double", (1 * 3 + 2 * 1 + 3 * 2 + 4 * 9) / 10),
        "ESP_aFirst(name)": ("string", "bob"),
        "ESP_aLast(name)": ("string", "eve"),
        "ESP_aLastNonDelete(name)": ("string", "eve"),
        "ESP_aLag(name, 0)": ("string", "eve"),
        "ESP_aLag(x, 1)": ("int64", 2),
        "ESP_aLag(x, 3)": ("int64", 3),
        "ESP_aLag(x, 4)": ("int64", None),
        "ESP_aCat(name)": ("string", "bob,ann,bob,eve"),
        "ESP_aCat(d, '; ')": ("string", "1; 2; 3; 4"),
        "ESP_aCat(x, '')": ("string", "3129"),
        "ESP_aCountOpcodes(1)": ("int64", 4),
        "ESP_aCountOpcodes(2)": ("int64", 0),
        "ESP_aLastOpcode()": ("int64", 1),
        "ESP_aSum(x) / ESP_aCount(x)": ("double", 3.75),
        "esp_asum(x * d) + ESP_aMax(x)": ("double", 56.0),
        "ESP_aSum('x')": ("int64", 15),
        "x": ("int64", 9),
        "name & ':' & g": ("string", "eve:a"),
        "if ESP_aSum(x) > 10 then return 'many' else return 'few'": ("string", "many"),
    }
    text = "|".join(f"f{n}:{kind}={name}" for n, (name, (kind, _)) in enumerate(columns.items()))
    target = kernel(text, schema="id*:int64,g:string,x:int64,d:double,name:string")
    rows = [(1, "a", 3, 1.0, "bob"), (2, "a", 1, 2.0, "ann"), (3, "a", 2, 3.0, "bob")]
    for row in [*rows, (4, "a", 9, 4.0, "eve")]:
        results = target.publish("q/in", Event("I", "N", row), 0)
    values = dict(zip(columns, results[0][1].values[1:], strict=True))
    assert values == {name: value for name, (_, value) in columns.items()}
    assert all(type(values[name]) is type(value) for name, (_, value) in columns.items())


def test_first_and_cat_follow_the_rows_and_last_follows_the_events() -> None:
    """The last event of a delete is the row that is deleted; LastNonDelete leaves it out."""
    columns = "|".join(
        f"f{n}:int64={name}"
        for n, name in enumerate(
            ["ESP_aFirst(x)", "ESP_aLast(x)", "ESP_aLastNonDelete(x)", "ESP_aLag(x,1)"]
        )
    )
    target = kernel(f"{columns}|c:string=ESP_aCat(x)")
    found = [
        put(target, words).split(";")[0]
        for words in ("I 1,a,1,0", "I 2,a,2,0", "I 3,a,3,0", "U 1,a,9,0", "D 2,-,-,-", "D 1,-,-,-")
    ]
    assert found == [
        "I a,1,1,1,-,1",
        "U a,1,2,2,1,1,2",
        "U a,1,3,3,2,1,2,3",
        "U a,9,9,9,3,9,2,3",
        "U a,9,2,9,9,9,3",
        "U a,3,9,9,2,3",
    ]


def test_a_time_beyond_the_calendar_has_no_text() -> None:
    target = kernel("c:string=ESP_aCat(t)", schema="id*:int64,g:string,t:stamp")
    assert put(target, f"I 1,a,{2**63 - 1}") == "I a,-"
    assert put(target, "I 2,a,0").startswith("U a,1970-01-01")


def test_opcodes_are_counted_as_they_changed_the_rows() -> None:
    columns = "|".join(f"f{n}:int64=ESP_aCountOpcodes({n})" for n in (1, 2, 3))
    target = kernel(f"{columns}|last:int64=ESP_aLastOpcode()")
    for words in ("P 1,a,1,0", "P 1,a,2,0", "I 2,a,1,0", "SD 2,-,-,-"):
        last = put(target, words)
    assert last.startswith("U a,2,1,1,3;")


def test_a_retention_before_it_takes_rows_out_with_its_flag() -> None:
    body = "<schema-string>g*:string,s:int64</schema-string>"
    body += "<output><field-expr>ESP_aSum(x)</field-expr></output>"
    windows = (
        source(SCHEMA)
        + '<window-copy name="c" index="pi_HASH"><retention type="bycount_sliding">2</retention>'
        "</window-copy>" + out("aggregate", body)
    )
    edges = '<edge source="in" target="c"/><edge source="c" target="out"/>'
    play(
        Kernel(read_project(xml(windows, edges))),
        [
            ("I 1,a,5,0", "I a,5"),
            ("I 2,b,7,0", "I b,7"),
            ("I 3,b,1,0", "U b,8; D b,7; D/R a,5"),
            ("I 4,b,2,0", "U b,10; D b,8; U/R b,3; D/R b,10"),
        ],
    )


def test_a_group_without_a_name_is_a_bad_record() -> None:
    target = kernel("n:int64=ESP_aCount()")
    assert put(target, "I 1,-,5,0") == "! the group is null (g)"
    assert put(target, "I 1,a,5,0") == "I a,1"
    before = target.state()["windows"]["q/out"]
    assert put(target, "U 1,-,5,0") == "! the group is null (g)"
    assert target.state()["windows"]["q/out"] == before


def test_whole_numbers_at_the_end_of_64_bits() -> None:
    """A sum beyond them is null, and exact again when the row has left that was too much."""
    target = kernel("s:int64=ESP_aSum(x)|r:int64=ESP_aRange(x)|a:double=ESP_aAve(x)")
    high = 2**63 - 1
    mean = float(Fraction(high + 1, 2))
    play(
        target,
        [
            (f"I 1,a,{high},0", f"I a,{high},0,{float(high)}"),
            ("I 2,a,1,0", f"U a,-,{high - 1},{mean}; D a,{high},0,{float(high)}"),
            (f"U 1,a,{-high},0", f"U a,{1 - high},-,{-float(Fraction(high - 1, 2))}; "
             f"D a,-,{high - 1},{mean}"),
            ("D 1,-,-,-", f"U a,1,0,1.0; D a,{1 - high},-,{-float(Fraction(high - 1, 2))}"),
        ],
    )  # fmt: skip


def test_doubles_leave_no_error_behind() -> None:
    target = kernel("s:double=ESP_aSum(d)|v:double=ESP_aVar(d)")
    assert put(target, "I 1,a,0,1e308") == "I a,1e+308,0.0"
    assert put(target, "I 2,a,0,1e308") == "U a,-,0.0; D a,1e+308,0.0"
    assert put(target, "I 3,a,0,5e-324") == "U a,-,-; D a,-,0.0"
    put(target, "D 1,-,-,-")
    assert put(target, "D 2,-,-,-").startswith("U a,5e-324,0.0;")


def test_nan_is_null() -> None:
    target = kernel("s:double=ESP_aSum(d)|n:int64=ESP_aCountNonNull(d)")
    assert put(target, "I 1,a,0,nan") == "I a,-,0"


def test_zero_of_either_sign_is_one_value() -> None:
    target = kernel("m:double=ESP_aMin(d)|n:int64=ESP_aCountDistinct(d)")
    assert put(target, "I 1,a,0,-0.0") == "I a,0.0,1"
    assert put(target, "I 2,a,0,0.0") == "U a,0.0,1; D a,0.0,1"


def test_timed_functions_start_afresh() -> None:
    """Ten seconds after the first event, by the clock of the order record."""
    target = kernel("s:int64=ESP_aSumTimed(x, 10)|n:int64=ESP_aSum(x)")

    def at(words: str, clock: int) -> str:
        return put(target, words, clock=clock).split(";")[0]

    assert at("I 1,a,1,0", 1_000) == "I a,1,1"
    assert at("I 2,a,2,0", 10_999) == "U a,3,3"
    assert at("I 3,a,4,0", 11_000) == "U a,4,7"
    assert at("D 1,-,-,-", 12_000) == "U a,4,6", "row 1 is of an earlier time"
    assert at("U 2,a,3,0", 13_000) == "U a,7,7", "the update brings row 2 into this time"
    assert at("U 3,a,5,0", 14_000) == "U a,8,8"
    assert at("D 3,-,-,-", 15_000) == "U a,3,3"
    assert at("D 2,-,-,-", 30_000) == "D a,3,3"


def test_timed_functions_can_take_the_time_from_the_data() -> None:
    schema = "id*:int64,g:string,x:int64,d:double,t:date,m:stamp"
    target = kernel(
        "a:int64=ESP_aCountTimed(x, t, 10)|b:string=ESP_aCatTimed(x, '-', m, 2.5)|"
        "c:int64=ESP_aLastTimed(x, d, 10)",
        schema=schema,
    )
    assert put(target, "I 1,a,5,0,100,1000000") == "I a,1,5,5"
    assert put(target, "I 2,a,6,9,109,3499999") == "U a,2,5-6,6; D a,1,5,5"
    assert put(target, "I 3,a,7,10,110,3500000") == "U a,1,7,7; D a,2,5-6,6"
    assert put(target, "I 4,a,8,-,-,-") == "U a,2,7-8,8; D a,1,7,7", "no time starts nothing"


def test_expressions_may_keep_variables_and_use_functions_of_the_window() -> None:
    extra = (
        '<expr-initialize><udfs><udf name="half" type="double">parameter(1) / 2</udf></udfs>'
        "</expr-initialize>"
    )
    columns = "s:double=half(ESP_aSum(half(x)))|n:int64=private integer n n = n + 1 return n"
    target = kernel(columns, extra=extra)
    assert put(target, "I 1,a,6,0").startswith("I a,1.5,")
    assert put(target, "I 2,a,2,0").startswith("U a,2.0,")


ENDLESS = "integer i i = 0 while x == 5 i = i + 1 return i"


def test_an_expression_that_does_not_end_is_null() -> None:
    target = kernel(f"n:int64={ENDLESS}|s:int64=ESP_aSum(x)")
    assert put(target, "I 1,a,5,0") == "I a,-,5"
    assert put(target, "I 2,a,6,0") == "U a,0,11; D a,-,5"


NUMBERS = [
    "ESP_aSum", "ESP_aAve", "ESP_aMin", "ESP_aMax", "ESP_aRange", "ESP_aStd", "ESP_aVar",
    "ESP_aMode",
]  # fmt: skip
MEASURED = "|".join(
    [f"i{n}:{'double' if 'Ave' in f or 'Std' in f or 'Var' in f else 'int64'}={f}(x)"
     for n, f in enumerate(NUMBERS)]
    + [f"d{n}:double={f}(d)" for n, f in enumerate(NUMBERS)]
    + ["w:double=ESP_aWAve(x, d)", "n:int64=ESP_aCount()", "v:int64=ESP_aCountNonNull(d)",
       "z:int64=ESP_aCountNull(d)", "k:int64=ESP_aCountDistinct(d)", "f:double=ESP_aFirst(d)",
       "c:string=ESP_aCat(x, '/')"]
)  # fmt: skip

doubles = (
    st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.1, 0.2, 0.3, 1e16, -1e16, 0.0, -0.0, 5e-324])
    | st.none()
)
wholes = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3) | st.none()
events = st.lists(
    st.tuples(
        st.sampled_from(["I", "U", "P", "P", "P", "D", "SD"]),
        st.integers(0, 6),
        st.sampled_from(["a", "a", "b"]),
        wholes,
        doubles,
        st.integers(0, 4_000),
    ),
    max_size=40,
)


def publish(target: Kernel, steps: list[Any], clock: int = 0) -> tuple[list[Any], int]:
    results: list[Any] = []
    for opcode, *values, passed in steps:
        clock += passed
        leaving = target.publish("q/in", Event(opcode, "N", tuple(values)), clock)
        results.append(([event for _, event in leaving], target.take_refusals()))
    return results, clock


def replay(results: list[Any]) -> dict[str, tuple[Any, ...]]:
    """Return the groups that what has left gives; check that it is a history of them."""
    groups: dict[str, tuple[Any, ...]] = {}
    for leaving, _ in results:
        old: tuple[Any, ...] | None = None
        for event in leaving:
            name = event.values[0]
            if old is not None:
                assert event == Event("D", "N", old)
                old = None
            elif event.opcode == "D":
                assert groups.pop(name) == event.values
            else:
                assert (name in groups) == (event.opcode == "U")
                old, groups[name] = groups.get(name), event.values
    return groups


def rows_after(steps: list[Any]) -> dict[int, tuple[Any, ...]]:
    """Return the rows in the order in which they came into their group."""
    rows: dict[int, tuple[Any, ...]] = {}
    for opcode, key, group, x, d, _ in steps:
        there = key in rows
        if opcode in {"D", "SD"}:
            rows.pop(key, None)
        elif (opcode == "I" and not there) or (opcode == "U" and there) or opcode == "P":
            if there and rows[key][0] != group:
                del rows[key]
            rows[key] = (group, x, d)
    return rows


def finite(value: Fraction | None) -> float | None:
    try:
        return None if value is None else float(value)
    except OverflowError:
        return None


def measure(name: str, values: list[Any]) -> Any:
    """Compute one function afresh, with exact fractions."""
    there = [value for value in values if value is not None]
    if not there:
        return None
    exact = [Fraction(value) for value in there]
    if name in {"ESP_aMin", "ESP_aMax"}:
        return min(there) if name == "ESP_aMin" else max(there)
    if name == "ESP_aMode":
        counts = Counter(there)
        return min(value for value in there if counts[value] == max(counts.values()))
    whole = all(isinstance(value, int) for value in there)
    if name == "ESP_aRange":
        span: Any = max(there) - min(there)
        return span if (whole and span < 2**63) or (not whole and math.isfinite(span)) else None
    if name == "ESP_aSum":
        if whole:
            return int(sum(exact)) if -(2**63) <= sum(exact) < 2**63 else None
        return finite(Fraction(sum(exact)))
    if name == "ESP_aAve":
        return finite(Fraction(sum(exact)) / len(exact))
    variance = finite(statistics.variance(exact)) if len(exact) > 1 else 0.0
    return math.sqrt(variance) if name == "ESP_aStd" and variance is not None else variance


def weighted(rows: list[tuple[Any, Any]]) -> float | None:
    good = [(Fraction(x), Fraction(d)) for x, d in rows if x is not None and d is not None]
    weight = sum(x for x, _ in good)
    return finite(Fraction(sum(x * d for x, d in good)) / weight) if weight else None


def expected_group(rows: list[tuple[Any, ...]]) -> list[Any]:
    xs, ds = [row[1] for row in rows], [row[2] for row in rows]
    there = [d for d in ds if d is not None]
    texts = [str(x) for x in xs if x is not None]
    return [
        *(measure(name, xs) for name in NUMBERS),
        *(measure(name, ds) for name in NUMBERS),
        weighted(list(zip(xs, ds, strict=True))),
        len(rows),
        len(there),
        len(ds) - len(there),
        len(set(there)),
        ds[0],
        "/".join(texts) if texts else None,
    ]


@settings(max_examples=80)
@given(steps=events)
def test_what_was_added_and_taken_out_is_what_a_scan_of_the_rows_gives(steps: list[Any]) -> None:
    found = replay(publish(kernel(MEASURED), steps)[0])
    rows = list(rows_after(steps).values())
    assert set(found) == {row[0] for row in rows}
    for name, values in found.items():
        wanted = expected_group([row for row in rows if row[0] == name])
        assert list(values[1:]) == wanted


HISTORY = MEASURED + (
    "|l:double=ESP_aLast(d)|g2:int64=ESP_aLag(x, 2)|e:double=ESP_aLastNonDelete(d)|"
    "o:int64=ESP_aCountOpcodes(2)|t:int64=ESP_aSumTimed(x, 5)|y:string=ESP_aCatTimed(x, 5)|"
    "q:double=ESP_aLagTimed(d, 1, 5)|j:int64=private integer n n = n + 1 return n"
)


@settings(max_examples=40)
@given(steps=events, cut=st.integers(0, 40))
def test_a_restored_window_goes_on_as_the_first_one(steps: list[Any], cut: int) -> None:
    """To the last bit: values are compared as they are written."""
    whole, first, second = (kernel(HISTORY) for _ in range(3))
    expected, _ = publish(whole, steps)
    before, clock = publish(first, steps[:cut])
    second.restore(loads(dumps(first.state())))
    found = before + publish(second, steps[cut:], clock)[0]
    assert repr(found) == repr(expected)
    assert digest(second.state()) == digest(whole.state())


def test_thousands_of_updates_leave_nothing_behind() -> None:
    target = kernel("s:double=ESP_aSum(d)|v:double=ESP_aStd(d)|m:double=ESP_aMode(d)")
    for number in range(3_000):
        put(target, f"P {number % 7},a,0,{(number * 0.1) % 13 - 6}")
    for key in range(1, 7):
        put(target, f"D {key},-,-,-")
    assert put(target, "U 0,a,0,0.1").startswith("U a,0.1,0.0,0.1;")
