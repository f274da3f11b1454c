"""Tokenization: texts split into words and signs."""

from espha.windows.calculate.contract import Algorithm, Result, Role

ALGORITHM = Algorithm(
    name="Tokenization",
    code="words:Tokenization",
    inputs={"docId": Role("any", note="which text"), "doc": Role("text", note="the text")},
    parameters={},
    results={
        "docIdOut": Result("any", repeats="docId"),
        "tokenIdOut": Result("count", note="number of the token, from 1"),
        "wordOut": Result("text", note="the token"),
        "startPosOut": Result("count", note="place of its first character, from 0"),
        "endPosOut": Result("count", note="place of its last character"),
    },
    rows_by="tokenIdOut",
)
