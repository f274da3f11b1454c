"""The syntax of regular expressions: text to parts, and back to what Python's `re` reads."""

import re
from dataclasses import dataclass
from typing import Final

MAX_REPEAT: Final = 200
MAX_NESTED: Final = 20


class PatternError(ValueError):
    """A pattern cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a pattern.

    Attributes:
        what: "one" (one character, `text` is its pattern), "at" (an anchor), "all" (parts in
            order), "any" (alternatives), "repeat", "group".
        text: how `re` writes it.
        parts: what it is made of.
        low, high: of a repetition; high None: without end.
        greedy: of a repetition.
        number: of a group; 0: it is not kept.
    """

    what: str
    text: str = ""
    parts: tuple["Part", ...] = ()
    low: int = 1
    high: int | None = 1
    greedy: bool = True
    number: int = 0


class Reader:
    """Reads a pattern by recursive descent; `_nested` keeps the recursion small.

    Attributes:
        groups: how many groups have been read.
    """

    _ESCAPED: Final = {"n": "\\n", "r": "\\r", "t": "\\t", "f": "\\f", "v": "\\v"}

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._nested = 0
        self.groups = 0

    def read(self) -> Part:
        """Return the whole pattern.

        Raises:
            PatternError: it is none.
        """
        result = self._alternatives()
        if self._place < len(self._text):
            raise self._refused("a ) that closes nothing")
        return result

    def _refused(self, reason: str) -> PatternError:
        return PatternError(f"the pattern has {reason} at character {self._place + 1}")

    def _next(self, count: int = 1) -> str:
        return self._text[self._place : self._place + count]

    def _take(self, count: int = 1) -> str:
        taken = self._next(count)
        if len(taken) < count:
            raise self._refused("no end")
        self._place += count
        return taken

    def _alternatives(self) -> Part:
        parts = [self._sequence()]
        while self._next() == "|":
            self._take()
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Part("any", parts=tuple(parts))

    def _sequence(self) -> Part:
        parts = []
        while self._next() not in {"", "|", ")"}:
            parts.append(self._repeated(self._atom()))
        return Part("all", parts=tuple(parts))

    def _repeated(self, atom: Part) -> Part:
        counts = self._counts()
        if counts is None:
            return atom
        if atom.what == "at":
            raise self._refused("a repetition of an anchor")
        low, high = counts
        greedy = True
        if self._next() == "?":
            self._take()
            greedy = False
        if self._next() == "+" or self._counts() is not None:
            raise self._refused("a repetition of a repetition")
        return Part("repeat", parts=(atom,), low=low, high=high, greedy=greedy)

    def _counts(self) -> tuple[int, int | None] | None:
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if self._next() in simple:
            return simple[self._take()]
        match = re.compile(r"\{([0-9]{1,4})(,([0-9]{0,4}))?\}").match(self._text, self._place)
        if match is None:
            return None
        low = int(match[1])
        high = low if match[2] is None else int(match[3]) if match[3] else None
        if max(low, high or 0) > MAX_REPEAT or (high is not None and high < low):
            raise self._refused(f"a repetition that is not from 0 to {MAX_REPEAT}")
        self._place = match.end()
        return low, high

    def _atom(self) -> Part:
        character = self._take()
        if character == "(":
            return self._group()
        if character == "[":
            return Part("one", self._class())
        if character == "\\":
            return self._escape()
        if character in {"^", "$"}:
            return Part("at", "^" if character == "^" else "\\Z")
        if character in {"*", "+", "?"}:
            raise self._refused("a repetition of nothing")
        return Part("one", "." if character == "." else re.escape(character))

    def _group(self) -> Part:
        self._nested += 1
        if self._nested > MAX_NESTED:
            raise self._refused(f"more than {MAX_NESTED} groups in each other")
        number = 0
        if self._next(2) == "?:":
            self._take(2)
        elif self._next() == "?":
            raise self._refused("(?, which is not supported but as (?: and a leading (?i),")
        else:
            self.groups += 1
            number = self.groups
        inner = self._alternatives()
        if self._next() != ")":
            raise self._refused("a ( that is not closed")
        self._take()
        self._nested -= 1
        return Part("group", parts=(inner,), number=number)

    def _escape(self) -> Part:
        character = self._take()
        if character in "bB":
            return Part("at", "\\" + character)
        if character in "AZ":
            return Part("at", "^" if character == "A" else "\\Z")
        if character in "dDwWsS":
            return Part("one", "\\" + character)
        if character in self._ESCAPED:
            return Part("one", self._ESCAPED[character])
        if character.isalnum():
            raise self._refused(f"\\{character}, which is not supported,")
        return Part("one", re.escape(character))

    def _class(self) -> str:
        parts = ["[^" if self._next() == "^" else "["]
        self._place += len(parts[0]) - 1
        first = True
        while self._next() != "]" or first:
            parts.append(self._class_item())
            first = False
        self._take()
        return "".join([*parts, "]"])

    def _class_item(self) -> str:
        if self._next(2) == "[:":
            raise self._refused("[:, a class that is not supported,")
        low, low_text = self._class_character()
        if self._next() != "-" or self._next(2) in {"-]", "-"}:
            return low_text
        self._take()
        high, high_text = self._class_character()
        if len(low) != 1 or len(high) != 1 or high < low:
            raise self._refused("a range that is none")
        return f"{low_text}-{high_text}"

    def _class_character(self) -> tuple[str, str]:
        """Return the character (empty for a class of its own) and how `re` writes it."""
        character = self._take()
        if character != "\\":
            return character, re.escape(character)
        character = self._take()
        if character in "dDwWsS":
            return "", "\\" + character
        if character in self._ESCAPED:
            return "\n\r\t\f\v"["nrtfv".index(character)], self._ESCAPED[character]
        if character.isalnum():
            raise self._refused(f"\\{character}, which is not supported,")
        return character, re.escape(character)


def text_of(part: Part) -> str:
    """Return the part as `re` writes it."""
    inner = [text_of(each) for each in part.parts]
    match part.what:
        case "all":
            return "".join(inner)
        case "any":
            return f"(?:{'|'.join(inner)})"
        case "group":
            return f"({inner[0]})" if part.number else f"(?:{inner[0]})"
        case "repeat":
            high = "" if part.high is None else part.high
            return f"(?:{inner[0]}){{{part.low},{high}}}{'' if part.greedy else '?'}"
    return part.text
