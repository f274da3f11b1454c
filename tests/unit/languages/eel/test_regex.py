"""The regex object; the engine behind it has tests of its own."""

from typing import Any

import pytest

from espha.languages.eel import ExpressionError, Language
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


def test_searches_that_take_too_long_together_are_a_bad_record() -> None:
    with pytest.raises(BadRecord, match="takes more than 100000 steps"):
        value("r.compile('(a+)+b'); while 1 r.findfirst(s)", s="a" * 50_000)


def test_a_search_costs_what_its_text_and_its_pattern_are_long() -> None:
    text = "integer n = 0; r.compile('%s'); while n < %s begin r.findfirst(s) n = n + 1 end n"
    assert value(text % ("a+b", 100), s="a" * 50_000) == 100
    for costly in (text % ("a+b", 200), text % (r"\w{900}b", 100)):
        with pytest.raises(BadRecord, match="steps"):
            value(costly, s="a" * 50_000)


def test_a_pattern_that_no_text_makes_slow_finds_nothing_in_a_long_one() -> None:
    assert value("r.compile('(a+)+b'); r.findfirst(s)", s="a" * 50_000) == 0


def test_to_replace_costs_no_more_than_one_search_and_the_matches() -> None:
    found = value("r.compile('a'); r.replace(s, '')", s="ab" * 40_000)
    assert found == "b" * 40_000


def test_a_pattern_in_the_model_that_cannot_be_used_is_refused() -> None:
    reason = r"line 1, column 20: '\(a' is not a regular expression of RE2: missing \): \(a"
    with pytest.raises(ExpressionError, match=reason):
        value("r.compile('(a')")


def test_places_are_those_of_characters() -> None:
    found = "r.compile('(é)x'); r.findfirst(s); r.matchstart() & r.matchlength()"
    assert value(found, s="ää𝄞éx") == "42"
    assert value(found + " & r.substringstart(1)", s="ää𝄞éx") == "424"
    again = r"integer n = 0; r.compile('é'); while r.findnext(s) n = n * 10 + r.matchstart(); n"
    assert value(again, s="éaé𝄞é") == 135
