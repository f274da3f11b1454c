"""The language: statements, variables, functions of a window's own, refusals."""

from typing import Any

import pytest

from espha.languages.eel import ExpressionError, Initialize, Language, Udf
from espha.model.events import BadRecord, Event
from espha.model.project import Field

FIELDS = (
    Field("id", "int64", True),
    Field("d", "double"),
    Field("s", "string"),
    Field("n", "int32"),
    Field("date", "date"),
    Field("at", "stamp"),
    Field("Mixed", "int32"),
    Field("list", "array(i32)"),
    Field("end", "int32"),
)
STAMP = 1_700_000_000_500_000
ROW = (7, 2.5, "Ab", None, 1_700_000_000, STAMP, 1, (1, 2), 9)
EVENT = Event("U", "R", ROW)
CLOCK = 1_767_225_599_999  # 2025-12-31 23:59:59.999


def value(text: str, initialize: Initialize | None = None) -> Any:
    return Language(FIELDS, initialize).compile(text).run(EVENT, CLOCK)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("integer x\nx = 5\nreturn x + 1", 6, id="declare, assign, return"),
        pytest.param("integer x = 2, y = x * 3; y", 6, id="several names"),
        pytest.param("integer x; isnull(x)", 1, id="a new variable is null"),
        pytest.param("INTEGER X x = 5 Return X", 5, id="any case"),
        pytest.param("integer x x = 2.9", 2, id="assignment converts"),
        pytest.param("string x x = 2.0", "2", id="number to string"),
        pytest.param("double x x = ' 1e2 '", 100.0, id="string to number"),
        pytest.param("integer x x = 'abc' x", None, id="no number in the string"),
        pytest.param("boolean b = d > 2 b", 1, id="boolean"),
        pytest.param("if d > 2 then 'a' else 'b'", "a", id="if gives a value"),
        pytest.param("if d > 3 then 'a'", None, id="no branch is taken"),
        pytest.param("if n then 'a' else 'b'", "b", id="null is not true"),
        pytest.param("if (id == 7) 'a' else 'b'", "a", id="then may be left out"),
        pytest.param("if id = 7 then 1; else 2;", 1, id="= compares; semicolon before else"),
        pytest.param("if id<1 then 1 else if id<8 then 2 else 3", 2, id="else if"),
        pytest.param("if d > 3 then 1 else 2.5", 2.5, id="branches have one kind"),
        pytest.param("if d > 2 then 1 else 2.5", 1.0, id="and convert to it"),
        pytest.param("if d > 2 then return 1 else return 'x'", "1", id="string if one is"),
        pytest.param("5 if d > 3 then 6", 5, id="the last value that was computed"),
        pytest.param("5 if d > 2 then 6", 6, id="the last value, in a branch"),
        pytest.param("id * 2 print('x')", 14, id="print has no value"),
        pytest.param("if d > 2 then begin integer x x = 3 x + 1 end", 4, id="begin end"),
        pytest.param("integer i double t = 0 for i = 1 to 4 t = t + i t", 10.0, id="for"),
        pytest.param("integer i string t='' for i=5 to 1 step -2 t=t & i t", "531", id="down"),
        pytest.param("integer i = 0 while i < 10 i = i + 3 i", 12, id="while"),
        pytest.param("integer i for i = 1 to 9 begin if i = 4 then return i end 0", 4, id="leave"),
        pytest.param("integer i for i = n to 9 return 1; 0", 0, id="for with null: no round"),
        pytest.param("5 // five\n/* or\nsix */", 5, id="comments"),
        pytest.param("'it''s' & \"a\"\"b\" & 'c\\d'", "it'sa\"bc\\d", id="quotes"),
        pytest.param("id\n(d)", 2.5, id="a parenthesis on the next line is no call"),
        pytest.param("id -\n1", 6, id="an expression goes on"),
        pytest.param("mixed + MIXED", 2, id="field in any case"),
        pytest.param("`end` + 1", 10, id="field that is a keyword"),
        pytest.param("date > 5 and date in (1, date)", 1, id="field that is a type"),
        pytest.param("ESP_OPCODE", "u", id="opcode"),
        pytest.param("esp_opcode == 'U' and ESP_FLAGS == 'r'", 1, id="codes in any case"),
        pytest.param("'U' != ESP_OPCODE", 0, id="codes on the right"),
        pytest.param("esp_opcode in ('i', 'u')", 1, id="codes in a list"),
        pytest.param("n == null", 1, id="is null"),
        pytest.param("null <> d", 1, id="is not null"),
        pytest.param("list == null", 0, id="an array can be tested"),
        pytest.param("list", (1, 2), id="an array can be passed on"),
        pytest.param("n in (1, 2)", None, id="null in a list"),
        pytest.param("id in (1, n)", None, id="a null among what it may be"),
        pytest.param("id in (7, n)", 1, id="found beside a null"),
        pytest.param("'a' + 'b'", "ab", id="plus joins strings"),
        pytest.param("d & '/' & 3.0 & '/' & true", "2.5/3/1", id="join any kind"),
        pytest.param("date & ''", "2023-11-14 22:13:20", id="a date as text"),
        pytest.param("at & ''", "2023-11-14 22:13:20.500000", id="a stamp as text"),
        pytest.param("at - date", 500_000, id="stamp minus date"),
        pytest.param("at > date", 1, id="stamp and date compare"),
        pytest.param("year(today()) & month(today())", "202512", id="the clock of the event"),
        pytest.param("today()", 1_767_225_599, id="today in seconds"),
        pytest.param("list[2] + list.get(1) + list.dim()", 5, id="elements of a field"),
        pytest.param("list[3]", None, id="an element that there is not"),
        pytest.param("integer array a(3) a.set(2, 5.9); a", (None, 5, None), id="an array"),
        pytest.param("real array a a.dim(2); a.set(1, id) a.set(1, 8)", 7.0, id="the old element"),
        pytest.param("string array a(1) a.set(2, 'x'); a.dim(0) & a.dim()", "00", id="dim"),
        pytest.param("static integer array a(2); a.set(1, 4) return a.get(1)", 4, id="kept array"),
        pytest.param("string(20) x, y x = 'a' x & 'b'", "ab", id="a string with a size"),
        pytest.param("hidden integer x = 5; x", 5, id="hidden"),
        pytest.param("if isnull(n) then n = 0; return n + 1", 1, id="a field for this run"),
        pytest.param("d = d * 2 Mixed = 'x' return d & isnull(MIXED)", "51", id="its type"),
        pytest.param("integer i for i = 1 to 3 begin id = id + id end id", 56, id="in a loop"),
        pytest.param("for id = 1 to 3 d = d + id; d & '/' & id", "8.5/3", id="a field counts"),
        pytest.param("typeof(date + 1) & typeof(date - date) & typeof(1/1)", "dateintegerreal"),
    ],
)  # fmt: skip
def test_value(text: str, expected: object) -> None:
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = 5", "line 1, column 1: 'x' is not declared; write for example: integer x"),
        ("id = 5", "'id' is a field and cannot be assigned; use == to compare"),
        ("integer d", "'d' is a field of the input; take another name"),
        ("integer x string x 1", "declared twice, with different types"),
        ("integer x = 2.9", "gives no value"),
        ("private integer x = id x", "must not depend on anything"),
        ("1 +\n  foo", "line 2, column 3: there is no field 'foo'"),
        ("1 +\n  foo(1)", "line 2, column 3: there is no function 'foo'"),
        ("vareval('1')", "refused: it would run text"),
        ("rand(5)", "refused: its result would differ"),
        ("parameter(1)", "is for the functions in <udfs>"),
        ("r.compile('x')", "'r' is not a regex"),
        ("regex r r.open('x')", "a regex has no 'open'"),
        ("regex r r = 'x'", "'r' is a regex; use r.compile"),
        ("regex r r", "is a regex, not a value"),
        ("list == 1", r"cannot compare array\(i32\) with int"),
        ("list.set(1, 2)", "'list' is a field and cannot be changed"),
        ("d.get(1)", "'d' is not a regex; declare it"),
        ("string x(5)", "'x' is no array; write: string array x"),
        ("string array x(10001)", "at most 10000 elements"),
        ("string array x = 'a'", "string cannot become array"),
        ("parse(s, ',', s)", "puts its words into variables; declare: string word"),
        ("string w aparse(s, ',', w)", "aparse.. needs an array"),
        ("pushrow()", "refused: an expression gives one value"),
        ("dq_match('x')", "refused: the data quality functions of SAS are not run"),
        ("timestamp array x", "there is no timestamp array"),
        ("list + 1", "takes numbers"),
        ("list & 'x'", r"array\(i32\) cannot become string"),
        ("if list then 1", r"if takes numbers, not array\(i32\)"),
        ("year(list)", "takes a date, not array"),
        ("string t for t = 1 to 2 1", "counts with an integer or a double"),
        ("if 1 then list else 2", "no common type"),
        ("'abc", "a string ends with the quote"),
        ("begin 1", "ends too early"),
        ("if 1 { 2 }", "several statements are written as begin"),
        ("goto done done: 1", "there are no labels, and no goto: use while"),
        ("mid('a')", "mid.. takes 2 to 3 arguments, not 1"),
        ("max()", "max.. takes 1 or more arguments, not 0"),
    ],
)
def test_refused(text: str, reason: str) -> None:
    with pytest.raises(ExpressionError, match=reason):
        value(text)


def test_a_name_that_fits_two_fields_is_refused() -> None:
    language = Language([Field("Ab", "int32"), Field("aB", "int32")])
    assert language.compile("aB").run(Event("I", "N", (1, 2))) == 2
    with pytest.raises(ExpressionError, match="'AB' can be Ab or aB"):
        language.compile("AB")


def test_local_variables_begin_anew_and_private_ones_stay() -> None:
    language = Language(FIELDS)
    local = language.compile("integer x; if isnull(x) then x = 0; x = x + 1; x")
    kept = language.compile("private integer p = 10; p = p + 1; p")
    other = language.compile("static integer p; p = 1; p")
    assert [local.run(EVENT) for _ in range(3)] == [1, 1, 1]
    assert [kept.run(EVENT) for _ in range(3)] == [11, 12, 13]
    assert other.run(EVENT) == 1
    assert kept.run(EVENT) == 14


def test_an_initializer_declares_for_all_expressions() -> None:
    language = Language(FIELDS, Initialize(text="integer c = 1 + 1 string t = 'x' & c"))
    one, two = language.compile("c = c * 2; c"), language.compile("t & c")
    assert [one.run(EVENT), two.run(EVENT)] == [4, "x24"]
    assert [one.run(EVENT), two.run(EVENT)] == [8, "x28"]
    assert language.state() == (8, "x2")


def test_state_brings_variables_back() -> None:
    def make() -> tuple[Language, Any]:
        language = Language(FIELDS, Initialize(text="integer c = 0"))
        text = (
            "private regex r private string seen = ''; c = c + 1; r.compile('[a-z]');"
            "if r.findnext(s & s) then seen = seen & r.matchstart(); seen & '/' & c"
        )
        return language, language.compile(text)

    language, expression = make()
    expression.run(EVENT)
    state = language.state()
    after = [expression.run(EVENT) for _ in range(2)]
    other, again = make()
    assert other.state() != state
    other.restore(state)
    assert [again.run(EVENT) for _ in range(2)] == after
    assert other.state() == language.state()
    with pytest.raises(ValueError, match="variables"):
        Language(FIELDS).restore(state)


UDFS = Initialize(
    text="integer calls = 0",
    udfs=(
        Udf(name="square", type="int64", text="integer p; p = parameter(1); return p * p"),
        Udf(name="joined", type="string", text="calls = calls + 1; parameter(1) & parameter(2)"),
        Udf(name="howmany", type="int32", text="parameterCount()"),
        Udf(name="nth", type="string", text="parameter(parameter(1))"),
        Udf(name="named", type="string", text="s & joined(square(2), square(3))"),
        Udf(name="loop", type="int32", text="loop(1)"),
        Udf(name="small", type="int32", text="parameter(1)"),
    ),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("square(square(3))", 81),
        ("Square(2.9)", 4),
        ("square('5')", 25),
        ("joined('a', 1) & joined(2.5, 'b')", "a12.5b"),
        ("joined(1)", None),
        ("howmany() & howmany(1, n)", "02"),
        ("nth(2, 'x', 'y')", "x"),
        ("nth(n, 'x')", None),
        ("named() & calls", "Ab491"),
        ("small(3000000000)", None),
        ("square(n)", None),
    ],
)
def test_functions_of_the_window(text: str, expected: object) -> None:
    assert value(text, UDFS) == expected


@pytest.mark.parametrize(
    "text",
    [
        "while true 1",
        "integer i for i = 1 to 10 step 0 i",
        "integer i = 0 string x = 'ab' while true begin x = upper(x) & x end",
        "integer i while 1 i = edit_distance(repeat('ab', 400), repeat('ba', 400))",
        "regex r integer i r.compile('(a+)+b') while 1 i = r.findfirst(repeat('a', 500))",
    ],
)
def test_a_run_that_does_not_end_is_a_bad_record(text: str) -> None:
    with pytest.raises(BadRecord, match="takes more than 100000 steps"):
        value(text)


def test_functions_that_double_their_work_are_a_bad_record() -> None:
    body = "f{0}(1) + f{0}(1)".format
    udfs = [Udf(name=f"f{n}", type="int64", text=body(n - 1) if n else "1") for n in range(30)]
    language = Language(FIELDS, Initialize(udfs=tuple(udfs)))
    with pytest.raises(BadRecord, match="takes more than 100000 steps"):
        language.compile("f19(1)").run(EVENT)
    with pytest.raises(ExpressionError, match="functions call each other more than 20 deep"):
        Language(FIELDS, Initialize(udfs=tuple(udfs))).compile("f29(1)")


def test_the_steps_are_those_of_one_run() -> None:
    language = Language(FIELDS)
    expression = language.compile("integer i for i = 1 to 30000 begin end i")
    assert [expression.run(EVENT) for _ in range(3)] == [30_000] * 3


def test_an_initializer_sees_no_event() -> None:
    with pytest.raises(ExpressionError, match="there is no field 'id'"):
        Language(FIELDS, Initialize(text="integer x = id"))


def test_an_initializer_that_asks_for_the_time_runs_with_the_first_event() -> None:
    """It is the clock of the order record, so all engines find the same; it is in the state."""
    initialize = Initialize(
        text="date start start = now_() integer n n = 0",
        udfs=(Udf(name="now_", type="date", text="today()"),),
    )

    def language() -> tuple[Language, Any]:
        made = Language(FIELDS, initialize)
        return made, made.compile("n = n + 1 return (today() - start) & '/' & n")

    first, expression = language()
    assert first.keeps
    fresh = first.state()
    assert [expression.run(EVENT, clock) for clock in (5_000, 7_500)] == ["0/1", "2/2"]
    second, other = language()
    second.restore(first.state())
    assert other.run(EVENT, 9_000) == "4/3"
    second.restore(fresh)
    assert other.run(EVENT, 9_000) == "0/1"


def test_a_function_can_call_itself() -> None:
    """Each call has variables of its own."""
    udfs = (
        Udf(
            name="fact",
            type="int64",
            text="integer m m = parameter(1) if m < 2 then return 1 else return fact(m - 1) * m",
        ),
        Udf(name="even", type="int32", text="if parameter(1) < 1 then 1 else odd(parameter(1)-1)"),
        Udf(name="odd", type="int32", text="if parameter(1) < 1 then 0 else even(parameter(1)-1)"),
        Udf(name="down", type="int64", text="down(parameter(1) + 1)"),
    )
    language = Language(FIELDS, Initialize(udfs=udfs))
    assert language.compile("fact(10) & ' ' & fact(5)").run(EVENT) == "3628800 120"
    assert language.compile("even(12) & odd(7) & even(5)").run(EVENT) == "110"
    endless = language.compile("down(1)")
    for _ in range(2):
        with pytest.raises(BadRecord, match="calls itself too often"):
            endless.run(EVENT)
    assert language.compile("fact(10)").run(EVENT) == 3_628_800


def test_layout_comments_and_case_do_not_change_the_canonical_text() -> None:
    one = Language(FIELDS).compile(
        "Integer X; X = id + 1 /* more */ ; IF x = 3 THEN RETURN 'a' else 'b'"
    )
    two = Language(FIELDS).compile(
        "integer x x=(ID+1)\nif (x==3) begin return \"a\" end else begin 'b' end"
    )
    assert one.text == two.text
    assert Language(FIELDS).compile(one.text).text == one.text
