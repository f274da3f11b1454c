"""What holds for every expression and every row."""

import math
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from espha.languages.eel import ExpressionError, Initialize, Language, Udf
from espha.languages.eel.functions import CASTS, FUNCTIONS
from espha.model.events import BadRecord, Event
from espha.model.project import Field

LOW, HIGH = -(2**63), 2**63 - 1
FIELDS = (
    Field("i", "int64", True),
    Field("d", "double"),
    Field("s", "string"),
    Field("t", "date"),
    Field("at", "stamp"),
    Field("list", "array(dbl)"),
)
OWN = Initialize(
    text="integer c = 0", udfs=(Udf(name="own", type="double", text="c = c + 1; parameter(1)"),)
)
PYTHON = {"int": int, "date": int, "stamp": int, "double": float, "string": str}
EDGES = [0, 1, -1, HIGH, LOW, 2**53 + 1, 253_402_300_800, -62_135_596_801]

integers = st.sampled_from(EDGES) | st.integers(LOW, HIGH) | st.none()
doubles = (
    st.sampled_from([0.0, -0.0, 5e-324, 1.7976931348623157e308, 0.49999999999999994, 1e15])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.none()
)
strings = st.sampled_from(["", " ", "1e3", "2024-02-29", "year", "ß", "a" * 3000]) | st.text()
rows = st.tuples(
    integers, doubles, strings | st.none(), integers, integers, st.just((1.0, None)) | st.none()
)


def fits(value: Any, kind: str) -> bool:
    """Whether a value may stand in a model as one of this kind."""
    if value is None:
        return True
    if type(value) is not PYTHON.get(kind, tuple):
        return False
    if kind == "double":
        return math.isfinite(cast(float, value))
    return kind in {"string", "array(dbl)"} or LOW <= cast(int, value) <= HIGH


WORDS = r"""
i d s t at list x y r c 1 2.5 0 'a' "b" null true ( ) ( ) , , = == != < >= + - * / % & . ; and or
not in if then else begin end return while for to step integer string double regex private public
date // /* */ ` abs( max( mid( own( parameter(1) r.compile( r.findfirst( ESP_OPCODE today()
iserror( 9223372036854775807 1e308 ' " é
"""
words = st.sampled_from([*WORDS.split(), "\n"])


@settings(max_examples=400)
@given(st.lists(words, max_size=40).map(" ".join).map(lambda text: text[:200]), rows)
@example("integer i2 = 0 while true i2 = i2 + 1", (1, None, None, None, None, None))
def test_any_words_are_refused_or_give_a_value_of_their_kind(text: str, row: Any) -> None:
    language = Language(FIELDS, OWN)
    try:
        expression = language.compile(text)
    except ExpressionError as error:
        assert str(error)
        return
    again = Language(FIELDS, OWN).compile(expression.text)
    assert (again.text, again.type) == (expression.text, expression.type)
    try:
        assert fits(expression.run(Event("I", "N", row)), expression.type)
    except BadRecord as error:
        assert "steps" in error.reason


@given(st.text(max_size=200))
def test_any_text_compiles_or_is_refused(text: str) -> None:
    try:
        Language(FIELDS).compile(text)
    except ExpressionError as error:
        assert str(error)


leaves = st.sampled_from(["i", "d", "s", "t", "at", "c", "3", "0", "2.5", "'a b'", "null"])
names = st.sampled_from([*FUNCTIONS, *CASTS, "own", "iserror", "datepart", "typeof"])
operators = st.sampled_from(["+", "-", "*", "/", "%", "<", "==", "!=", "and", "or", "&", "in"])
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(names, st.lists(inner, min_size=1, max_size=4)).map(
            lambda parts: f"{parts[0]}({', '.join(parts[1])})"
        ),
        st.tuples(inner, operators, inner).map("({0[0]} {0[1]} ({0[2]}))".format),
        inner.map("(not {})".format),
        inner.map("-({})".format),
    ),
    max_leaves=10,
)


@pytest.mark.parametrize("name", sorted([*FUNCTIONS, *CASTS]))
@settings(max_examples=25)
@given(st.data())
def test_every_function_is_total(name: str, data: st.DataObject) -> None:
    """Whatever the values are: no exception, no NaN, no infinity, nothing beyond 64 bits."""
    takes = FUNCTIONS[name].takes if name in FUNCTIONS else "v"
    fewest = FUNCTIONS[name].needed if name in FUNCTIONS else 1
    fields = {"n": ["i", "d", "t"], "s": ["s"], "d": ["t", "at", "i"], "v": ["i", "d", "s", "at"]}
    count = data.draw(st.integers(fewest, len(takes)))
    given_ = [data.draw(st.sampled_from(fields[letter])) for letter in takes[:count]]
    expression = Language(FIELDS).compile(f"{name}({', '.join(given_)})")
    try:
        assert fits(expression.run(Event("I", "N", data.draw(rows))), expression.type)
    except BadRecord as error:
        assert "steps" in error.reason


@settings(max_examples=300)
@given(trees, rows)
def test_every_tree_is_refused_or_total_and_reads_back(text: str, row: Any) -> None:
    language = Language(FIELDS, OWN)
    try:
        expression = language.compile(text)
    except ExpressionError as error:
        assert str(error)
        return
    found = expression.run(Event("I", "N", row))
    assert fits(found, expression.type)
    again = Language(FIELDS, OWN).compile(expression.text)
    assert again.text == expression.text
    assert again.run(Event("I", "N", row)) == found


@given(integers, integers)
def test_whole_numbers_are_exact_up_to_64_bits(one: int | None, two: int | None) -> None:
    language = Language([Field("a", "int64", True), Field("b", "int64")])
    event = Event("I", "N", (one, two))
    for text, exact in [("a + b", "__add__"), ("a - b", "__sub__"), ("a * b", "__mul__")]:
        found = language.compile(text).run(event)
        if one is None or two is None:
            assert found is None
        else:
            wanted = getattr(one, exact)(two)
            assert found == (wanted if LOW <= wanted <= HIGH else None)
