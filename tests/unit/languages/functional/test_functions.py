"""What each function gives."""

import re
from pathlib import Path
from typing import Any

import pytest

from espha.languages.functional import FUNCTIONS, Frame, FunctionError, Scope, Step
from espha.model.events import BadRecord

ROOT = Path(__file__).parents[4]
CLOCK = 1_700_000_000_250
"""2023-11-14 22:13:20.25 UTC, a Tuesday and the 318th day of the year."""

FIELDS = {
    "n": None,
    "i": 7,
    "d": 2.5,
    "s": "www.sas.com",
    "t": "true",
    "j": '{"a":{"b":[1,2.5,"x",null,true,{"c":"deep"}]},"q.r":"dotted","e":[]}',
    "x": '<r xmlns:p="urn:p"><a id="1">one</a><a id="2">two</a><p:b>pre<i>fix</i></p:b></r>',
    "l": "red, green,blue",
    "m": "first=john,last=doe",
    "array": (1, None, 3),
    "blob": b"hi",
}


def run(text: str, *steps: Step, expressions: dict[str, str] | None = None) -> Any:
    scope = Scope(list(FIELDS))
    for name, constant in (expressions or {}).items():
        scope.expression(name, constant)
    for step in steps:
        scope.add(step)
    compiled = scope.compiled(text)
    frame = Frame(scope.size, "q/w")
    frame.row, frame.clock, frame.token = tuple(FIELDS.values()), CLOCK, 3
    frame.source, frame.number, frame.counter = "in", 41, 40
    scope.run(frame)
    return compiled(frame)


CASES: list[tuple[str, Any]] = [
    ("in($i,5,7)", 1),
    ("in('x','a','b')", 0),
    ("in($n,1)", 0),
    ("increment($i)", 8),
    ("decrement(2.5)", 1.5),
    ("sqrt(9)", 3.0),
    ("sqrt(-1)", None),
    ("exp(0)", 1.0),
    ("exp(1000)", None),
    ("log(1)", 0.0),
    ("log(0)", None),
    ("log10(1000)", 3.0),
    ("pow(2,10)", 1024.0),
    ("power(2,-1)", 0.5),
    ("ceil(2.1)", 3),
    ("isNumber('2.5')", 1),
    ("isNumber($s)", 0),
    ("isNumber($n)", 0),
    ("length($s)", 11),
    ("SUM(1,2)", 3),
    ("base64EncodeBinary($blob)", "aGk="),
    ("base64DecodeBinary('aGk=')", b"hi"),
    ("base64DecodeBinary('?')", None),
    ("rgxFirstToken(',',$l)", "red"),
    ("rgxFirstToken(',',$l,2)", "blue"),
    ("listItem('a b c',' ',1)", "b"),
    ("listItem('a b c',1,' ')", "b"),
    ("listItem('a b c',' ',x)", None),
    ("sum($zz,1)", 1),
    ("isNull(#zz)", 1),
    ("concat(word,' ',$zz)", "word "),
    ("sum(1,2,)", 3),
    # conditions
    ("true()", 1),
    ("false()", 0),
    ("and(1,'any text')", 1),
    ("and(1,0,1)", 0),
    ("and(1,$n)", 0),
    ("or(0,'',false,$n)", 0),
    ("or(0,2)", 1),
    ("not('false')", 1),
    ("not($n)", 1),
    ("boolean('')", 0),
    ("boolean('0.0')", 0),
    ("boolean(' False ')", 0),
    ("boolean('x')", 1),
    ("boolean($array)", 1),
    ("equals('sas','SAS')", 0),
    ("equals(1,1.0)", 1),
    ("equals('1',1)", 1),
    ("equals('007','7')", 0),
    ("equals($n,$n)", 1),
    ("equals($n,'')", 0),
    ("ne(1,2)", 1),
    ("neq('a','a')", 0),
    ("gt('10','9')", 1),
    ("gt('b','a')", 1),
    ("gt(1,$n)", 0),
    ("lt($n,1)", 0),
    ("ge(2,2)", 1),
    ("gte(1,2)", 0),
    ("le(2,2)", 1),
    ("lte(3,2)", 0),
    ("lt(9007199254740993,9007199254740992.0)", 0),
    ("between(5,5,7)", 1),
    ("between(7,5,7)", 1),
    ("between(8,5,7)", 0),
    ("between($n,5,7)", 0),
    ("compare('a','b')", -1),
    ("compare(2,1)", 1),
    ("compare(2,'2')", 0),
    ("compare($n,'')", -1),
    ("if(gt($i,5),'big','small')", "big"),
    ("if($n,'yes')", None),
    ("ifNext(0,'a',1,'b',1,'c')", "b"),
    ("ifNext(0,'a',0,'b','rest')", "rest"),
    ("ifNext(0,'a')", None),
    ("ifNull($n,$n,'x')", "x"),
    ("switch($i,6,'six',7,'seven')", "seven"),
    ("switch($i,6,'six','other')", "other"),
    ("isNull($n)", 1),
    ("isNull('')", 0),
    ("isSet($n)", 0),
    ("isSet(0)", 1),
    # texts
    ("concat('a',1,2.0,$n,true)", "a12true"),
    ("concat($array)", "[1;;3]"),
    ("concat($blob)", "hi"),
    ("concatDelim('-','a',$n,'b')", "a--b"),
    ("string($n)", None),
    ("string(2.50)", "2.5"),
    ("string(1e300)", "1e+300"),
    ("string('a',1)", "a1"),
    ("substring($s,4,3)", "sas"),
    ("substring($s,4)", "sas.com"),
    ("substring($s,99)", ""),
    ("substring($s,-3,2)", "ww"),
    ("substring($s,1,-1)", ""),
    ("substring($n,1)", None),
    ("substringBefore($s,'.')", "www"),
    ("substringBefore($s,'-')", ""),
    ("substringAfter($s,'.')", "sas.com"),
    ("substringAfter($s,'-')", ""),
    ("toUpper('straße')", "STRASSE"),
    ("toLower('ABC')", "abc"),
    ("stringLength('héé')", 3),
    ("stringLength(12345)", 5),
    ("startsWith($s,'www')", 1),
    ("endsWith($s,'www')", 0),
    ("contains($s,'sas')", 1),
    ("contains($n,'sas')", None),
    ("replace($s,'w','v')", "vvv.sas.com"),
    ("replace($s,'','v')", "www.sas.com"),
    ("translate('bar','abc','AB')", "BAr"),
    ("translate('abcabc','c','')", "abab"),
    ("trim('  a b ')", "a b"),
    ("normalizeSpace('  a   b ')", "a b"),
    ("index('b','a','b','b')", 1),
    ("index('z','a')", -1),
    ("indexOf($s,'s')", 4),
    ("indexOf($s,'s',5)", 6),
    ("indexOf($s,'!')", -1),
    ("lastIndexOf($s,'.')", 7),
    ("quote('a')", '"a"'),
    ("urlEncode('a b/ü')", "a%20b%2F%C3%BC"),
    ("urlDecode('a%20b+%C3%BC')", "a b ü"),
    ("base64Encode('hello')", "aGVsbG8="),
    ("base64Encode($blob)", "aGk="),
    ("base64Decode('aGVsbG8=')", "hello"),
    ("base64Decode('!')", None),
    ("base64Decode('/w==')", None),
    (r"rgx('(\w+)\.(\w+)',$s)", "www.sas"),
    (r"rgx('(\w+)\.(\w+)',$s,2)", "sas"),
    (r"rgx('(\w+)\.(\w+)',$s,3)", None),
    ("rgx('(x)|w',$s,1)", None),
    ("rgx('nothing',$s)", None),
    ("rgxMatch('s.s',$s)", 1),
    ("rgxMatch('^sas',$s)", 0),
    ("rgxIndex('s.s',$s)", 4),
    ("rgxIndex('s.z',$s)", -1),
    ("rgxReplace('w','www','v')", "vww"),
    ("rgxReplaceAll('w','www','v')", "vvv"),
    (r"rgxReplaceAll('(\w+)\.(\w+)',$s,'$2.\1!')", "sas.www!.com"),
    ("rgxReplaceAll('w','w','$9')", ""),
    ("rgxToken('/','data/opt/sas',1)", "opt"),
    ("rgxToken('/','data/opt/sas',3)", None),
    ("rgxToken('x*','abc',0)", "abc"),
    ("rgxLastToken('/','data/opt/sas')", "sas"),
    ("rgxLastToken('/','data/opt/sas',1)", "opt"),
    # numbers
    ("sum(1,2,3)", 6),
    ("sum(1,2.5)", 3.5),
    ("sum(1,$n,'2')", 3),
    ("sum($n,'x')", None),
    ("sum(9223372036854775807,1)", None),
    ("sum(1e308,1e308)", None),
    ("product(2,3.5)", 7.0),
    ("product(9223372036854775807,2)", None),
    ("product(0,1e308,1e308)", 0.0),
    ("mean(1,2,$n)", 1.5),
    ("mean(1e308,1e308)", None),
    ("max(1,'9',3)", 9),
    ("min(4,$n,3.5)", 3.5),
    ("diff(10,3,2)", 5),
    ("difference(1,$n)", None),
    ("diff(-9223372036854775807,2)", None),
    ("quotient(10,4)", 2.5),
    ("quotient(10,0)", None),
    ("quotient(1e308,1e-10)", None),
    ("mod(7,3)", 1),
    ("mod(-7,3)", -1),
    ("mod(7.5,2)", 1.5),
    ("mod(7,0)", None),
    ("abs(-5)", 5),
    ("neg(2.5)", -2.5),
    ("ceiling(1.2)", 2),
    ("floor(-1.2)", -2),
    ("ceiling(1e300)", None),
    ("round(2.5)", 3),
    ("round(-2.5)", -3),
    ("round(0.49999999999999994)", 0),
    ("round(1.005,2)", 1.01),
    ("round(1e300)", 1e300),
    ("precision(10.126,2)", 10.13),
    ("precision(4503599627370495.5,15)", 4503599627370495.5),
    ("precision(5,2)", 5),
    ("integer('5.7')", 5),
    ("integer(-5.7)", -5),
    ("integer('five')", None),
    ("integer(1e30)", None),
    ("int(2.9)", 2),
    ("long('9223372036854775808')", None),
    ("double(3)", 3.0),
    ("number(' 12 ')", 12),
    ("number('1e3')", 1000.0),
    ("number('nan')", None),
    ("number('1_000')", None),
    ("number($array)", None),
    ("number(true)", 1),
    ("interval(85,60,'F',70,'D',80,'C',90,'B','A')", "B"),
    ("interval(95,60,'F',70,'D',80,'C',90,'B','A')", "A"),
    ("interval(95,60,'F')", None),
    ("interval($n,60,'F','A')", None),
    # documents and collections
    ("json($j,'a.b[0]')", 1),
    ("json($j,'$.a.b[5].c')", "deep"),
    ("json($j,'a.b[-1].c')", "deep"),
    ("json($j,'a.b[4]')", True),
    ("string(json($j,'a.b[4]'))", "true"),
    ("integer(json($j,'a.b[4]'))", 1),
    ("json($j,'a.b[3]')", None),
    ("json($j,'a.b[9]')", None),
    ("json($j,'a.z.y')", None),
    ("json($j,\"['q.r']\")", "dotted"),
    ("string(json($j,'a.b'))", '[1,2.5,"x",null,true,{"c":"deep"}]'),
    ("json('not json','a')", None),
    ("json($n,'a')", None),
    ("json('9223372036854775808')", 9223372036854775808.0),
    ("json('0')", 0),
    ("json('[NaN,1e999]','[0]')", None),
    ("json('[NaN,1e999]','[1]')", None),
    (r"json('\"\ud800\"')", None),
    ("jsonArraySize($j,'a.b')", 6),
    ("jsonArraySize($j,'e')", 0),
    ("jsonArraySize($j,'z')", 0),
    ("jsonArraySize('[1,2]')", 2),
    ("jsonArray($j,'a.b','|')", '1|2.5|x||true|{"c":"deep"}'),
    ("jsonarray('[1,2]')", "1,2"),
    ("xpath($x,'//a')", "one"),
    ("xpath($x,'//a/@id')", "1"),
    ("xpath($x,'//a',';')", "one;two"),
    ("xpath($x,'p:b')", "prefix"),
    ("xpath($x,'count(//a)')", 2.0),
    ("string(xpath($x,'count(//a)'))", "2"),
    ("xpath($x,'number(//a)')", None),
    ("xpath($x,'//a=\"two\"')", True),
    ("xpath($x,'//zzz')", None),
    ("xpath($x,'//zzz',',')", None),
    ("xpath($x,'//q:b')", None),
    ("xpath('<r','.')", None),
    ("xpath('<!DOCTYPE r [<!ENTITY e \"x\">]><r>&e;</r>','.')", None),
    ("xpath(xml($x,'//a[2]'),'@id')", "2"),
    ("string(xml($x,'//a[1]'))", '<a xmlns:p="urn:p" id="1">one</a>'),
    ("xml($x,'//zzz')", None),
    ("listItem($l,1)", "green"),
    ("listItem($l,3)", None),
    ("listItem($l,-1)", None),
    ("listItem('a;b',1,';')", "b"),
    ("listItem(json($j,'a.b'),2)", "x"),
    ("listItem($array,2)", 3),
    ("listSize($l)", 3),
    ("listSize('')", 0),
    ("listSize($n)", None),
    ("setContains($l,'blue')", 1),
    ("setContains($l,'pink')", 0),
    ("setContains('a;b','b',';')", 1),
    ("mapValue($m,'last')", "doe"),
    ("mapValue('a:1;b:2','b',';',':')", "2"),
    ("mapValue($m,'none')", None),
    ("mapValue(json($j),'q.r')", "dotted"),
    ("mapValues($m)", "john,doe"),
    # times
    ("timeCurrent()", 1_700_000_000),
    ("systemMilli()", CLOCK),
    ("systemMicro()", CLOCK * 1000),
    ("timeToday()", 1_699_920_000),
    ("timeString()", "2023-11-14 22:13:20"),
    ("timeString(0)", "1970-01-01 00:00:00"),
    ("timeString(0,'%d.%m.%y %T')", "01.01.70 00:00:00"),
    ("timeString($n)", None),
    ("timeString(1e18)", None),
    ("timeGmtString(-1)", "1969-12-31 23:59:59"),
    ("timeStamp()", "2023-11-14T22:13:20.250Z"),
    ("timeStamp(0)", "1970-01-01T00:00:00.000Z"),
    ("timeParse('07/12/2014 10:15:00','%m/%d/%Y %H:%M:%S')", 1_405_160_100),
    ("timeParse('2014-07-12T12:15:00+02:00')", 1_405_160_100),
    ("timeParse('1969-12-31 23:59:59.5','%F %H:%M:%S.%f')", -1),
    ("timeParse('then','%Y')", None),
    ("timeParse('then')", None),
    ("timeSecondOfDay()", 80_000),
    ("timeSecondOfDay(86399)", 86_399),
    ("timeMinuteOfDay()", 1_333),
    ("timeSecondOfHour()", 800),
    ("timeMinuteOfHour()", 13),
    ("timeMinute(-1)", 59),
    ("timeSecondOfMinute()", 20),
    ("timeSecond(61)", 1),
    ("timeGmtToLocal(61)", 61),
    ("timeLocalToGmt('61')", 61),
    ("timeString(0,'%c')", "Thu Jan  1 00:00:00 1970"),
    ("timeString(0,'%x %X %r %e %Z')", "01/01/70 00:00:00 12:00:00 AM  1 UTC"),
    ("timeParse('Thu Jan  1 00:01:01 1970','%c')", 61),
    ("timeHour()", 22),
    ("timeHourOfDay(3600)", 1),
    ("timeDayOfMonth()", 14),
    ("timeDayOfWeek()", 2),
    ("timeDayOfWeek(259200)", 0),
    ("timeDayOfYear()", 318),
    ("timeMonth()", 11),
    ("timeYear()", 2023),
    ("timeYear(1e18)", None),
    # the event
    ("eventNumber()", 41),
    ("eventCounter()", 40),
    ("input()", "in"),
    ("opcode()", "I"),
    ("flags()", "N"),
    ("outstr('a',1)", "a1"),
    ("outstr()", ""),
]


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[text for text, _ in CASES])
def test_function(text: str, expected: Any) -> None:
    found = run(text)
    assert found == expected
    assert type(found) is type(expected)


def test_every_function_has_a_case() -> None:
    named = {text.partition("(")[0] for text, _ in CASES} - {"SUM"}
    assert set(FUNCTIONS) - named == {"guid", "random"}


def test_every_function_is_documented() -> None:
    text = (ROOT / "docs/reference/models/functional-language.md").read_text(encoding="utf-8")
    assert [name for name in FUNCTIONS if not re.search(rf"`{name}[`(]", text)] == []


def test_random_is_the_same_for_the_same_event_and_new_for_the_next_call() -> None:
    first, second = run("concat(random(1,1000000),'/',random(1,1000000))").split("/")
    assert run("random(1,1000000)") == int(first)
    assert first != second


def test_random_keeps_to_its_limits() -> None:
    assert {run("random(5,5)")} == {5}
    assert run("random(6,5)") is None
    assert 2.0 <= run("random(2.0,3)") < 3.0
    assert 0.0 <= run("random()") < 1.0
    low, high = -(2**63), 2**63 - 1
    assert low <= run(f"random({low + 1},{high})") <= high


def test_a_guid_is_the_same_for_the_same_event() -> None:
    first = run("guid()")
    assert first == run("guid()")
    assert len(first) == 36
    assert first[14] == "4"
    assert run("equals(guid(),guid())") == 0


@pytest.mark.parametrize(
    ("step", "text", "expected"),
    [
        (Step("map", "p", "$m"), "mapValue(#p,'first')", "john"),
        (Step("map", "p", "'a:1;b:2'", ";", ":"), "#p/b", "2"),
        (Step("map", "p", "$x"), "xpath(#p,'a[2]')", "two"),
        (Step("map", "p", "$m"), "string(#p)", "first=john,last=doe"),
        (Step("map", "p", "$n"), "mapValue(#p,'first')", None),
        (Step("xml", "p", "$x"), "xpath(#p,'a[2]')", "two"),
        (Step("xml", "p", "$x"), "#p/a/@id", "1"),
        (Step("xml", "p", "'<'"), "xpath(#p,'a')", None),
        (Step("json", "p", "$j"), "json(#p,'a.b[2]')", "x"),
        (Step("json", "p", "$j"), "#p/a/b/2", "x"),
        (Step("json", "p", "$j"), "#p/a/b/x", None),
        (Step("string", "p", "product($i,2)"), "#p", "14"),
        (Step("list", "p", "$l"), "listItem(#p,2)", "blue"),
        (Step("list", "p", "'a|b'", "|"), "listSize(#p)", 2),
        (Step("list", "p", "$l"), "#p/0", "red"),
        (Step("list", "p", "$l"), "concat(#p)", "red,green,blue"),
        (Step("set", "p", "$l"), "setContains(#p,'green')", 1),
        (Step("set", "p", "$l"), "setContains(#p,'gre')", 0),
        (Step("set", "p", "$l"), "concat(#p)", "blue,green,red"),
        (Step("function", "p", "sum($i,1)"), "sum($p,1)", 9),
        (Step("function", "i", "sum($i,1)"), "$i", 8),
        (Step("string", "p", "'x'"), "$p", "x"),
    ],
)
def test_properties_and_earlier_functions(step: Step, text: str, expected: Any) -> None:
    assert run(text, step) == expected


def test_an_expression_is_a_constant_text() -> None:
    assert run("rgx(#domain,$s,1)", expressions={"domain": r"\.(\w+)\."}) == "sas"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the end stands where a function"),
        ("sum(1,2", "the end stands where a comma or a closing"),
        ("sum(1 2)", "column 7: 2 stands where a comma"),
        ("sum(,1)", "stands where a function"),
        ("sum(1))", "column 7: ) stands where the end"),
        ("'open", 'column 1: "\'open" is not understood'),
        ("1e999", "the number 1e999 is too large"),
        ("$", "'$' is not understood"),
        ("summ(1)", "there is no function summ(); do you mean 'sum'?"),
        ("quotient(1)", "quotient() takes 2 arguments or more (at most 200), not 1"),
        ("abs()", "abs() takes 1 argument, not 0"),
        ("true(1)", "true() takes 0 arguments, not 1"),
        ("substring('a')", "substring() takes 2 to 3 arguments, not 1"),
        (f"sum({','.join('1' * 201)})", "sum() takes 1 arguments or more (at most 200), not 201"),
        ("abs(" * 60 + "1" + ")" * 60, "calls are nested more than 50 deep"),
        (" " * 10_001, "10001 characters; at most 10000 are read"),
        ("rgx('(a',$s)", "is not a regular expression of RE2"),
        (r"rgx('(a)\1',$s)", "references to groups are not known"),
        ("rgx('(?=a)',$s)", "look-around"),
        (f"rgx('{'a' * 2001}',$s)", "more than 2000 characters"),
        ("xpath($x,'//[')", "'//[' is not an XPath"),
        ("json($j,'a[')", "'a[' is not a path into JSON; write a.b[0].c"),
        ("timeString(0,'%s')", "'%s' in the time format is not one of: "),
        ("timeParse('x','%Z')", "'%Z' cannot be read; write the zone as %z"),
        ("timeParse('x','%')", "'%' in the time format is not one of"),
    ],
)
def test_refused_before_any_event_comes(text: str, reason: str) -> None:
    with pytest.raises(FunctionError) as caught:
        run(text)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "rgx(concat('(a',''),$s)",
        "rgxMatch(concat('(a',''),$s)",
        "rgxReplaceAll(concat('(a',''),$s,'')",
        "rgxToken(concat('(a',''),$s,0)",
        "xpath($x,concat('//[',''))",
        "json($j,concat('a[',''))",
        "timeString(0,concat('%s',''))",
        "timeParse('x',concat('%Z',''))",
    ],
)
def test_what_is_wrong_only_with_the_data_gives_nothing(text: str) -> None:
    assert not run(text)


def test_a_text_cannot_grow_without_end() -> None:
    steps = [Step("function", "a0", "'0123456789'")]
    steps += [Step("function", f"a{n}", f"concat($a{n - 1},$a{n - 1})") for n in range(1, 20)]
    with pytest.raises(BadRecord, match="a function made a text of"):
        run("$a19", *steps)


def test_deep_json_is_refused_at_the_same_depth_everywhere() -> None:
    deep = [Step("function", "a", f"'{'[' * 100}{']' * 100}'")]
    deeper = [Step("function", "a", f"'{'[' * 101}{']' * 101}'")]
    assert run("jsonArraySize($a)", *deep) == 1
    assert run("json($a)", *deeper) is None
    deepest = [Step("function", "a", f"'{'[' * 4000}{']' * 4000}'")]
    assert run("json($a)", *deepest) is None


def test_regular_expressions_need_linear_time() -> None:
    """A backtracking engine would not come back from this one."""
    steps = [Step("function", "a", f"concat('{'a' * 5000}','!')")]
    assert run("rgxMatch('^(a+)+$',$a)", *steps) == 0
