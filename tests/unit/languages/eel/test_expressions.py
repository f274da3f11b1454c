"""Expressions: values, nulls, types, refusals."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espha.languages.eel import ExpressionError, Language, converter
from espha.model.events import Event
from espha.model.project import Field

FIELDS = (
    Field("i", "int64", True),
    Field("d", "double"),
    Field("s", "string"),
    Field("n", "int32"),
    Field("t", "date"),
)
ROW = (7, 2.5, "Ab", None, 1_700_000_000)
BIG = 2**63 - 1


def value(text: str, row: tuple[Any, ...] = ROW) -> Any:
    return Language(FIELDS).compile(text).run(Event("I", "N", row))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 3 - 2", 5),
        ("-i + +1", -6),
        ("i / 2", 3.5),
        ("8 / 2", 4.0),
        ("i % 4", 3),
        ("-i % 4", -3),
        ("d % 2", 0.5),
        ("i * d", 17.5),
        ("1e2 + .5", 100.5),
        ("t + 60", 1_700_000_060),
        ("'x' & s & i", "xAb7"),
        ('"it\'s"', "it's"),
        ("i == 7", 1),
        ("i != 7", 0),
        ("s < 'B'", 1),
        ("d >= i", 0),
        ("not i == 8 and d > 1", 1),
        ("0 or 0 and 1", 0),
        ("NOT 0 AND 1 Or 0", 1),
        ("abs(-i)", 7),
        ("ceil(d)", 3.0),
        ("floor(-d)", -3.0),
        ("round(d)", 3.0),
        ("round(-d)", -3.0),
        ("round(0.49999999999999994)", 0.0),
        ("round(i)", 7),
        ("upper(s) & lower(s)", "ABab"),
        ("trim('  a ')", "a"),
        ("length(s)", 2),
        pytest.param("(" * 3000 + "i" + ")" * 3000, 7, id="many parentheses"),
        ("isnull(n)", 1),
        ("isnull(i)", 0),
        ("!(i == 8) and !0 and i != 8", 1),
        ("abs('-2.5')", 2.5),
        ("upper(i)", "7"),
        ("s + 1", "Ab1"),
        ("1 + '2'", "12"),
        ("'8' / '2' - '1'", 3.0),
        ("-'2'", -2.0),
        ("i == '7'", 1),
        ("'7.5' > i", 1),
        ("i in ('7', s)", 1),
        ("'9223372036854775807' == 9223372036854775806", 0),
        ("t >= '2023-11-14 22:13:20'", 1),
        ("t < #2023-11-14# or t > #11/15/2023# or t == #14-November-2023 22:13:20#", 1),
        ("'yes' and '1' and not 'false' and not '0' and not 'maybe'", 1),
        ("if 'true' then 1 else 2", 1),
    ],
)
def test_value(text: str, expected: object) -> None:
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    "text",
    ["s - 1", "s == 1", "-s", "abs(s)", "t == s",
     "n + 1", "-n", "n == n", "not n", "abs(n)", "s & n", "n and 1", "n or 0", "i / 0", "d % 0",
     f"{BIG} + 1", f"0 - {BIG} - 2", f"{BIG} * {BIG}", "1e308 * 10", "i / 1e-320"],
)  # fmt: skip
def test_what_does_not_exist_is_null(text: str) -> None:
    assert value(text) is None


@pytest.mark.parametrize(
    ("text", "expected"), [("n and 0", 0), ("0 and n", 0), ("n or 1", 1), ("1 or n", 1)]
)
def test_an_operand_that_decides_wins_over_null(text: str, expected: int) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ("i +", "ends too early"),
        ("i = 7", "'i' is a field and cannot be assigned; use == to compare"),
        ("i ? 7", "line 1, column 3: this cannot be read: '\\? 7'"),
        ("1 < 2 <\n 3", "line 1, column 7"),
        ("x + 1", "no field 'x'; the input has i, d, s, n, t"),
        ("squareroot(d)", "no function 'squareroot'"),
        ("matchstring(s, 'a')", "no function 'matchstring'; do you mean 'match_string'"),
        ("abs(i, i)", "takes 1 argument, not 2"),
        ("abs()", "takes 1 argument, not 0"),
        ("#5 Brumaire#", "is not a date, such as"),
        ("9223372036854775808", "too large"),
        ("1e999", "too large"),
        ("i +\n not i", "line 2, column 2"),
        pytest.param("-" * 3000 + "i", "deeper", id="many signs"),
        pytest.param("+".join("i" * 3000), "deeper", id="many terms"),
        pytest.param("i" * 30_001, "longer", id="long"),
        ("__import__('os')", "no function"),
    ],
)
def test_refused_with_a_sentence(text: str, reason: str) -> None:
    with pytest.raises(ExpressionError, match=reason):
        Language(FIELDS).compile(text)


def test_equal_trees_have_equal_texts_that_read_back() -> None:
    one = Language(FIELDS).compile("i+d *2 > 3 and not s=='x'")
    two = Language(FIELDS).compile('((i + (d*2)) > 3) AND (NOT (s == "x"))')
    assert one.text == two.text
    assert Language(FIELDS).compile(one.text).text == one.text


@pytest.mark.parametrize(
    ("kind", "type_", "result", "expected"),
    [
        ("double", "int32", 2.9, 2),
        ("double", "int64", -2.9, -2),
        ("int", "int32", 2**31, None),
        ("double", "int64", 1e300, None),
        ("int", "double", 3, 3.0),
        ("string", "string", "x", "x"),
        ("int", "int32", None, None),
        ("double", "double", None, None),
    ],
)
def test_a_result_becomes_the_value_of_a_field(
    kind: Any, type_: str, result: object, expected: object
) -> None:
    found = converter(kind, type_)(result)
    assert found == expected
    assert type(found) is type(expected)


def test_an_array_becomes_nothing_else() -> None:
    with pytest.raises(ExpressionError, match=r"gives array\(i32\), the field is int32"):
        converter("array(i32)", "int32")


leaves = st.sampled_from(["i", "d", "n", "t", "3", "0", "2.5", "length(s)"])
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(
            inner, st.sampled_from(["+", "-", "*", "/", "%", "<", "==", "and", "or"]), inner
        ).map(lambda parts: f"({' '.join(parts)})"),
        inner.map("(not ({}))".format),
        inner.map("round({})".format),
        inner.map("-({})".format),
    ),
    max_leaves=12,
)
rows = st.tuples(
    st.integers(-(2**63), BIG) | st.none(),
    st.floats(allow_nan=False, allow_infinity=False) | st.none(),
    st.text() | st.none(),
    st.integers(-(2**31), 2**31 - 1) | st.none(),
    st.integers(-(2**63), BIG) | st.none(),
)


@given(trees, rows)
def test_every_expression_gives_a_value_of_its_type(text: str, row: tuple[Any, ...]) -> None:
    """No exception, no NaN, no infinity, nothing beyond 64 bits, whatever the values are."""
    expression = Language(FIELDS).compile(text)
    found: Any = expression.run(Event("I", "N", row))
    assert found is None or math.isfinite(found)
    assert found is None or type(found) is {"double": float}.get(expression.type, int)
    assert type(found) is not int or -(2**63) <= found <= BIG


mixed = st.recursive(
    st.sampled_from(["i", "d", "s", "n", "t", "'7'", "'2023-11-14'", "'yes'", "2.5", "null"]),
    lambda inner: st.one_of(
        st.tuples(
            inner,
            st.sampled_from(["+", "-", "*", "/", "%", "<", "==", "!=", "and", "or", "&"]),
            inner,
        ).map(lambda parts: f"({' '.join(parts)})"),
        inner.map("(not ({}))".format),
        inner.map("upper({})".format),
        inner.map("abs({})".format),
        inner.map("year({})".format),
    ),
    max_leaves=8,
)


@given(mixed, rows)
def test_values_of_any_type_work_together(text: str, row: tuple[Any, ...]) -> None:
    """Strings become what is needed; a value has the type that its expression says."""
    expression = Language(FIELDS).compile(text)
    found: Any = expression.run(Event("I", "N", row))
    kinds = {"double": float, "string": str}
    assert found is None or type(found) is kinds.get(expression.type, int)
    assert Language(FIELDS).compile(expression.text).run(Event("I", "N", row)) == found


@given(st.text(max_size=60))
def test_any_text_compiles_or_is_refused(text: str) -> None:
    try:
        Language(FIELDS).compile(text).run(Event("I", "N", ROW))
    except ExpressionError as error:
        assert str(error)
