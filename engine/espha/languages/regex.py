r"""Regular expressions of both languages: RE2, because the texts come from outside.

A search takes a time that is linear in the text, whatever the pattern; there is no look-around and
no reference to a group inside a pattern. The leftmost match counts, and of those the one that the
order of alternatives and the greed of repetitions prefer, as in Perl. `\d \w \s \b` are ASCII; with
`(?i)` letters match as Unicode folds them.

RE2 works on UTF-8. Here places are those of characters, and the search goes on from character to
character, where RE2's own `\B` would also match between the bytes of one.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import re2  # type: ignore[import-untyped]

MAX_PATTERN: Final = 2_000
"""Longest pattern, in characters."""
MAX_GROUPS: Final = 100
"""Most groups: a search moves the places of all of them along."""
_MAX_MEMORY: Final = 512 * 1024
"""Most memory of a pattern, in bytes; a larger program is refused, and RE2 forgets states."""
_MAX_CACHED: Final = 256

Spans = tuple[tuple[int, int], ...]
"""Where the match and its groups are, (begin, end) from 0; (-1, -1) for one that took no part."""

_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ANYWHERE: Final = re2._re2.RE2.Anchor.UNANCHORED


class RegexError(ValueError):
    """A pattern cannot be used; the message names it, the reason and, if known, the place."""

    def __init__(
        self, text: str, reason: str, place: int | None = None, *, advice: str = ""
    ) -> None:
        where = "" if place is None else f", at character {place}"
        super().__init__(
            f"{text[:60]!r} is not a regular expression of RE2: {reason}{where}{advice}"
        )


class Regex:
    """A compiled pattern; get one by `compiled`.

    Attributes:
        groups: how many groups it has.
        size: how many instructions it has, the most that a search can do for one character.
    """

    __slots__ = ("_match", "groups", "size")

    def __init__(self, text: str) -> None:
        _check(text)
        options = re2.Options()
        options.log_errors = False
        options.max_mem = _MAX_MEMORY
        try:
            found = re2.compile(text, options)
        except re2.error as error:
            raise _refused(text, error) from None
        self.groups: int = found.groups
        self.size: int = found.programsize
        if self.groups > MAX_GROUPS:
            raise RegexError(text, f"{self.groups} groups; {MAX_GROUPS} are allowed")
        # The wrapper in Python around it costs five times as much as a search in a short text.
        self._match = found._regexp.Match

    def search(self, text: str, start: int = 0) -> Spans | None:
        """Return the first match that begins at character `start` or behind it."""
        if text.isascii() and start <= len(text):
            spans = self._match(_ANYWHERE, text.encode(), start, len(text))
            return tuple(spans) if spans[0][0] >= 0 else None
        return next(self.search_all(text, start), None)

    def search_all(self, text: str, start: int = 0) -> Iterator[Spans]:
        """Return the matches one after the other; none overlaps the one before.

        Each is a search of its own: all together can take the square of the length, for a pattern
        that has to look far ahead and then matches little (`x*y|x`).
        """
        if text.isascii():
            return self._found_in_ascii(text.encode(), start)
        first = len(text[:start].encode()) if start else 0
        return self._found_in_utf8(text.encode(), first, start)

    def _found_in_ascii(self, text: bytes, start: int) -> Iterator[Spans]:
        match, end_of_text = self._match, len(text)
        while start <= end_of_text:
            spans = match(_ANYWHERE, text, start, end_of_text)
            begin, end = spans[0]
            if begin < 0:
                return
            yield tuple(spans)
            start = end if end > begin else end + 1

    def _found_in_utf8(self, text: bytes, start: int, start_character: int) -> Iterator[Spans]:
        """Search from byte `start`; the place of the last one is known as that of a character."""
        match, end_of_text = self._match, len(text)
        known, known_character = start, start_character
        while start <= end_of_text:
            spans = match(_ANYWHERE, text, start, end_of_text)
            begin, end = spans[0]
            if begin < 0:
                return
            if _inside(text, begin):
                start = _next_character(text, begin)
                continue
            known_character += len(text[known:begin].decode())
            known = begin
            yield tuple([_characters(span, text, known, known_character) for span in spans])
            start = end if end > begin else _next_character(text, end)


@lru_cache(maxsize=_MAX_CACHED)
def compiled(text: str) -> Regex:
    """Return a compiled pattern.

    Raises:
        RegexError: it cannot be used.
    """
    return Regex(text)


def usable(text: str) -> Regex | None:
    """Return a compiled pattern; None for one that cannot be used, which the data may bring."""
    try:
        return compiled(text)
    except RegexError:
        return None


def _check(text: str) -> None:
    if len(text) > MAX_PATTERN:
        raise RegexError(text, f"it has more than {MAX_PATTERN} characters")
    for escaped in _ESCAPED.finditer(text):
        if escaped[1] == "C":
            # It would match a byte, and half a character cannot be a text.
            raise RegexError(text, r"\C means a byte", escaped.start() + 1)


def _refused(text: str, error: Exception) -> RegexError:
    """Return RE2's reason in a sentence; behind a colon RE2 quotes what it stumbled over."""
    reason = error.args[0] if error.args else ""
    if isinstance(reason, bytes):
        reason = reason.decode("utf-8", "replace")
    quoted = str(reason).partition(": ")[2]
    place = text.find(quoted) + 1 if quoted and text.count(quoted) == 1 else None
    advice = "; look-around and references to groups are not known"
    return RegexError(text, str(reason), place, advice=advice)


def _characters(span: tuple[int, int], text: bytes, known: int, character: int) -> tuple[int, int]:
    """Return a span of bytes, not before `known`, as one of characters."""
    begin, end = span
    if begin < 0:
        return span
    first = character + len(text[known:begin].decode())
    return first, first + len(text[begin:end].decode())


def _inside(text: bytes, place: int) -> bool:
    return place < len(text) and text[place] & 0xC0 == 0x80


def _next_character(text: bytes, place: int) -> int:
    place += 1
    while _inside(text, place):
        place += 1
    return place
