"""The function language as such: any text, any values."""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from espha.languages.functional import FUNCTIONS, Frame, FunctionError, Scope, field_maker
from espha.languages.functional.parse import Call, FieldName, Literal, Node, PropertyName, parse
from espha.model.events import BadRecord
from espha.model.types import TYPES, checker

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,5}", fullmatch=True)
literals = st.one_of(
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
    st.text(max_size=8).filter(lambda text: not text.endswith("\\") and "\\'" not in text),
)
leaves = st.one_of(
    st.builds(Literal, literals), st.builds(FieldName, names), st.builds(PropertyName, names)
)
trees = st.recursive(
    leaves,
    lambda children: st.builds(
        Call,
        st.from_regex(r"[a-z]{1,6}", fullmatch=True),
        st.lists(children, max_size=3).map(tuple),
    ),
    max_leaves=10,
)


@settings(max_examples=300)
@given(trees)
def test_the_canonical_text_of_a_tree_is_read_as_the_same_tree(tree: Node) -> None:
    assert parse(str(tree)) == tree


@settings(max_examples=500)
@given(st.text(max_size=60) | st.text("abc$#(),'\"\\/0123456789.eE+-_ []@", max_size=60))
@example("rgx('\\'")
@example("(" * 9000)
@example(r"""f("it's\'")""")
@example(r"""f('it\'s \"\'\"')""")
@example(r"""f("'\"\'")""")
@example(r"f('\\')")
def test_any_text_is_read_or_refused_with_a_sentence(text: str) -> None:
    try:
        tree = parse(text)
    except FunctionError as error:
        assert str(error)
    else:
        assert str(parse(str(tree))) == str(tree)


values: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=12),
    st.sampled_from(
        ['{"a":[1,{"b":"c"}]}', "<a><b>1</b></a>", "a=1,b=2", "2020-01-01", "%Y", "-1"]
    ),
    st.binary(max_size=4),
    st.tuples(st.integers(-5, 5), st.none()),
)


@settings(max_examples=1500)
@given(
    st.sampled_from(sorted(FUNCTIONS)), st.lists(values, max_size=5), st.sampled_from(sorted(TYPES))
)
def test_every_function_gives_a_value_of_every_type_for_any_values(
    name: str, given_values: list[Any], type_: str
) -> None:
    """No exception but those two, and what leaves is what a field of that type can hold."""
    fields = [f"f{place}" for place in range(len(given_values))]
    scope = Scope(fields)
    text = f"{name}({','.join(f'${field}' for field in fields)})"
    try:
        run = scope.compiled(text)
    except FunctionError as error:
        assert "takes" in str(error)
        return
    frame = Frame(0)
    frame.row, frame.clock = tuple(given_values), 1_700_000_000_000
    try:
        found = field_maker(type_)(run(frame))
    except BadRecord:
        return
    assert checker(type_)(found) == found
