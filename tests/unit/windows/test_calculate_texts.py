"""Tokenization and TFIDF."""

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from espha.windows.calculate.words import TfIdf, Tokenization
from support.calculate import Run

ALL = ["docIdOut", "tokenIdOut", "wordOut", "startPosOut", "endPosOut"]


def tokens(text: str | None) -> list[str]:
    return [row[0] for row in Tokenization({}, ["wordOut"]).observe((1, text))]


def test_words_numbers_and_signs_are_tokens() -> None:
    assert tokens("What's up? 50.4% of 1,000 (#More) … a_b") == [
        "What's", "up", "?", "50.4", "%", "of", "1,000", "(", "#", "More", ")", "…", "a", "_", "b",
    ]  # fmt: skip
    assert tokens("Größe: 12m² 日本") == ["Größe", ":", "12", "m²", "日本"]
    assert tokens(" \t") == tokens("") == tokens(None) == []


def test_tokens_are_counted_from_1_and_their_characters_from_0() -> None:
    assert list(map(list, Tokenization({}, ALL).observe((7, "The end.")))) == [
        [7, 1, "The", 0, 2],
        [7, 2, "end", 4, 6],
        [7, 3, ".", 7, 7],
    ]


@given(st.text())
def test_no_character_but_blanks_is_lost(text: str) -> None:
    rows = Tokenization({}, ["wordOut", "startPosOut", "endPosOut"]).observe((1, text))
    covered = {place for _, first, last in rows for place in range(first, last + 1)}
    assert all(word == text[first : last + 1] for word, first, last in rows)
    assert sum(len(word) for word, _, _ in rows) == len(covered)
    assert all(char.isspace() for place, char in enumerate(text) if place not in covered)


def test_tokens_are_rows_of_their_own() -> None:
    schema = "id*:int64,n*:int64,w:string,g:string"
    outputs = {"docIdOut": "id", "tokenIdOut": "n", "wordOut": "w"}
    run = Run("Tokenization", schema=schema, outputs=outputs)
    assert run.rows(None, None, "a b", "kept") == [
        {"n": 1, "w": "a", "g": "kept"},
        {"n": 2, "w": "b", "g": "kept"},
    ]
    assert not run.project.windows["q/out"].upserts  # type: ignore[attr-defined]


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abc"))))
def test_weights_are_those_of_what_has_been_so_far(given_: list[tuple[int, str]]) -> None:
    run = TfIdf({}, ["tfOut", "idfOut", "tfidfOut"])
    documents: list[list[str]] = []
    last: Any = None
    for document, token in given_:
        if document != last:
            documents.append([])
        last = document
        documents[-1].append(token)
        ((found),) = run.observe((document, None, token))
        count = documents[-1].count(token)
        rarity = math.log(len(documents) / sum(token in each for each in documents))
        assert found == [count, rarity, count * rarity]


def test_no_token_has_no_weight_but_can_begin_a_document() -> None:
    run = TfIdf({}, ["tfOut", "idfOut"])
    assert run.observe((1, 1, None)) == ([None, None],)
    assert run.observe((2, 1, "a")) == ([1, math.log(2)],)
