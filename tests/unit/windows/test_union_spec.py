"""How a union is written, and refused."""

import pytest

from espha.model import ModelError
from espha.windows.union.spec import UnionWindow
from support.tables import out, two


def test_a_union_has_the_schema_of_its_inputs() -> None:
    window = two("id*:int64,x:string", "id*:int64,x:string", out("union", "")).windows["q/out"]
    assert isinstance(window, UnionWindow)
    assert [field.name for field in window.fields] == ["id", "x"]
    assert window.strict


@pytest.mark.parametrize(
    ("right", "reason"),
    [
        ("id*:int64,x:int64", "q/l and q/r have different schemas: x:string and x:int64"),
        ("id*:int64,x*:string", "q/l and q/r have different schemas: x:string and x*:string"),
        ("id*:int64,y:string", "q/l and q/r have different schemas: x:string and y:string"),
        ("id*:int64", "q/l and q/r have different schemas: 2 and 1 fields"),
    ],
)
def test_schemas_must_agree(right: str, reason: str) -> None:
    with pytest.raises(ModelError, match="different schemas") as caught:
        two("id*:int64,x:string", right, out("union", ""))
    (problem,) = caught.value.problems
    assert (problem.element, problem.name, problem.reason) == ("window-union", "out", reason)


def test_strict_is_true_or_false() -> None:
    with pytest.raises(ModelError, match="attribute 'strict' is 'maybe'; use true or false"):
        two("id*:int64", "id*:int64", out("union", "", 'strict="maybe"'))
