"""How an aggregate is written: calls are found in expressions; and what is refused."""

import pytest

from espha.model import ModelError, Project, model_digest
from espha.windows.aggregate.functions import FUNCTIONS, Call
from espha.windows.aggregate.spec import AggregateWindow
from support.models import behind
from support.tables import out

SCHEMA = "id*:int64,g:string,x:int64,d:double,t:date,s:string,a:array(i32)"


def project(output: str, schema: str = "g*:string,y:double") -> Project:
    body = f"<schema-string>{schema}</schema-string>{output}"
    return behind(SCHEMA, out("aggregate", body))


def window(*texts: str, type_: str = "double") -> AggregateWindow:
    schema = ",".join(["g*:string", *(f"y{n}:{type_}" for n in range(len(texts)))])
    expressions = "".join(f"<field-expr>{text}</field-expr>" for text in texts)
    result = project(f"<output>{expressions}</output>", schema).windows["q/out"]
    assert isinstance(result, AggregateWindow)
    return result


def test_calls_are_taken_out_of_expressions() -> None:
    aggregate = window("ESP_aSum(x*d) / esp_acount(x)", "2 - ESP_aSum( x * d )")
    assert aggregate.calls == (
        Call(function="sum", arguments=("(x * d)",), kinds=("double",), type="double"),
        Call(function="count", arguments=("x",), kinds=("int",), type="int64"),
    )
    assert aggregate.expressions == ("(`#0` / `#1`)", "(2 - `#0`)")


def test_a_group_may_have_nothing_but_its_key() -> None:
    aggregate = project("", "g*:string").windows["q/out"]
    assert isinstance(aggregate, AggregateWindow)
    assert aggregate.expressions == ()


@pytest.mark.parametrize(
    ("text", "constant", "seconds", "time"),
    [
        ("ESP_aLag(s, 2)", 2, None, ""),
        ("ESP_aLagTimed(s, 2, 10)", 2, 10, ""),
        ("ESP_aLagTimed(s, 2, t, 10)", 2, 10, "t"),
        ("ESP_aLastTimed(s, 1.5)", None, 1.5, ""),
        ("ESP_aCat(s)", ",", None, ""),
        ("ESP_aCat(s, '|')", "|", None, ""),
        ("ESP_aCatTimed(s, 60)", ",", 60, ""),
        ("ESP_aCatTimed(s, '|', 60)", "|", 60, ""),
        ("ESP_aCatTimed(s, t, 60)", ",", 60, "t"),
        ("ESP_aCatTimed(s, '|', t, 60)", "|", 60, "t"),
    ],
)
def test_constants_and_times_of_calls(
    text: str, constant: int | str | None, seconds: float | None, time: str
) -> None:
    (call,) = window(text, type_="string").calls
    assert (call.constant, call.seconds, call.time) == (constant, seconds, time)
    assert (call.arguments, call.type) == (("s",), "string")


def test_an_empty_expression_is_null() -> None:
    assert window("", type_="string").expressions == ("null",)


def test_an_array_can_be_passed_on() -> None:
    (call,) = window("ESP_aLast(a)", type_="array(i32)").calls
    assert call.type == "array(i32)"


def refusal(text: str) -> str:
    with pytest.raises(ModelError) as caught:
        project(f"<output>\n<field-expr>{text}</field-expr></output>")
    (problem,) = caught.value.problems
    assert (problem.element, problem.line) == ("field-expr", 5)
    return problem.reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ESP_aSum(s)", "ESP_aSum() cannot take s, which is string"),
        ("ESP_aMin(a)", "ESP_aMin() cannot take a, which is array(i32)"),
        ("ESP_aSum(nothing)", "nothing"),
        ("ESP_aSum()", "ESP_aSum() takes one argument"),
        ("ESP_aSum(x, d)", "ESP_aSum() takes one argument"),
        ("ESP_aCount(x, d)", "ESP_aCount() takes at most one argument"),
        ("ESP_aWAve(x)", "ESP_aWAve() takes two arguments"),
        ("ESP_aSum(null)", "null cannot be aggregated"),
        ("ESP_aSum(ESP_aMax(x))", "an aggregate function is inside another one"),
        ("ESP_aGUID()", "ESP_aGUID() is random, so engines would differ"),
        ("ESP_aMedian(x)", "esp_amedian() is not one of: ESP_aSum, ESP_aAve"),
        ("ESP_aLag(x)", "esp_alag() takes a whole number from 0 to 10000 after the field"),
        ("ESP_aLag(x, -1)", "takes a whole number from 0 to 10000"),
        ("ESP_aLag(x, 10001)", "takes a whole number from 0 to 10000"),
        ("ESP_aLag(x, 1.5)", "takes a whole number from 0 to 10000"),
        ("ESP_aCat(x, d)", "esp_acat() takes a text after the field"),
        ("ESP_aCountOpcodes(9)", "takes 1 (insert), 2 (update) or 3 (delete)"),
        ("ESP_aCountOpcodesTimed(1, 9)", "esp_acountopcodestimed() is not one of"),
        ("ESP_aSumTimed(x)", "esp_asumtimed() ends with a number of seconds greater than 0"),
        ("ESP_aSumTimed(x, 0)", "ends with a number of seconds greater than 0"),
        ("ESP_aSumTimed(x, s, 5)", "s is string; a time must be a date, a stamp or seconds"),
        ("ESP_aSum(x) +", "the expression ends too early"),
        ("`#0` + ESP_aSum(x)", "'#0' is not a field"),
        ("USER_uSum_add(2)", "user_usum_add() is an aggregate function in C++, which is not run"),
    ],
)
def test_a_call_is_refused_with_its_line(text: str, reason: str) -> None:
    found = refusal(text)
    assert found.startswith("field 'y': ")
    assert reason in found


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("", "needs an <output> with a <field-expr> for each field that is not a key"),
        ("<output/>", "has 0 <field-expr> for 1 fields (y)"),
        (
            '<output><field-plug function="f" plugin="p" additive="true"/></output>',
            "C++ code is not run (f true); write <field-expr> with an ESP_a function, such as",
        ),
        ("<output><field-selection/></output>", "not supported in <output>"),
    ],
)
def test_an_output_is_refused(output: str, reason: str) -> None:
    with pytest.raises(ModelError) as caught:
        project(output)
    assert any(reason in problem.reason for problem in caught.value.problems)


@pytest.mark.parametrize("schema", ["group*:string,y:double", "g*:int64,y:double"])
def test_the_key_comes_from_the_input(schema: str) -> None:
    with pytest.raises(ModelError, match=r"field 'group' is not in the input|in the input string"):
        project("<output><field-expr>ESP_aSum(x)</field-expr></output>", schema)


def test_all_functions_are_known_in_any_case() -> None:
    for name, signature in FUNCTIONS.items():
        fields = ", ".join(["x"] * max(signature.least, min(signature.most, 1)))
        constant = {"lag": ", 1", "separator": ", '-'", "opcode": "1", "": ""}[signature.constant]
        text = f"esp_A{name.upper()}({fields}{constant})"
        (call,) = window(text, type_="string").calls
        assert call.function == name


def test_the_spelling_of_an_expression_is_not_part_of_the_model() -> None:
    one, same, other = (
        model_digest(project(f"<output><field-expr>{text}</field-expr></output>"))
        for text in ("ESP_aSum(x*2)", " esp_asum( x  * 2 )", "ESP_aSum(x*3)")
    )
    assert one == same != other
