"""TFIDF: how much a word says about its document."""

from espha.windows.calculate.contract import Algorithm, Result, Role

ALGORITHM = Algorithm(
    name="TFIDF",
    code="words:TfIdf",
    inputs={
        "docId": Role("any", note="the document; another one begins where it changes"),
        "tokenId": Role("any", needed=False, note="number of the token"),
        "token": Role("text", note="the token"),
    },
    parameters={},
    results={
        "docIdOut": Result("any", repeats="docId"),
        "tokenIdOut": Result("any", repeats="tokenId"),
        "tokenOut": Result("text", repeats="token"),
        "tfOut": Result("count", note="how often the document has it, so far"),
        "idfOut": Result(note="ln (documents / documents with it), so far"),
        "tfidfOut": Result(note="their product"),
    },
)
