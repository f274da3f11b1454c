"""What each function gives."""

from typing import Any

import pytest

from espha.languages.eel import Language
from espha.model.events import Event
from espha.model.project import Field

FIELDS = (Field("t", "date", True), Field("at", "stamp"), Field("n", "int32"), Field("s", "string"))
# 2024-02-29 13:05:09 UTC, a Thursday
EVENT = Event("I", "N", (1_709_211_909, 1_709_211_909_999_999, None, None))
LOW, HIGH = -(2**63), 2**63 - 1


def value(text: str) -> Any:
    return Language(FIELDS).compile(text).run(EVENT)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("round(2.675, 2)", 2.68),
        ("round(-2.5)", -3.0),
        ("round(1234.5, -2)", 1200.0),
        ("round(1250, -2)", 1300),
        ("round(-1250, -2)", -1300),
        ("round(1e300, 5)", 1e300),
        ("round(0.1, 400)", 0.1),
        (f"round({HIGH}, -1)", None),
        (f"abs(-{HIGH} - 1)", None),
        (f"-(-{HIGH} - 1)", None),
        ("power(2, 10)", 1024.0),
        ("power(-8, 1/3)", None),
        ("power(10, 400)", None),
        ("power(0, -1)", None),
        ("sqrt(-1)", None),
        ("sqrt(9)", 3.0),
        ("exp(1000)", None),
        ("log(0)", None),
        ("log(8, 2)", 3.0),
        ("log10(1000)", 3.0),
        ("sin(0) + cos(0) + tan(0)", 1.0),
        ("asin(2)", None),
        ("sign(-2.5)", -1),
        ("min(3, n, 1.5)", 1.5),
        ("max(3, n)", 3),
        ("max(n)", None),
        ("isblank('  ')", 1),
        ("isblank(s)", 1),
        ("isblank(0)", 0),
        ("isnumber('1e3')", 1),
        ("isnumber('1e')", 0),
        ("iserror(1 / 0)", 1),
        ("iserror(n / 1)", 0),
        ("iserror(1 / 1)", 0),
        ("match_string('abcde', 'a*c?e')", 1),
        ("match_string('abcde', 'a*c?')", 0),
        ("match_string('', '*')", 1),
        ("match_string('aab', '*ab')", 1),
        ("left('abc', 2)", "ab"),
        ("left('abc', -1)", ""),
        ("right('abc', 2)", "bc"),
        ("right('abc', 9)", "abc"),
        ("mid('abcde', 2, 3)", "bcd"),
        ("mid('abcde', 4)", "de"),
        ("mid('abc', 9, 1)", ""),
        ("instr('banana', 'an')", 2),
        ("instr('banana', 'an', 2)", 4),
        ("instr('banana', 'x')", 0),
        ("replace('banana', 'an', '-')", "b--a"),
        ("replace('banana', 'an', '-', 1)", "b-ana"),
        ("replace('aaa', '', 'x')", "aaa"),
        ("replace(repeat('a', 2000), 'a', repeat('b', 2000))", None),
        ("repeat('ab', 3)", "ababab"),
        ("repeat('ab', 600000)", None),
        ("repeat('', 9223372036854775807)", ""),
        ("edit_distance('kitten', 'sitting')", 3),
        ("edit_distance('', 'ab')", 2),
        ("edit_distance(repeat('a', 1001), 'a')", None),
        ("compare('a', 'B')", 1),
        ("compare('a', 'B', true)", -1),
        ("has_control_chars('a' & chr(7))", 1),
        ("has_control_chars('a b')", 0),
        ("ltrim(' a ') & '|' & rtrim(' a ')", "a | a"),
        ("string a, b parse('x,y,z', ',', a, b) & a & b", "3xy"),
        ("string a integer b parse('x', ', ', a, b) & a & isnull(b)", "1x1"),
        ("integer a parse('5:x', ':', a); a", 5),
        ("string a parse(s, ',', a)", None),
        ("string array a aparse('x,y,z', ',', a) & a.dim() & a.get(3)", "33z"),
        ("real array a aparse('1 2.5', ' ', a); a.get(1) + a.get(2)", 3.5),
        ("string array a aparse('', ',', a) & a.dim() & '[' & a.get(1) & ']'", "11[]"),
        ("proper('mary o\u2019neill-SMITH 3rd')", "Mary O\u2019Neill-Smith 3rd"),
        ("proper(\"it's\")", "It's"),
        ("sort('hello')", "ehllo"),
        ("sort('hello', false, true)", "olhe"),
        ("sort_words('first place First')", "First first place"),
        ("sort_words('b a b', true, true)", "a b"),
        ("soundex('Robert') & soundex('Rupert') & soundex('Tymczak')", "R163R163T522"),
        ("soundex('Ashcraft') & soundex('Pfister') & soundex('')", "A261P236"),
        ("determine_type('yes') & determine_type('-5') & determine_type('1.5')",
         "booleanintegerreal"),
        ("determine_type('2024-02-29') & determine_type('x')", "datestring"),
        ("trunc(-2.7)", -2.0),
        ("trunc(7)", 7),
        ("toboolean('TRUE') + toboolean(0)", 1),
        ("locale()", "en_US"),
        ("pattern('Ab-12')", "Aa-99"),
        ("reverse('abc')", "cba"),
        ("asc('A') & chr(66)", "65B"),
        ("asc('')", None),
        ("chr(55296)", None),
        ("tointeger(' -12.9 ')", -12),
        ("tointeger('9223372036854775808')", None),
        ("todouble('nan')", None),
        ("todouble('x')", None),
        ("tostring(1e20) & ' ' & tostring(0.1)", "1e+20 0.1"),
        ("tostring(t)", "2024-02-29 13:05:09"),
        ("year(t) * 10000 + month(t) * 100 + day(t)", 20240229),
        ("hour(at) * 10000 + minute(at) * 100 + second(at)", 130509),
        ("year(0)", 1970),
        ("year(-1)", 1969),
        ("year(253402300800)", None),
        ("datepart('year', t)", 2024),
        ("datepart(at, 'QUARTER')", 1),
        ("datepart('weekday', t)", 5),
        ("datepart('yearday', t)", 60),
        ("datepart('era', t)", None),
        ("formatdate(t, 'DD/MM/YY hh:mm:ss')", "29/02/24 13:05:09"),
        ("formatdate(t, 'DDDD DDD MMMM MMM YYYY')", "Thursday Thu February Feb 2024"),
        ("formatdate(t, '%Y-%m-%d %H:%M:%S')", "2024-02-29 13:05:09"),
        ("todate('2024-02-29 13:05:09') == t", 1),
        ("todate('29 Feb 2024', 'DD MMM YYYY') == todate('2024-02-29')", 1),
        ("todate('29.2.24', 'DD.MM.YY') == todate('2024-02-29')", 1),
        ("todate('2023-02-29')", None),
        ("todate('x')", None),
        ("todate(at) == t", 1),
        ("todate('02/29/2024') == todate('29-Feb-2024')", 1),
        ("formatdate('2024-02-29', 'MM/DD/YY ms')", "02/29/24 000"),
        ("year('2024-02-29') + month('02/29/2024')", 2026),
        ("datepart('2024-02-29', 'year')", None),
        ("upper(s)", None),
        ("formatdate(t, s)", None),
        ("typeof(n) & typeof(s) & typeof(t) & typeof(at) & typeof(null)",
         "integerstringdatetimestampnull"),
    ],
)  # fmt: skip
def test_function(text: str, expected: object) -> None:
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


def test_print_goes_to_the_log(caplog: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert value("print('x is ', n, 1.5); 5") == 5
    printed = capsys.readouterr()
    assert "x is null1.5" in printed.out + printed.err + caplog.text
