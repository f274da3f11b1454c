"""TextVectorization: words and documents as vectors."""

from collections.abc import Mapping

from espha.windows.calculate.contract import Algorithm, Parameter, Result, Role, Settings


def _check(settings: Settings, counts: Mapping[str, int]) -> str:
    return "" if settings["wordVec"] else "TextVectorization needs the parameter wordVec, a file"


ALGORITHM = Algorithm(
    name="TextVectorization",
    code="vectors:TextVectorization",
    inputs={
        "docId": Role(
            "any", needed=False, note="the document; another one begins where it changes"
        ),
        "token": Role("text", note="the word"),
    },
    parameters={
        "wordVec": Parameter("", note="a file: a word and its numbers in each line"),
        "wordVecDelimiter": Parameter("COMMA", choices=("COMMA", "TAB", "SPACE")),
        "wordVecLineBreak": Parameter("LF", note="any line break is one"),
        "startList": Parameter("", note="a file: only its words count"),
        "stopList": Parameter("", note="a file: its words do not count"),
        "outputDocVec": Parameter(0, note="1: vectors of documents, not of words"),
    },
    results={
        "docIdOut": Result("any", repeats="docId"),
        "vectorOut": Result(many=True, note="the vector"),
    },
    check=_check,
)
