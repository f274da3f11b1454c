"""A search by regular expression that follows all ways through the pattern at once.

A pattern becomes a program of a few instructions; a way is a place in it and what it has saved.
Ways that meet are one from there on, the preferred one, so there are never more of them than
instructions.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from espha.languages.eel.pattern_syntax import Part, PatternError

MAX_PROGRAM: Final = 2_000
"""Largest program; repetitions with counts are written out in it."""

Spans = tuple[tuple[int, int], ...]
"""Where the match and its groups are, (begin, end) from 0; (-1, -1) for one that took no part."""
Program = list[tuple[Any, ...]]
_Way = tuple[int, tuple[int, ...]]


class TooMuchWork(Exception):  # noqa: N818 - it is not the caller's mistake
    """A search would cost more than it may."""


def program_of(root: Part, flags: int) -> Program:
    """Return the program of a pattern.

    Raises:
        PatternError: it would be too large.
    """
    program: Program = [("save", 0)]
    _emit(root, program, flags)
    return [*program, ("save", 1), ("match",)]


def _emit(part: Part, program: Program, flags: int) -> None:
    """Append the instructions of a part."""
    if len(program) > MAX_PROGRAM:
        raise PatternError("the pattern is too large; use smaller repetition counts")
    match part.what:
        case "one":
            program.append(("one", re.compile(part.text, flags).match))
        case "at":
            program.append(("at", re.compile(part.text, flags).match))
        case "group" if part.number:
            program.append(("save", 2 * part.number))
            _emit(part.parts[0], program, flags)
            program.append(("save", 2 * part.number + 1))
        case "any":
            _emit_any(part.parts, program, flags)
        case "repeat":
            _emit_repeat(part, program, flags)
        case _:
            for each in part.parts:
                _emit(each, program, flags)


def _emit_any(parts: Sequence[Part], program: Program, flags: int) -> None:
    ends = []
    for each in parts[:-1]:
        split = len(program)
        program.append(())
        _emit(each, program, flags)
        ends.append(len(program))
        program.append(())
        program[split] = ("split", split + 1, len(program))
    _emit(parts[-1], program, flags)
    for end in ends:
        program[end] = ("jump", len(program))


def _emit_repeat(part: Part, program: Program, flags: int) -> None:
    inner = part.parts[0]
    for _ in range(part.low):
        _emit(inner, program, flags)
    splits = []
    for _ in range(1 if part.high is None else part.high - part.low):
        splits.append(len(program))
        program.append(())
        _emit(inner, program, flags)
    if part.high is None:
        program.append(("jump", splits[0]))
    for split in splits:
        ways = (split + 1, len(program))
        program[split] = ("split", *(ways if part.greedy else ways[::-1]))


class Search:
    """A search in one text."""

    def __init__(self, program: Program, groups: int, text: str) -> None:
        self._program = program
        self._text = text
        self._empty = (-1,) * (2 * groups + 2)

    def first(self, start: int, most: int) -> tuple[Spans | None, int]:
        """Find the first match from `start` on.

        Returns:
            Where it is, and how many steps the search took.

        Raises:
            TooMuchWork: it would take more than `most` steps.
        """
        steps, found = 0, None
        ways: list[_Way] = []
        for place in range(start, len(self._text) + 1):
            seen: set[int] = set()
            if found is None:
                ways.append((0, self._empty))
            reached = self._reached(ways, place, seen)
            steps += len(seen) + 1
            if steps > most:
                raise TooMuchWork
            ways, matched = self._taken(reached, place)
            found = found if matched is None else matched
            if found is not None and not ways:
                break
        return (None if found is None else tuple(zip(found[::2], found[1::2], strict=True))), steps

    def _taken(
        self, reached: Sequence[_Way], place: int
    ) -> tuple[list[_Way], tuple[int, ...] | None]:
        """Take the character at `place`; a match ends the ways that are less preferred."""
        ways: list[_Way] = []
        for at, saved in reached:
            step = self._program[at]
            if step[0] == "match":
                return ways, saved
            if place < len(self._text) and step[1](self._text[place]):
                ways.append((at + 1, saved))
        return ways, None

    def _reached(self, ways: Sequence[_Way], place: int, seen: set[int]) -> list[_Way]:
        """Go on along all ways until each waits for a character or has matched."""
        reached: list[_Way] = []
        waiting = list(reversed(ways))
        while waiting:
            at, saved = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            step = self._program[at]
            match step[0]:
                case "jump":
                    waiting.append((step[1], saved))
                case "split":
                    waiting += [(step[2], saved), (step[1], saved)]
                case "save":
                    number = step[1]
                    waiting.append((at + 1, (*saved[:number], place, *saved[number + 1 :])))
                case "at":
                    if step[1](self._text, place) is not None:
                        waiting.append((at + 1, saved))
                case _:
                    reached.append((at, saved))
        return reached
