"""The logic of a pattern: `fby{30 seconds}(e1, and(e2, e3), not(e4))` to a tree.

Operators: `fby` (one after the other), `and`, `or`, `not`, `notoccur`, and `is` (the very next
event; `is:3(e1)` the next three). Each takes a time limit in braces.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Final, Literal, NamedTuple, cast, get_args

from lark import Lark, Token, Tree, UnexpectedInput

Operator = Literal["event", "fby", "and", "or", "not", "notoccur", "is"]

MAX_LENGTH = 10_000
MAX_DEPTH = 20
"""Deepest nesting of operators; a tree is walked by recursion at every event."""
MAX_COUNT = 10_000
"""Largest n of `is:n`."""

_ONE_PART: Final = frozenset({"not", "notoccur", "is"})
_OPERATORS: Final = frozenset(get_args(Operator)) - {"event"}
_MICROSECONDS: Final = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
}
_LONGEST: Final = 36_500 * _MICROSECONDS["day"]


class LogicError(ValueError):
    """The logic cannot be used; the message says where (line and column) and why."""


class Logic(NamedTuple):
    """One node of the tree.

    Attributes:
        operator: `event` for a leaf.
        name: name of the event of interest; empty for an operator.
        parts: the operands, in order; none for a leaf.
        limit: microseconds that the node may take; None for any time.
        times: how often the operand of `is` must come; 1 for other nodes.
    """

    operator: Operator
    name: str = ""
    parts: tuple["Logic", ...] = ()
    limit: int | None = None
    times: int = 1

    def __str__(self) -> str:
        if self.operator == "event":
            return self.name
        times = f":{self.times}" if self.times != 1 else ""
        limit = "" if self.limit is None else f"{{{self.limit} microseconds}}"
        return f"{self.operator}{times}{limit}({','.join(map(str, self.parts))})"

    def events(self) -> Iterator[str]:
        """Yield the names of the events of interest, from left to right."""
        if self.operator == "event":
            yield self.name
        for part in self.parts:
            yield from part.events()

    def opens(self) -> bool:
        """Whether an event can be the first of this node; the absence of one cannot."""
        if self.operator in {"not", "notoccur"}:
            return False
        if self.operator in {"fby", "is"}:
            return self.parts[0].opens()
        return self.operator == "event" or any(part.opens() for part in self.parts)


def parse_logic(text: str, events: Sequence[str]) -> Logic:
    """Read a pattern's logic.

    Args:
        text: the logic.
        events: names of the pattern's events of interest.

    Raises:
        LogicError: not readable, an unknown event, one that occurs twice, a wrong number of
            operands, a limit that is too long, or nothing that an event could begin.
    """
    if len(text) > MAX_LENGTH:
        raise LogicError(f"the logic is longer than {MAX_LENGTH} characters")
    if not text.strip():
        raise LogicError("the logic is empty; write for example fby(e1, e2)")
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        raise LogicError(_syntax(text, error)) from None
    logic = _Reader(events).read(tree, 1)
    if not logic.opens():
        raise LogicError("no event can begin this pattern; begin with an event that occurs")
    return logic


@cache
def _parser() -> Lark:
    grammar = files("espha.windows.pattern").joinpath("logic.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", maybe_placeholders=True)


def _syntax(text: str, error: UnexpectedInput) -> str:
    position = error.pos_in_stream
    token = getattr(error, "token", None)
    if position is None or (token is not None and token.type == "$END"):
        return "the logic ends too early; is a ) missing?"
    found = text[position : position + 20].split("\n", maxsplit=1)[0]
    return f"line {error.line}, column {error.column}: {found!r} cannot be read here"


class _Reader:
    """Checks a syntax tree and makes the `Logic` of it."""

    def __init__(self, events: Sequence[str]) -> None:
        self._events = events
        self._seen: set[str] = set()

    def read(self, tree: Tree[Token], depth: int) -> Logic:
        """Return the node of a syntax tree."""
        if tree.data == "event":
            return self._event(cast(Token, tree.children[0]))
        word, count, limit, *parts = cast(list[Tree[Token]], tree.children)
        token = cast(Token, word)
        if depth > MAX_DEPTH:
            raise _at(token, f"nested deeper than {MAX_DEPTH}")
        operator = cast(Operator, token.lower())
        if operator in _ONE_PART and len(parts) != 1:
            raise _at(token, f"{operator} takes one operand, not {len(parts)}")
        if count is not None and operator != "is":
            raise _at(token, f"a count goes with is, not with {operator}")
        read = tuple([self.read(part, depth + 1) for part in parts])
        duration = None if limit is None else _limit(token, limit)
        made = Logic(operator, "", read, duration, 1 if count is None else _count(token, count))
        return _without_double_not(made)

    def _event(self, token: Token) -> Logic:
        name = str(token)
        if name not in self._events:
            hint = " (an operator takes its operands in parentheses)" * (name in _OPERATORS)
            known = ", ".join(self._events) or "none"
            raise _at(token, f"event {name!r}{hint} is not one of: {known}")
        if name in self._seen:
            raise _at(token, f"event {name!r} occurs twice; give the second one its own <event>")
        self._seen.add(name)
        return Logic("event", name)


def _without_double_not(logic: Logic) -> Logic:
    """Return `is(a)` for `not(not(a))`: the next event is not one that is not a."""
    inner = logic.parts[0]
    if logic[0] == inner[0] == "not" and logic.limit is None and inner.limit is None:
        return Logic("is", "", inner.parts)
    return logic


def _limit(operator: Token, tree: Tree[Token]) -> int:
    tokens = cast(list[Token], tree.children)
    total = 0
    for number, unit in zip(tokens[::2], tokens[1::2], strict=True):
        factor = _MICROSECONDS[unit.lower().removesuffix("s")]
        total += int(number[:20]) * factor
    if not 0 < total <= _LONGEST:
        raise _at(operator, "a limit is longer than nothing and at most 36500 days")
    return total


def _count(operator: Token, tree: Tree[Token]) -> int:
    number = int(cast(Token, tree.children[0])[:20])
    if not 1 <= number <= MAX_COUNT:
        raise _at(operator, f"the count of is goes from 1 to {MAX_COUNT}")
    return number


def _at(token: Token, reason: str) -> LogicError:
    return LogicError(f"line {token.line}, column {token.column}: {reason}")
