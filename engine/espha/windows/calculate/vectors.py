"""Calculate algorithm TextVectorization: words and documents as vectors."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

Rows = Sequence[Sequence[Any]]
Vector = tuple[float | None, ...]


class TextVectorization:
    """Replaces words by vectors; a document is the mean of those of its words."""

    def __init__(self, settings: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._vectors = Vectors(settings["wordVec"], settings["wordVecDelimiter"])
        self._start, self._stop = (
            _read_words(settings[name]) for name in ("startList", "stopList")
        )
        self._whole = bool(settings["outputDocVec"])
        self._wanted = wanted
        self._document: Any = None
        self._counts: list[int] = []
        self._sums: list[float] = []

    def observe(self, values: tuple[Any, ...]) -> Rows:
        """Take one token; return its vector, or that of its document so far."""
        document, token = values
        vector = self._vector(token)
        if self._whole:
            vector = self._mean(document, vector)
        results = {"docIdOut": document, "vectorOut": vector}
        return ([results[name] for name in self._wanted],)

    def _vector(self, token: str | None) -> Vector | None:
        """Return the vector of a word that counts."""
        if token is None or token.lower() in self._stop:
            return None
        if self._start and token.lower() not in self._start:
            return None
        return self._vectors.of(token)

    def _mean(self, document: Any, vector: Vector | None) -> Vector:
        if document != self._document:
            self._document, self._counts, self._sums = document, [], []
        for place, value in enumerate(vector or ()):
            if place == len(self._counts):
                self._counts.append(0)
                self._sums.append(0.0)
            if value is not None:
                self._counts[place] += 1
                self._sums[place] += value
        return tuple([
            total / count if count else None
            for total, count in zip(self._sums, self._counts, strict=True)
        ])  # fmt: skip

    def state(self) -> Any:
        """Return the document so far."""
        return (self._document, tuple(self._counts), tuple(self._sums))

    def restore(self, state: Any) -> None:
        """Take over a document."""
        self._document, counts, sums = state
        self._counts, self._sums = list(counts), list(sums)


_DELIMITERS: Final = {"COMMA": ",", "TAB": "\t", "SPACE": None}
_LINES: Final = re.compile(r"\r\n|\n|\r")


class Vectors:
    """The vectors of a file: lines of a word and its numbers."""

    def __init__(self, text: str, delimiter: str) -> None:
        self._exact: dict[str, Vector] = {}
        self._small: dict[str, Vector] = {}
        for line in _LINES.split(text):
            word, *cells = line.strip().split(_DELIMITERS[delimiter]) or [""]
            if word.strip():
                vector = tuple([_number(cell) for cell in cells])
                self._exact.setdefault(word.strip(), vector)
                self._small.setdefault(word.strip().lower(), vector)

    def of(self, word: str) -> Vector | None:
        """Return the vector of a word as it is written, or else whatever its capitals are."""
        return self._exact.get(word) or self._small.get(word.lower())


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _read_words(text: str) -> frozenset[str]:
    return frozenset(word.strip().lower() for word in _LINES.split(text)) - {""}
