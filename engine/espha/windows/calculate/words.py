"""Calculate algorithms over words: Tokenization and TFIDF."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

Rows = Sequence[Sequence[Any]]

_TOKEN: Final = re.compile(r"\d+(?:[.,]\d+)*|[^\W_]+(?:['\u2019][^\W_]+)*|_+|[^\w\s]")
"""A number, a word with its apostrophes, or another sign by itself."""


class Tokenization:
    """Splits a text into tokens: a row for each."""

    def __init__(self, settings: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._wanted = wanted

    def observe(self, values: tuple[Any, ...]) -> Rows:
        """Take a text; return its tokens."""
        document, text = values
        rows = []
        for number, match in enumerate(_TOKEN.finditer(text or ""), start=1):
            results = {
                "docIdOut": document,
                "tokenIdOut": number,
                "wordOut": match[0],
                "startPosOut": match.start(),
                "endPosOut": match.end() - 1,
            }
            rows.append([results[name] for name in self._wanted])
        return rows

    def state(self) -> Any:
        """Return nothing: a text says all."""
        return None

    def restore(self, state: Any) -> None:
        """Do nothing."""


class TfIdf:
    """Weights each token by how often its document has it, and how few documents do.

    Documents come one after the other: another `docId` begins another document.
    """

    def __init__(self, settings: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._wanted = wanted
        self._document: Any = None
        self._documents = 0
        self._counts: dict[str, int] = {}
        self._spread: dict[str, int] = {}

    def observe(self, values: tuple[Any, ...]) -> Rows:
        """Take one token; return its row."""
        document, number, token = values
        if not self._documents or document != self._document:
            self._document, self._counts = document, {}
            self._documents += 1
        results = {"docIdOut": document, "tokenIdOut": number, "tokenOut": token}
        if token is not None:
            count = self._counts[token] = self._counts.get(token, 0) + 1
            if count == 1:
                self._spread[token] = self._spread.get(token, 0) + 1
            rarity = math.log(self._documents / self._spread[token])
            results |= {"tfOut": count, "idfOut": rarity, "tfidfOut": count * rarity}
        return ([results.get(name) for name in self._wanted],)

    def state(self) -> Any:
        """Return the counts."""
        return (self._document, self._documents, dict(self._counts), dict(self._spread))

    def restore(self, state: Any) -> None:
        """Take over counts."""
        self._document, self._documents, counts, spread = state
        self._counts, self._spread = dict(counts), dict(spread)
