"""The function language: text to a tree.

    node     = call | field | property | number | text | word | "true" | "false" | "null"
    call     = name "(" [ node { "," node } [ "," ] ] ")"
    field    = "$" name                      a field of the event, or what a function gave
    property = "#" name [ "/" path ]         a property, an expression, the element of a loop

Texts stand in single or double quotes. A backslash stands for itself, so that regular expressions
can be written as they are, except before the quote of the text. A word that is neither a call nor
one of the constants is a text, too.
"""

import math
import re
from dataclasses import dataclass
from typing import Final

from espha.languages.functional.errors import FunctionError
from espha.model.literals import INT64, NUMBER, whole_from

MAX_LENGTH: Final = 10_000
"""Longest text of a function, in characters."""

MAX_DEPTH: Final = 50
"""Deepest nesting of calls; Python's stack would be the limit otherwise."""

_TOKEN = re.compile(
    rf"""\s*(?:
      (?P<field>\$[^\W\d][\w.-]*)
    | (?P<property>\#[^\W\d][\w.-]*(?:/[\w.@\[\]-]+)*)
    | (?P<number>{NUMBER})
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<mark>[(),])
    )""",
    re.VERBOSE | re.DOTALL,
)
_WORDS: Final = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a text, true, false or null."""

    value: bool | int | float | str | None

    def __str__(self) -> str:
        if isinstance(self.value, str):
            if "'" in self.value and '"' not in self.value:
                return f'"{self.value}"'
            return "'" + self.value.replace("'", "\\'") + "'"
        if self.value is None or isinstance(self.value, bool):
            return {True: "true", False: "false", None: "null"}[self.value]
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class FieldName:
    """`$name`."""

    name: str

    def __str__(self) -> str:
        return f"${self.name}"


@dataclass(frozen=True, slots=True)
class PropertyName:
    """`#name`, or `#name/path` for a part of it."""

    name: str
    path: str = ""

    def __str__(self) -> str:
        return f"#{self.name}/{self.path}" if self.path else f"#{self.name}"


@dataclass(frozen=True, slots=True)
class Call:
    """`name(arguments)`."""

    name: str
    arguments: tuple["Node", ...]

    def __str__(self) -> str:
        return f"{self.name}({','.join(str(argument) for argument in self.arguments)})"


Node = Literal | FieldName | PropertyName | Call


def parse(text: str) -> Node:
    """Return the tree of one function; `str(tree)` is its canonical text.

    Raises:
        FunctionError: too long, too deep, or not of the language.
    """
    if len(text) > MAX_LENGTH:
        raise FunctionError(f"{len(text)} characters; at most {MAX_LENGTH} are read")
    parser = _Parser(_tokens(text))
    node = parser.node(0)
    parser.end()
    return node


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    column: int


def _tokens(text: str) -> list[_Token]:
    result: list[_Token] = []
    place, end = 0, len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            shown = text[place:].strip()[:20]
            raise FunctionError(f"column {place + 1}: {shown!r} is not understood")
        kind = match.lastgroup or ""
        result.append(_Token(kind, match[kind], match.start(kind) + 1))
        place = match.end()
    return result


class _Parser:
    """Recursive descent with one token of look-ahead."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._place = 0

    def _peek(self) -> _Token:
        if self._place < len(self._tokens):
            return self._tokens[self._place]
        return _Token("end", "the end", 0)

    def _take(self) -> _Token:
        token = self._peek()
        self._place += 1
        return token

    def node(self, depth: int) -> Node:
        """Read one node, and what is nested in it."""
        if depth > MAX_DEPTH:
            raise FunctionError(f"calls are nested more than {MAX_DEPTH} deep")
        token = self._take()
        if token.kind == "field":
            return FieldName(token.text[1:])
        if token.kind == "property":
            name, _, path = token.text[1:].partition("/")
            return PropertyName(name, path)
        if token.kind == "number":
            return Literal(_number(token))
        if token.kind == "text":
            return Literal(_unquoted(token))
        if token.kind == "name":
            return self._name(token, depth)
        raise _unexpected(token, "a function, $field, #property, number or quoted text")

    def _name(self, token: _Token, depth: int) -> Node:
        if self._peek().text == "(":
            return Call(token.text, self._arguments(depth))
        if token.text in _WORDS:
            return Literal(_WORDS[token.text])
        return Literal(token.text)

    def _arguments(self, depth: int) -> tuple[Node, ...]:
        self._take()
        if self._peek().text == ")":
            self._take()
            return ()
        result = [self.node(depth + 1)]
        while (token := self._take()).text == ",":
            if self._peek().text != ")":
                result.append(self.node(depth + 1))
        if token.text != ")" or token.kind != "mark":
            raise _unexpected(token, "a comma or a closing parenthesis")
        return tuple(result)

    def end(self) -> None:
        """Refuse what is left."""
        token = self._peek()
        if token.kind != "end":
            raise _unexpected(token, "the end")


def _unquoted(token: _Token) -> str:
    quote = token.text[0]
    value = token.text[1:-1].replace("\\" + quote, quote)
    if '"' in value and "\\'" in value:
        # No way of writing it: its backslash would belong to the quote.
        raise FunctionError(
            f"column {token.column}: a text with both kinds of quotes and a backslash before a "
            "quote; put it into an <expression>"
        )
    return value


def _number(token: _Token) -> int | float:
    text = token.text
    whole = whole_from(text)
    if whole is not None and abs(whole) <= INT64[1]:
        return whole
    number = float(text)
    if not math.isfinite(number):
        raise FunctionError(f"column {token.column}: the number {text[:30]} is too large")
    return number


def _unexpected(token: _Token, wanted: str) -> FunctionError:
    where = f"column {token.column}: " if token.column else ""
    return FunctionError(f"{where}{token.text[:40]} stands where {wanted} should")
