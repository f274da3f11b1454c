"""Each project of the corpus fares at least as well as the page says; skipped without a corpus."""

from functools import cache

import pytest

from conformance.corpus import Sample, corpus_folder, samples
from conformance.expected import read_expected
from conformance.page import ledger, page, worse
from conformance.suite import Verdict, judge

CORPUS = corpus_folder()
SAMPLES = [] if CORPUS is None else samples(CORPUS)
pytestmark = pytest.mark.skipif(
    CORPUS is None, reason="there is no corpus in ../shared/corpus, and ESPHA_CORPUS names none"
)


@cache
def verdict(name: str) -> Verdict:
    sample = next(sample for sample in SAMPLES if sample.name == name)
    return judge(sample, read_expected().get(name))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_project_is_not_worse_than_the_page_says(sample: Sample) -> None:
    said = ledger()
    assert sample.name in said, "the page lacks it: make conformance"
    assert not worse(verdict(sample.name), said[sample.name])


def test_what_is_expected_belongs_to_a_project() -> None:
    assert read_expected().keys() <= {sample.name for sample in SAMPLES}


def test_the_page_shows_every_project() -> None:
    text = page([verdict(sample.name) for sample in SAMPLES])
    assert [name for name in ledger() if f"| {name} |" not in text] == []
