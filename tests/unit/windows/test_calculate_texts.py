"""Tokenization, TFIDF and TextVectorization."""

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espha.model import ModelError
from espha.reader import read_project
from espha.windows.calculate.vectors import TextVectorization
from espha.windows.calculate.words import TfIdf, Tokenization
from support.calculate import Run, block
from support.models import source, xml

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


VECTORS = "abc,1,2,3\r\nabcd,5,6,7,8\nefg,10.0,x,12.5\nA,4\na,9\n\n ,7"


def vectors(whole: int = 0, **changes: str) -> TextVectorization:
    lists = {"startList": "", "stopList": "", "wordVecDelimiter": "COMMA"}
    return TextVectorization(
        {"wordVec": VECTORS, "outputDocVec": whole, **lists, **changes}, ["vectorOut"]
    )


def vector(run: TextVectorization, word: str | None, document: int = 1) -> Any:
    ((found,),) = run.observe((document, word))
    return found


def test_a_word_has_the_vector_of_its_line_whatever_its_capitals() -> None:
    run = vectors()
    assert vector(run, "abcd") == (5.0, 6.0, 7.0, 8.0)
    assert vector(run, "AbC") == (1.0, 2.0, 3.0)
    assert vector(run, "efg") == (10.0, None, 12.5)
    assert (vector(run, "a"), vector(run, "A")) == ((9.0,), (4.0,))  # as written comes first
    assert vector(run, "unknown") is vector(run, None) is vector(run, "") is None


@pytest.mark.parametrize(("delimiter", "sign"), [("TAB", "\t"), ("SPACE", "  ")])
def test_other_delimiters(delimiter: str, sign: str) -> None:
    text = f"a b{sign}1{sign}2" if delimiter == "TAB" else f"b{sign}1{sign}2"
    run = vectors(wordVec=text, wordVecDelimiter=delimiter)
    assert vector(run, "a b" if delimiter == "TAB" else "b") == (1.0, 2.0)


def test_lists_say_which_words_count() -> None:
    assert vector(vectors(stopList="x\nABC"), "abc") is None
    some = vectors(startList="abc\n")
    assert (vector(some, "ABC"), vector(some, "abcd")) == ((1.0, 2.0, 3.0), None)


def test_a_document_is_the_mean_of_its_words_so_far() -> None:
    run = vectors(whole=1)
    assert vector(run, "abc") == (1.0, 2.0, 3.0)
    assert vector(run, "unknown") == (1.0, 2.0, 3.0)
    assert vector(run, "efg") == (5.5, 2.0, 7.75)
    assert vector(run, "unknown", document=2) == ()
    assert vector(run, "abcd", document=2) == (5.0, 6.0, 7.0, 8.0)


def test_one_field_takes_the_first_of_a_list() -> None:
    outputs = {"vectorOut": "v"}
    run = Run(
        "TextVectorization", schema="id*:int64,v:double", outputs=outputs, wordVec="a,1,2\nb,"
    )
    assert [run.row(None, None, word) for word in "abc"] == [{"v": 1.0}, {"v": None}, {"v": None}]


WINDOW = (
    '<window-calculate name="out" algorithm="TextVectorization">'
    "<schema-string>id*:int64,v:array(dbl)</schema-string>"
    + block("parameters", {"wordVecDelimiter": "COMMA"}).replace(
        "<properties>", '<properties><property name="wordVec">@ESP_PROJECT_HOME@/vec.csv</property>'
    )
    + block("input-map", {"token": "s"})
    + block("output-map", {"vectorOut": "v"})
    + "</window-calculate>"
)
MODEL = xml(source("id*:int64,s:string") + WINDOW, '<edge source="in" target="out"/>')


def test_the_file_becomes_part_of_the_model(tmp_path: Path) -> None:
    (tmp_path / "vec.csv").write_text("a,1,2\n<b>,3")
    project = read_project(MODEL, tokens={"ESP_PROJECT_HOME": str(tmp_path)})
    settings = dict(project.windows["q/out"].settings)  # type: ignore[attr-defined]
    assert settings["wordVec"] == "a,1,2\n<b>,3"


def test_a_file_that_cannot_be_in_a_model_is_refused(tmp_path: Path) -> None:
    tokens = {"ESP_PROJECT_HOME": str(tmp_path)}
    with pytest.raises(ModelError, match="there is no such file"):
        read_project(MODEL, tokens=tokens)
    assert (
        "there is no such file"
        in read_project(MODEL, tokens=tokens, checking=True).warnings[0].reason
    )
    (tmp_path / "vec.csv").write_bytes(b"a,\x001")
    with pytest.raises(ModelError, match="control characters"):
        read_project(MODEL, tokens=tokens)
    (tmp_path / "vec.csv").write_bytes(b"a" * 400_001)
    with pytest.raises(ModelError, match="more than 400000 bytes"):
        read_project(MODEL, tokens=tokens)
