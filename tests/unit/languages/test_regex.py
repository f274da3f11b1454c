"""The engine of regular expressions that both languages use."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espha.languages.regex import Regex, RegexError


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(a", "'(a' is not a regular expression of RE2: missing ): (a, at character 1"),
        ("a)", "unexpected ): a)"),
        ("ba**", "bad repetition operator: **, at character 3"),
        ("*a", "no argument for repetition operator: *, at character 1"),
        ("a(?=a)", "invalid perl operator: (?=, at character 2; look-around and references to"),
        (r"(a)\1", r"invalid escape sequence: \1, at character 4"),
        (r"a\Z", r"invalid escape sequence: \Z"),
        (r"a\C", r"\C means a byte, at character 2"),
        ("[z-a]", "invalid character class range: z-a"),
        ("[a", "missing ]"),
        ("a{1001}", "invalid repetition size: {1001}, at character 2"),
        ("(a{200}){200}", "invalid repetition size"),
        (r"\pL{200}", "too large"),
        ("()" * 101, "101 groups; 100 are allowed"),
        ("a" * 2001, "more than 2000 characters"),
    ],
)
def test_refused_patterns(pattern: str, reason: str) -> None:
    with pytest.raises(RegexError, match=re.escape(reason)):
        Regex(pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("[[:alpha:]]+", "1ab", [(1, 3)]),
        ("a{300}", "a" * 301, [(0, 300)]),
        ("^*a", "ba", [(1, 2)]),
        ("(" * 30 + "a" + ")" * 30, "a", [(0, 1)]),
        ("(?i)É", "é", [(0, 1)]),  # letters match as Unicode folds them
        ("(?i)k", "\u212a", [(0, 1)]),
        (r"\w\d\s", "é٣\xa0", []),  # classes are ASCII
        (r"\s", "\v", []),  # and a vertical tab is not a blank
        ("$", "a\n", [(2, 2)]),  # the end of the text, not of a line
        (r"\B", "aé", [(2, 2)]),  # never between the bytes of a character
        ("", "é𝄞", [(0, 0), (1, 1), (2, 2)]),
        (".", "a\n\0𝄞", [(0, 1), (2, 3), (3, 4)]),
    ],
)
def test_what_a_pattern_matches(pattern: str, text: str, found: list[tuple[int, int]]) -> None:
    assert [spans[0] for spans in Regex(pattern).search_all(text)] == found


atoms = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", r"\d", "é", "a-"])
anchors = st.sampled_from([r"\b", "^", "$"])
quantifiers = st.sampled_from(["*", "+", "?", "{1,2}", "*?", "+?", "??", "{2}"])
# What an empty round of a repetition means is where engines differ; here none is empty.
consuming = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("({0[0]}|{0[1]})".format),
        st.tuples(inner, inner, quantifiers).map("{0[0]}(?:{0[1]}){0[2]}".format),
        inner.map("({})".format),
    ),
    max_leaves=6,
)
patterns = st.recursive(
    consuming | anchors | st.tuples(consuming, quantifiers).map("(?:{0[0]}){0[1]}".format),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("({0[0]}|{0[1]})".format),
    ),
    max_leaves=6,
)
texts = st.text("ab1 -\né𝄞", max_size=12)


@given(patterns, texts, st.integers(0, 12))
def test_it_finds_what_python_finds(pattern: str, text: str, start: int) -> None:
    start = min(start, len(text))
    python = re.compile(pattern.replace("$", r"\Z"), re.ASCII).search(text, start)
    expected = None if python is None else python.regs
    assert Regex(pattern).search(text, start) == expected


@given(patterns, texts)
def test_matches_follow_one_another(pattern: str, text: str) -> None:
    regex = Regex(pattern)
    found, start = [], 0
    while start <= len(text) and (spans := regex.search(text, start)) is not None:
        found.append(spans)
        begin, end = spans[0]
        start = max(end, begin + 1)
    assert list(regex.search_all(text)) == found


@given(st.text("ab1(|)*+?{},[]^-$.\\dwbBCQEé:?", max_size=30), texts)
def test_any_text_is_a_pattern_that_searches_or_is_refused(pattern: str, text: str) -> None:
    try:
        regex = Regex(pattern)
    except RegexError as error:
        assert str(error)
        return
    for spans in regex.search_all(text):
        assert len(spans) == regex.groups + 1
        assert all(span == (-1, -1) or 0 <= span[0] <= span[1] <= len(text) for span in spans)


def test_no_text_makes_a_search_slow() -> None:
    assert Regex("(a+)+b").search("a" * 1_000_000) is None
    assert Regex("(?:a|a)+$").search("ä" * 200_000 + "a") == ((200_000, 200_001),)
    assert len(list(Regex("a").search_all("ab" * 40_000))) == 40_000
    assert len(list(Regex("ä").search_all("äb" * 40_000))) == 40_000
