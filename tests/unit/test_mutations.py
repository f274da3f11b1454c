"""Each protection that `make mutations` takes out stands where it says, and has a test."""

import argparse
import ast

import pytest

from chaos.here import ROOT
from mutations.__main__ import chosen_of, numbers
from mutations.protections import MUTATIONS, Mutation

_LAST = len(MUTATIONS)


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


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [("1-", 1, _LAST), ("3-7", 3, 7), ("3-3", 3, 3), (f"{_LAST}-", _LAST, _LAST)],
)
def test_a_part_of_the_list_can_be_run(text: str, first: int, last: int) -> None:
    """A run that has ended early goes on with the number that it would have had next."""
    chosen = chosen_of("", numbers(text))
    assert list(chosen) == list(range(first, last + 1))
    assert list(chosen.values()) == list(MUTATIONS[first - 1 : last])


@pytest.mark.parametrize("text", ["", "7", "7-3", "0-3", "a-b", f"1-{_LAST + 1}", "9999-"])
def test_numbers_that_the_list_does_not_have_are_told(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"numbers from 1 to {_LAST}"):
        numbers(text)
