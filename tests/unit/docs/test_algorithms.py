"""The tables of the algorithms of calculate windows."""

import pytest

from espha.windows.calculate.declared import ALGORITHMS
from tools.docs.algorithms import with_algorithms

TEXT = "Before.\n\n" + "".join(f"## {name}\n\nWords.\n\n" for name in ALGORITHMS)


def test_each_section_ends_with_the_table_of_its_algorithm() -> None:
    page = with_algorithms(TEXT + "## Other\n\nNo table.\n")
    sections = {part.partition("\n")[0]: part for part in page.split("## ")[1:]}
    for name, algorithm in ALGORITHMS.items():
        for each in (algorithm.inputs, algorithm.parameters, algorithm.results):
            assert all(f"| `{one}` |" in sections[name] for one in each)
        assert sections[name].startswith(f"{name}\n\nWords.\n\n|")
    assert "|" not in sections["Other"]


def test_an_algorithm_without_a_section_is_named() -> None:
    with pytest.raises(ValueError, match="no section for Summary"):
        with_algorithms(TEXT.replace("## Summary", "## Summaries"))
