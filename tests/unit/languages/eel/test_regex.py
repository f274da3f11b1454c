"""The regex object and the engine behind it."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espha.languages.eel import ExpressionError, Language
from espha.languages.eel.nfa import Search, TooMuchWork
from espha.languages.eel.patterns import Pattern, PatternError
from espha.model.events import BadRecord, Event
from espha.model.project import Field

FIELDS = (Field("s", "string", True), Field("p", "string"))


def value(text: str, s: str | None = "abc-12 de-345", p: str | None = None) -> Any:
    return Language(FIELDS).compile(f"regex r; {text}").run(Event("I", "N", (s, p)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"r.compile('[a-z]+'); r.findfirst(s); r.matchstart() & '+' & r.matchlength()", "1+3"),
        (r"r.compile('\d+'); r.findfirst(s); r.findnext(s); r.matchstart()", 11),
        (r"r.compile('\d+'); r.findnext(s); r.matchstart()", 5),
        (r"integer n = 0; r.compile('\d'); while r.findnext(s) n = n + 1; n", 5),
        (r"integer n = 0; r.compile('x*'); while r.findnext('ab') n = n + 1; n", 3),
        (r"r.compile('(\w+)-(\d+)'); r.findfirst(s); r.substringstart(2) & r.substringlength(2)",
         "52"),
        (r"r.compile('(a)|(b)'); r.findfirst('b'); isnull(r.substringstart(1))", 1),
        (r"r.compile('(a)|(b)'); r.substringcount()", 2),
        (r"r.compile('(\w+)-(\d+)'); r.replace(s, '\2:\1')", "12:abc 345:de"),
        (r"r.compile('\d'); r.substitute(s, '')", "abc- de-"),
        (r"r.compile('(?i)ABC'); r.findfirst(s)", 1),
        (r"r.compile('^de'); r.findfirst(s)", 0),
        (r"r.compile(p)", 0),
        (r"r.findfirst(s)", None),
        (r"r.compile('a'); r.findfirst(p)", None),
        (r"r.compile('z'); r.findfirst(s); r.matchstart()", None),
    ],
)  # fmt: skip
def test_regex(text: str, expected: object) -> None:
    assert value(text) == expected


def test_a_pattern_from_the_data_that_cannot_be_used_compiles_to_0() -> None:
    assert value("r.compile(p)", p="(") == 0
    assert value("r.compile(p)", p="(a)") == 1


def test_a_search_that_takes_too_long_is_a_bad_record() -> None:
    with pytest.raises(BadRecord, match="takes too many steps"):
        value("r.compile('(a+)+b'); r.findfirst(s)", s="a" * 50_000)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(a", "a ( that is not closed at character 3"),
        ("a)", "a ) that closes nothing at character 2"),
        ("a**", "a repetition of a repetition"),
        ("*a", "a repetition of nothing"),
        ("^*", "a repetition of an anchor"),
        ("(?=a)", "not supported"),
        (r"(a)\1", r"\1, which is not supported"),
        ("[z-a]", "a range that is none"),
        ("[a", "no end"),
        ("[[:alpha:]]", "not supported"),
        ("a{300}", "a repetition that is not from 0 to 200"),
        ("(a{200}){200}", "too large"),
        ("(" * 30 + ")" * 30, "more than 20 groups"),
        ("a" * 501, "longer than 500"),
    ],
)
def test_refused_patterns(pattern: str, reason: str) -> None:
    with pytest.raises(ExpressionError, match=re.escape(reason)):
        value(f"r.compile('{pattern}')")


atoms = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", r"\d", r"\b", "^", "$", "é", "a-"])
quantifiers = st.sampled_from(["*", "+", "?", "{1,2}", "*?", "+?", "??", "{2}"])
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("({0[0]}|{0[1]})".format),
        st.tuples(inner, quantifiers).map("(?:{0[0]}){0[1]}".format),
        inner.map("({})".format),
    ),
    max_leaves=8,
)
texts = st.text("ab1 -\né", max_size=12)


@settings(deadline=None)  # a loaded machine is no failure
@given(patterns, texts)
def test_both_ways_to_search_find_what_python_finds(text: str, subject: str) -> None:
    pattern = Pattern(text)
    python = re.compile(text.replace("$", r"\Z"), re.ASCII).search(subject)
    spans, _ = pattern.search(subject)
    safe, _ = Search(pattern._program, pattern.groups, subject).first(0, 100_000)
    expected = None if python is None else python.span()
    assert (spans and spans[0]) == expected
    assert (safe and safe[0]) == expected


@settings(deadline=None)  # a loaded machine is no failure
@given(st.text("ab1(|)*+?{},[]^-$.\\dwbé:?", max_size=30), texts)
def test_any_text_is_a_pattern_that_searches_or_is_refused(text: str, subject: str) -> None:
    try:
        Pattern(text).search_all(subject)
    except (PatternError, TooMuchWork) as error:
        assert isinstance(error, TooMuchWork) or str(error)


def test_replacing_costs_no_more_than_one_search_of_the_text() -> None:
    found, _ = Pattern("a").search_all("ab" * 40_000)
    assert len(found) == 40_000
    slow, _ = Pattern("(?:a|a)+").search_all("ab" * 2_000)
    assert len(slow) == 2_000
