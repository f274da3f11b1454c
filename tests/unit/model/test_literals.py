"""One grammar of numbers and dates for records and both languages."""

import math
import re
import time

import pytest
import re2  # type: ignore[import-untyped]
from hypothesis import example, given
from hypothesis import strategies as st

from espha.languages.eel.value_types import double_from as eel_double
from espha.languages.eel.value_types import integer_from as eel_integer
from espha.languages.functional.values import double, integer
from espha.model.literals import DATE, INT64, NUMBER, WHOLE, number_text, whole, whole_from
from espha.model.types import parse_text

LONG = 200_000


@pytest.mark.parametrize("grammar", [WHOLE, NUMBER, DATE])
@given(st.text("0123456789+-.eE: ", max_size=24))
def test_the_grammars_need_nothing_that_engines_read_differently(grammar: str, text: str) -> None:
    ours = re.fullmatch(grammar, text) is not None
    assert ours == (re2.compile(grammar).fullmatch(text) is not None)


@given(st.integers())
@example(INT64[0])
@example(INT64[1] + 1)
def test_whole_numbers_of_64_bits_read_back(value: int) -> None:
    read = whole_from(str(value))
    assert (None if read is None else whole(read)) == whole(value)
    assert whole_from(f"{'-' * (value < 0)}{'0' * 5_000}{abs(value)}") == read


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(1e15)
@example(-0.0)
def test_records_and_both_languages_read_the_same_double(value: float) -> None:
    text = number_text(value)
    assert float(text) == value
    assert parse_text("double", text) == eel_double(text) == double(text) == value


@given(st.text("0123456789+-.eE ", max_size=24))
def test_records_and_both_languages_agree_what_is_a_number(text: str) -> None:
    try:
        expected = parse_text("double", text)
    except ValueError:
        expected = None
    assert eel_double(text) == double(text) == expected


@pytest.mark.parametrize("text", ["7" * LONG + "x", "0" * LONG + "x", "1." + "2" * LONG + "x"])
def test_a_long_text_that_is_almost_a_number_is_refused_in_no_time(text: str) -> None:
    start = time.process_time()
    with pytest.raises(ValueError, match="not a number"):
        parse_text("double", text)
    assert eel_integer(text) is None
    assert integer(text) is None
    assert time.process_time() - start < 2  # the square of its length would take minutes


def test_many_zeros_are_no_problem() -> None:
    assert parse_text("int64", "0" * 5_000 + "7") == 7
    assert eel_integer("-" + "0" * 5_000 + "7") == -7
    assert integer("0" * 5_000 + "7") == 7
    assert math.isclose(eel_double("0." + "0" * 300 + "1") or 0, 1e-301)
