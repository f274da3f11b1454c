"""Text to syntax tree."""

import re
from functools import cache
from importlib.resources import files
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedInput, v_args
from lark.exceptions import VisitError

from espha.languages.eel.dates import read_date
from espha.languages.eel.errors import MAX_HEIGHT, MAX_LENGTH, At, ExpressionError
from espha.languages.eel.syntax import Node
from espha.model.literals import whole, whole_from

_TYPES = {
    "int": "integer",
    "real": "double",
    "bool": "boolean",
}
_SCOPES = {"hidden": "", "visible": ""}
"""Scopes that say who can see a variable, not how long it lives."""

_HINTS = (
    ("'\"", "; a string ends with the quote that it began with"),
    ("{}", "; several statements are written as begin … end"),
    (":", "; there are no labels, and no goto: use while"),
)
"""What may help where a text cannot be read, by the sign that stands there."""

_SIZE = re.compile(r"\([^)]*\)")
_START = At(1, 1)


def parse(text: str) -> Node:
    """Return the tree of `text`: a block.

    Raises:
        ExpressionError: empty, too long, too deep, or not in the language.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"the expression is longer than {MAX_LENGTH} characters")
    if not text.strip():
        raise ExpressionError("the expression is empty")
    try:
        tree: Any = _parser().parse(text)
    except UnexpectedInput as error:
        raise _refused(text, error) from None
    except VisitError as error:
        if isinstance(error.orig_exc, ExpressionError):
            raise error.orig_exc from None
        raise
    if tree.height > MAX_HEIGHT:
        raise ExpressionError(f"the expression is nested deeper than {MAX_HEIGHT}")
    result: Node = tree
    return result


def _refused(text: str, error: UnexpectedInput) -> ExpressionError:
    position = error.pos_in_stream
    token = getattr(error, "token", None)
    if position is None or (token is not None and token.type == "$END"):
        return ExpressionError("the expression ends too early")
    found = text[position : position + 20].split("\n", maxsplit=1)[0]
    at = At(error.line, error.column)
    hint = next((text for signs, text in _HINTS if found and found[0] in signs), "")
    return ExpressionError(f"this cannot be read: {found!r}{hint}", at)


@v_args(inline=True)
class _Tree(Transformer[Token, Node]):
    """Makes nodes while the parser runs, so that nothing walks a deep tree by recursion."""

    def start(self, block: Node) -> Node:
        return block

    def block(self, *statements: Node) -> Node:
        return _block(statements)

    def group(self, block: Node) -> Node:
        return block

    def declare(self, scope: Token | None, type_: Token, *declared: Node) -> Node:
        kind = _SIZE.sub("", type_.lower()).split()
        word = " ".join([_TYPES.get(kind[0], kind[0]), *kind[1:]])
        life = _SCOPES.get(scope.lower(), scope.lower()) if scope else ""
        nodes = [Node("declare", one.at, one.parts, (life, word, *one.words)) for one in declared]
        return nodes[0] if len(nodes) == 1 else _block(nodes)

    def declared(self, name: Token, equal: Token | None, value: Node | None) -> Node:
        return Node("declared", _at(name), () if value is None else (value,), (name.lower(),))

    def sized(self, name: Token, size: Token) -> Node:
        return Node("declared", _at(name), (), (name.lower(), str(size)))

    def assign(self, name: Token, equal: Token, value: Node) -> Node:
        return Node("assign", _at(name), (value,), (str(name),))

    def branch(self, condition: Node, then: Node, otherwise: Node | None = None) -> Node:
        parts = [condition, _block([then])]
        if otherwise is not None:
            last = _block([otherwise])
            # An else with nothing but an if is one more condition, not one more level.
            alone = len(last.parts) == 1 and last.parts[0].what == "if"
            parts += last.parts[0].parts if alone else [last]
        return Node("if", condition.at, tuple(parts))

    def while_loop(self, condition: Node, body: Node) -> Node:
        return Node("while", condition.at, (condition, _block([body])))

    def for_loop(self, name: Token, equal: Token, *parts: Node | None) -> Node:
        first, last, step, body = parts
        assert first is not None and last is not None and body is not None  # noqa: S101 - grammar
        step = step or Node("literal", _at(name), words=("int",), value=1)
        return Node("for", _at(name), (first, last, step, _block([body])), (str(name),))

    def give(self, word: Token, value: Node | None) -> Node:
        return Node("return", _at(word), () if value is None else (value,))

    def bare(self, value: Node) -> Node:
        return Node("bare", value.at, (value,))

    def either(self, *parts: Node) -> Node:
        return _flat("either", parts)

    def both(self, *parts: Node) -> Node:
        return _flat("both", parts)

    def join(self, *parts: Node) -> Node:
        return _flat("join", parts)

    def among(self, *parts: Node) -> Node:
        return Node("among", parts[0].at, parts)

    def negated(self, operand: Node) -> Node:
        return Node("not", operand.at, (operand,))

    def compare(self, left: Node, operator: Token, right: Node) -> Node:
        word = {"=": "==", "<>": "!="}.get(operator, str(operator))
        return Node("compare", _at(operator), (left, right), (word,))

    def chain(self, *parts: Any) -> Node:
        words = tuple(str(word) for word in parts[1::2])
        first, *rest = parts[::2]
        # (a + b) + c is a + b + c; both work from the left.
        if first.what == "chain" and (first.words[0] in "+-") == (words[0] in "+-"):
            return Node("chain", first.at, (*first.parts, *rest), first.words + words)
        return Node("chain", first.at, (first, *rest), words)

    def signed(self, sign: Token, operand: Node) -> Node:
        return operand if sign == "+" else Node("minus", _at(sign), (operand,))

    def real(self, token: Token) -> Node:
        value = float(token)
        if value == float("inf"):
            raise ExpressionError(f"{token[:40]} is too large for a double", _at(token))
        return Node("literal", _at(token), words=("double",), value=value)

    def integer(self, token: Token) -> Node:
        value = whole_from(token)
        if value is None or whole(value) is None:
            raise ExpressionError(f"{token[:40]} is too large for a whole number", _at(token))
        return Node("literal", _at(token), words=("int",), value=value)

    def text(self, token: Token) -> Node:
        value = token[1:-1].replace(token[0] * 2, token[0])
        return Node("literal", _at(token), words=("string",), value=value)

    def date(self, token: Token) -> Node:
        value = read_date(token[1:-1].strip())
        if value is None:
            raise ExpressionError(f"{token} is not a date, such as #2026-11-23#", _at(token))
        return Node("literal", _at(token), words=("date",), value=value)

    def constant(self, token: Token) -> Node:
        word = token.lower()
        if word == "null":
            return Node("literal", _at(token), words=("null",))
        return Node("literal", _at(token), words=("int",), value=int(word == "true"))

    def name(self, token: Token) -> Node:
        return Node("name", _at(token), words=(str(token),))

    def quoted(self, token: Token) -> Node:
        return Node("quoted", _at(token), words=(str(token[1:-1]),))

    def call(self, name: Token, *arguments: Node | None) -> Node:
        given = tuple(part for part in arguments if part is not None)
        return Node("call", _at(name), given, (name.lower(),))

    def method(self, name: Token, method: Token, *arguments: Node | None) -> Node:
        given = tuple(part for part in arguments if part is not None)
        return Node("method", _at(name), given, (_plain(name), method.lower()))

    def element(self, name: Token, place: Node) -> Node:
        return Node("method", _at(name), (place,), (_plain(name), "get"))


def _plain(name: Token) -> str:
    return str(name[1:-1] if name.type == "QUOTED" else name)


def _flat(what: str, parts: tuple[Node, ...]) -> Node:
    """Make one node of a or (b or c): the order of the operands is the same."""
    flat: list[Node] = []
    for part in parts:
        flat += part.parts if part.what == what else [part]
    return Node(what, flat[0].at, tuple(flat))


def _block(statements: "tuple[Node, ...] | list[Node]") -> Node:
    flat: list[Node] = []
    for statement in statements:
        flat += statement.parts if statement.what == "block" else [statement]
    return Node("block", flat[0].at if flat else _START, tuple(flat))


def _at(token: Token) -> At:
    return At(token.line or 1, token.column or 1)


@cache
def _parser() -> Lark:
    grammar = files("espha.languages.eel").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", maybe_placeholders=True, transformer=_Tree())
