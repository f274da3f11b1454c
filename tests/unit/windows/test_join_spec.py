"""How a join is written: its sides, its output, its key; and what is refused."""

from typing import Any

import pytest

from espha.model import ModelError, Project, model_digest
from espha.windows.join.spec import JoinWindow
from support.tables import out, two

FACTS = "id*:int64,k:int64,x:double"
TABLE = "k*:int64,name:string"
ON_K = '<conditions><fields left="k" right="k"/></conditions>'


def project(
    type_: str = "leftouter",
    output: str = "",
    *,
    attributes: str = "",
    on: str = ON_K,
    left: str = FACTS,
    right: str = TABLE,
    schema: str = "",
) -> Project:
    join = f'{schema}<join type="{type_}" {attributes}>{on}</join>{output}'
    return two(left, right, out("join", join, 'index="pi_HASH"'))


def window(*arguments: Any, **named: Any) -> JoinWindow:
    result = project(*arguments, **named).windows["q/out"]
    assert isinstance(result, JoinWindow)
    return result


def shown(join: JoinWindow) -> str:
    return ",".join(f"{field.name}{'*' * field.key}:{field.type}" for field in join.fields)


def select(name: str, source: str) -> str:
    return f'<field-selection name="{name}" source="{source}"/>'


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("", "id*:int64,k:int64,x:double,r_k:int64,name:string"),
        (select("who", "r_name"), "id*:int64,who:string"),
        (select("who", "r_name") + select("ID", "l_id"), "who:string,ID*:int64"),
        (select("id", "r_name"), "l_id*:int64,id:string"),
        ("<left-select/>", "id*:int64,k:int64,x:double"),
        ('<left-select exclude="x k"/><right-select/>', "id*:int64,k:int64,name:string"),
        ("<left-select>x</left-select><right-select>*</right-select>",
         "id*:int64,x:double,k:int64,name:string"),
        ('<right-select include="name,k"/>', "id*:int64,name:string,k:int64"),
        ('<field-expr name="y" type="string">l_x &amp; r_name</field-expr>',
         "id*:int64,y:string"),
    ],
)  # fmt: skip
def test_fields_and_key_follow_from_the_output(output: str, expected: str) -> None:
    join = window("leftouter", f"<output>{output}</output>" if output else "")
    assert shown(join) == expected


KEYED = "k*:int64,z:string"
TWO_KEYS = "k*:int64,m*:int64,name:string"


@pytest.mark.parametrize(
    ("type_", "left", "right", "key"),
    [
        ("inner", FACTS, TABLE, "id"),
        ("leftouter", FACTS, TABLE, "id"),
        ("rightouter", FACTS, TABLE, "id,k"),
        ("fullouter", FACTS, TABLE, "id,k"),
        ("inner", TABLE, FACTS, "id"),
        ("rightouter", TABLE, FACTS, "id"),
        ("leftouter", TABLE, FACTS, "k,id"),
        ("inner", KEYED, TABLE, "k"),
        ("leftouter", KEYED, TABLE, "k"),
        ("rightouter", KEYED, TABLE, "k"),
        ("fullouter", KEYED, TABLE, "k"),
        ("inner", FACTS, TWO_KEYS, "id,k,m"),
        ("inner", TWO_KEYS, TABLE, "k,m"),
    ],
)
def test_the_key_is_what_identifies_a_result(type_: str, left: str, right: str, key: str) -> None:
    output = "<output><field-expr name='one' type='int32'>1</field-expr></output>"
    join = window(type_, output, left=left, right=right)
    assert ",".join(field.name for field in join.fields if field.key) == key


def test_a_key_may_be_selected_from_the_side_where_it_is_equal() -> None:
    output = f"<output>{select('k', 'r_k')}{select('n', 'r_name')}</output>"
    join = window("leftouter", output, left=KEYED)
    assert shown(join) == "k*:int64,n:string"
    assert join.columns[0].source == "l_k"


def test_a_schema_gives_the_order() -> None:
    schema = "<schema-string>name:string,id*:int64</schema-string>"
    join = window("leftouter", f"<output>{select('name', 'r_name')}</output>", schema=schema)
    assert shown(join) == "name:string,id*:int64"
    assert [column.source for column in join.columns] == ["r_name", "l_id"]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("id*:int64,name:int64", "schema and output differ in name"),
        ("id*:int64,name:string,x:double", "schema and output differ in x"),
        ("id*:int64", "schema and output differ in name"),
        ("id:int64,name*:string", "the key of the result has id; make it a key"),
    ],
)
def test_a_schema_must_fit_the_output(schema: str, reason: str) -> None:
    text = f"<schema-string>{schema}</schema-string>"
    assert refusal("leftouter", f"<output>{select('name', 'r_name')}</output>", schema=text) == (
        f"<window-join> out: {reason}"
    )


@pytest.mark.parametrize("attributes", ['left="r" right="l"', 'left="r"', 'right="l"'])
def test_the_join_may_name_its_sides(attributes: str) -> None:
    join = window("leftouter", attributes=attributes, left=TABLE, right=FACTS)
    assert (join.left, join.facts) == (1, "left")
    assert shown(join) == "id*:int64,k:int64,x:double,r_k:int64,name:string"


def refusal(*arguments: Any, **named: Any) -> str:
    with pytest.raises(ModelError) as caught:
        project(*arguments, **named)
    (problem,) = caught.value.problems
    assert problem.line >= 4
    return f"<{problem.element}> {problem.name}: {problem.reason}"


def test_refusals_say_what_to_do() -> None:
    assert "type 'left' is not one of: inner, leftouter" in refusal("left")
    assert "needs <conditions> with at least one" in refusal(on="")
    wrong = '<conditions><fields left="{}" right="{}"/></conditions>'
    assert "'y' is not a field of q/l" in refusal(on=wrong.format("y", "k"))
    assert "'y' is not a field of q/r" in refusal(on=wrong.format("k", "y"))
    assert "'k' is int64 and 'name' is string; never equal" in refusal(on=wrong.format("k", "name"))
    assert "left and right must be l and r" in refusal(attributes='left="x"')
    assert "left and right must be l and r" in refusal(attributes='left="l" right="l"')
    assert "attribute 'no-regenerates' is 'yes'" in refusal(attributes='no-regenerates="yes"')
    assert "<join-table>" in refusal(on=ON_K + "<join-table/>")


def test_old_names_of_elements_mean_the_same() -> None:
    output = "<left-select>x</left-select><right-select>name</right-select>"
    now = project(output=f"<output>{output}</output>")
    then = project(
        output=f"<output>{output.replace('-select', '-expr')}</output>",
        on=ON_K.replace("conditions", "join-conditions"),
    )
    assert model_digest(now) == model_digest(then)


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (select("n", "name"), "source 'name' is not one of: l_id, l_k, l_x, r_k, r_name"),
        (select("n", "r_x"), "source 'r_x' is not one of:"),
        (select("n", "r_name") * 2, "field n is selected twice; give one another name"),
        ("<left-select>y</left-select>", "'y' is not a field of q/l"),
        ('<right-select exclude="y"/>', "'y' is not a field of q/r"),
        ('<field-expr type="double">1</field-expr>', "needs a name and a type"),
        ('<field-expr name="y" type="number">1</field-expr>', "needs a name and a type"),
        ('<field-expr name="y" type="double">x</field-expr>', "x"),
        ('<field-expr name="y" type="double">l_x +</field-expr>', "the expression ends too early"),
        ("<field-plug/>", "not supported in <output>"),
    ],
)
def test_an_output_is_refused(output: str, reason: str) -> None:
    assert reason in refusal("leftouter", f"<output>{output}</output>")


def test_a_join_has_two_inputs_and_a_join() -> None:
    with pytest.raises(ModelError, match="needs a <join> with a type and conditions"):
        two(FACTS, TABLE, out("join", ""))


def test_the_spelling_of_an_expression_is_not_part_of_the_model() -> None:
    expression = '<output><field-expr name="y" type="double">{}</field-expr></output>'
    one, same, other = (
        model_digest(project("inner", expression.format(text)))
        for text in ("l_x*2", " l_x  * 2 ", "l_x * 3")
    )
    assert one == same != other
