"""Each protection that `make mutations` takes out stands where it says, and has a test."""

import ast

import pytest

from chaos.here import ROOT
from mutations.protections import MUTATIONS, Mutation


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: f"{each.invariant} {each.text}")
def test_a_protection_can_be_taken_out(mutation: Mutation) -> None:
    """The code is there, what is left can be compiled, and the test that must fail exists."""
    source = (ROOT / mutation.file).read_text()
    changed = mutation.applied_to(source)
    if mutation.file.endswith(".py"):
        ast.parse(changed)
    file, _, test = mutation.test.partition("::")
    assert f"\ndef {test}(" in (ROOT / file).read_text()


def test_every_invariant_has_one() -> None:
    assert {each.invariant for each in MUTATIONS} == {
        "edges",
        "live",
        "operator",
        "poison",
        *(f"I{one}" for one in range(1, 7)),
    }


def test_code_that_is_not_there_is_told() -> None:
    with pytest.raises(LookupError, match=r"transactions\.py: .* stands there 0 times"):
        MUTATIONS[0].applied_to("")
