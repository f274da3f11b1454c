r"""Regular expressions whose cost is bounded.

The patterns are those that most tools share: characters, classes, groups, alternatives, greedy
and lazy repetitions, the anchors ^ $ \b \B, and (?i) in front. Without back references and
lookaround a search needs at most (length of the text) x (size of the pattern) steps if it follows
all ways at once. Python's own engine tries one way after the other, which is faster for most
patterns and can take forever for others; so it gets those that cannot go wrong at the length of
the text, and `espha.languages.eel.nfa` the rest. Both find the same: the leftmost match, and of
those the one that the order of alternatives and the greed of repetitions prefer. Classes are ASCII.
"""

import re
from functools import lru_cache
from typing import Final

from espha.languages.eel.nfa import Search, Spans, TooMuchWork, program_of
from espha.languages.eel.pattern_syntax import Part, PatternError, Reader, text_of

__all__ = ["Pattern", "PatternError", "Spans", "TooMuchWork", "pattern"]

MAX_PATTERN: Final = 500
"""Longest pattern, in characters."""
MAX_STEPS: Final = 200_000
"""How many steps a search may take that follows all ways."""
_SLOW: Final = 40
"""What one of them costs: as much as so many of Python's engine."""
_FAST: Final = 200_000
"""A pattern that can cost more than this goes the safe way."""


class Pattern:
    """A compiled pattern.

    Attributes:
        groups: how many groups it has.
    """

    def __init__(self, text: str) -> None:
        if len(text) > MAX_PATTERN:
            raise PatternError(f"the pattern is longer than {MAX_PATTERN} characters")
        flags = re.ASCII
        if text.startswith("(?i)"):
            flags, text = flags | re.IGNORECASE, text[4:]
        reader = Reader(text)
        root = reader.read()
        self.groups = reader.groups
        self._program = program_of(root, flags)
        self._python = re.compile(text_of(root), flags)
        self._loops, self._choices = _ways(root)

    def search(self, text: str, start: int = 0) -> tuple[Spans | None, int]:
        """Find the first match from `start` on.

        Returns:
            Where it is, and what the search cost at most.

        Raises:
            TooMuchWork: it would take more than MAX_STEPS steps.
        """
        work = self._most_work(len(text) - start)
        if work > _FAST:
            spans, steps = Search(self._program, self.groups, text).first(start, MAX_STEPS)
            return spans, steps * _SLOW
        match = self._python.search(text, start)
        return (None if match is None else self._spans(match)), work

    def search_all(self, text: str) -> tuple[list[Spans], int]:
        """Find all matches, none of which overlaps the one before.

        Returns:
            Where they are, and what the search cost at most.

        Raises:
            TooMuchWork: it would take more than MAX_STEPS steps.
        """
        work = self._most_work(len(text))
        if work <= _FAST:
            return [self._spans(match) for match in self._python.finditer(text)], work
        found: list[Spans] = []
        search, left, start = Search(self._program, self.groups, text), MAX_STEPS, 0
        while start <= len(text):
            spans, steps = search.first(start, left)
            left -= steps
            if spans is None:
                break
            found.append(spans)
            begin, end = spans[0]
            start = end if end > begin else end + 1
        return found, (MAX_STEPS - left) * _SLOW

    def _most_work(self, length: int) -> int:
        loops = self._loops + 1
        return self._choices * (length + 1) ** loops if loops < 6 else _FAST + 1

    def _spans(self, match: re.Match[str]) -> Spans:
        return tuple(match.span(group) for group in range(self.groups + 1))


@lru_cache(maxsize=512)
def pattern(text: str) -> Pattern:
    """Return a pattern.

    Raises:
        PatternError: it cannot be used.
    """
    return Pattern(text)


def _ways(part: Part) -> tuple[int, int]:
    """Return how many repetitions without end there are, and in how many other ways to choose.

    For a repetition of what can be empty or has choices itself the first number is out of bounds:
    it always goes the safe way, because what an empty round means is where engines differ.
    """
    loops, choices = 0, 1
    for each in part.parts:
        inner_loops, inner_choices = _ways(each)
        loops, choices = loops + inner_loops, min(choices * inner_choices, _FAST + 1)
    if part.what == "any":
        choices *= len(part.parts)
    if part.what == "repeat":
        inner = part.parts[0]
        loops = 99 if choices > 1 or loops or _can_be_empty(inner) else int(part.high is None)
        choices = max(1, (part.high or part.low) - part.low + 1)
    return loops, choices


def _can_be_empty(part: Part) -> bool:
    match part.what:
        case "one":
            return False
        case "all":
            return all(_can_be_empty(each) for each in part.parts)
        case "repeat" if part.low == 0:
            return True
        case "at":
            return True
    return any(_can_be_empty(each) for each in part.parts)
