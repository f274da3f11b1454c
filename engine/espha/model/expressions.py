"""Expressions of a model: text to a typed tree, and from there to a Python function.

Three types: `int` (int32, int64, date, stamp and the truth values 1 and 0), `double` (double,
money) and `string`. Null in, null out, with the exceptions that `docs/models.md` lists. A result
that does not exist (division by zero, a whole number beyond 64 bits, an infinite double) is null.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from lark import Lark, Token, Tree, UnexpectedInput

from espha.model import functions as fn
from espha.model.events import Value
from espha.model.project import Field
from espha.model.types import DOUBLES, INTEGERS

Kind = Literal["int", "double", "string"]
Row = tuple[Value, ...]
Run = Callable[[Row], Any]

MAX_LENGTH = 10_000
MAX_NAMED = 30
"""As many fields are named in a message."""
MAX_DEPTH = 100
"""A tree is walked by recursion; this keeps it far away from Python's limit."""


class ExpressionError(ValueError):
    """An expression cannot be used; the message says why in a sentence."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A typed expression.

    Attributes:
        kind: type of the result.
        text: the expression in one canonical spelling; equal trees have equal texts.
        run: computes the result from the values of a row, in schema order.
    """

    kind: Kind
    text: str
    run: Run


def compile_expression(text: str, fields: Sequence[Field]) -> Expression:
    """Compile `text`, which may use `fields`.

    Raises:
        ExpressionError: not an expression, an unknown field or function, or types that do not fit.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"the expression is longer than {MAX_LENGTH} characters")
    if not text.strip():
        raise ExpressionError("the expression is empty")
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        raise ExpressionError(_syntax(text, error)) from None
    if _height(tree) > MAX_DEPTH:
        raise ExpressionError(f"the expression is nested deeper than {MAX_DEPTH}")
    return _Builder(fields).build(tree)


def converter(kind: Kind, type_: str) -> Callable[[Any], Value]:
    """Return the function that makes a field's value from an expression's result.

    A double loses its fraction on the way to a whole number; what does not fit is null.

    Raises:
        ExpressionError: a string for a number, or the other way round.
    """
    if (kind == "string") != (type_ == "string"):
        raise ExpressionError(f"the expression gives {kind}, the field is {type_}")
    if type_ in INTEGERS:
        return fn.to_integer(*INTEGERS[type_])
    return fn.to_double if type_ in DOUBLES else fn.same


@cache
def _parser() -> Lark:
    grammar = files("espha.model").joinpath("expressions.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", maybe_placeholders=False)


def _syntax(text: str, error: UnexpectedInput) -> str:
    position = error.pos_in_stream
    token = getattr(error, "token", None)
    if position is None or (token is not None and token.type == "$END"):
        return "the expression ends too early"
    found = text[position : position + 20].split("\n", maxsplit=1)[0]
    hint = "; use == to compare" if found.startswith("=") else ""
    return f"the expression cannot be read at character {position + 1}, {found!r}{hint}"


def _height(tree: Tree[Token] | Token) -> int:
    heights: dict[int, int] = {}
    if isinstance(tree, Token):
        return 1
    for node in tree.iter_subtrees():
        below = (heights[id(child)] for child in node.children if isinstance(child, Tree))
        # An arithmetic chain is folded to the left, so its length counts as height.
        heights[id(node)] = max(below, default=0) + max(1, len(node.children) // 2)
    return heights[id(tree)]


class _Builder:
    """Types a syntax tree from the leaves up; one method for each node of the grammar."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = {field.name: (place, field) for place, field in enumerate(fields)}

    def build(self, node: Tree[Token] | Token) -> Expression:
        """Return the typed expression of a node."""
        if isinstance(node, Token):
            raise ExpressionError(f"{node!s} is not an expression")
        result: Expression = getattr(self, f"_{node.data}")(*node.children)
        return result

    def _integer(self, token: Token) -> Expression:
        if len(token) > 19 or fn.whole(int(token)) is None:
            raise ExpressionError(f"{token[:40]} is too large for a whole number")
        return _literal("int", str(int(token)), int(token))

    def _real(self, token: Token) -> Expression:
        value = fn.finite(float(token))
        if value is None:
            raise ExpressionError(f"{token[:40]} is too large for a double")
        return _literal("double", repr(value), value)

    def _text(self, token: Token) -> Expression:
        value = str(token[1:-1])
        quote = '"' if "'" in value else "'"
        return _literal("string", f"{quote}{value}{quote}", value)

    def _field(self, token: Token) -> Expression:
        if token not in self._fields:
            known = ", ".join([*self._fields][:MAX_NAMED])
            raise ExpressionError(f"there is no field {str(token)!r}; the input has {known}")
        place, field = self._fields[token]
        return Expression(_kind(field.type), field.name, lambda row: row[place])

    def _call(self, name: Token, *arguments: Tree[Token]) -> Expression:
        function = name.lower()
        if function != "isnull" and function not in fn.FUNCTIONS:
            known = ", ".join(sorted([*fn.FUNCTIONS, "isnull"]))
            raise ExpressionError(f"there is no function {str(name)!r}; there are {known}")
        if len(arguments) != 1:
            raise ExpressionError(f"{function}() takes one argument, not {len(arguments)}")
        argument = self.build(arguments[0])
        text = f"{function}({argument.text})"
        if function == "isnull":
            inner = argument.run
            return Expression("int", text, lambda row: int(inner(row) is None))
        takes, gives, apply = fn.FUNCTIONS[function]
        if (takes == "string") != (argument.kind == "string"):
            raise ExpressionError(f"{function}() takes a {takes}, not {argument.kind}")
        kind: Kind = argument.kind if gives == "same" else "int"
        return Expression(kind, text, _unary(_bounded(kind, apply), argument.run))

    def _signed(self, sign: Token, operand: Tree[Token]) -> Expression:
        value = _number(self.build(operand), str(sign))
        if sign == "+":
            return value
        negate = _bounded(value.kind, lambda number: -number)
        return Expression(value.kind, f"(-{value.text})", _unary(negate, value.run))

    def _arithmetic(self, *parts: Any) -> Expression:
        result = self.build(parts[0])
        for operator, operand in zip(parts[1::2], parts[2::2], strict=True):
            result = _calculate(result, str(operator), self.build(operand))
        return result

    def _join(self, *parts: Tree[Token]) -> Expression:
        operands = [self.build(part) for part in parts]
        if any(operand.kind == "double" for operand in operands):
            raise ExpressionError("& joins strings and whole numbers, not doubles")
        runs = [operand.run for operand in operands]

        def run(row: Row) -> str | None:
            values = [part(row) for part in runs]
            return None if None in values else "".join(map(str, values))

        return Expression("string", _joined(operands, "&"), run)

    def _compare(self, left: Tree[Token], operator: Token, right: Tree[Token]) -> Expression:
        first, second = self.build(left), self.build(right)
        if (first.kind == "string") != (second.kind == "string"):
            raise ExpressionError(f"{operator} cannot compare {first.kind} with {second.kind}")
        run = _binary(fn.COMPARISONS[operator], first.run, second.run)
        return Expression("int", f"({first.text}{operator}{second.text})", run)

    def _negated(self, operand: Tree[Token]) -> Expression:
        value = _number(self.build(operand), "not")
        return Expression("int", f"(not {value.text})", _unary(lambda v: int(not v), value.run))

    def _either(self, *parts: Tree[Token]) -> Expression:
        return self._logical("or", 1, parts)

    def _both(self, *parts: Tree[Token]) -> Expression:
        return self._logical("and", 0, parts)

    def _logical(self, word: str, decides: int, parts: Sequence[Tree[Token]]) -> Expression:
        """Three-valued logic: one operand that decides is enough, else a null makes it null."""
        operands = [_number(self.build(part), word) for part in parts]
        runs = [operand.run for operand in operands]

        def run(row: Row) -> int | None:
            result: int | None = 1 - decides
            for part in runs:
                value = part(row)
                if value is None:
                    result = None
                elif bool(value) == decides:
                    return decides
            return result

        return Expression("int", _joined(operands, f" {word} "), run)


def _kind(type_: str) -> Kind:
    if type_ in INTEGERS:
        return "int"
    return "double" if type_ in DOUBLES else "string"


def _literal(kind: Kind, text: str, value: Value) -> Expression:
    return Expression(kind, text, lambda _row: value)


def _number(expression: Expression, operator: str) -> Expression:
    if expression.kind == "string":
        raise ExpressionError(f"{operator} takes numbers, not string")
    return expression


def _joined(operands: Sequence[Expression], separator: str) -> str:
    return f"({separator.join(operand.text for operand in operands)})"


def _calculate(left: Expression, operator: str, right: Expression) -> Expression:
    if "string" in (left.kind, right.kind):
        hint = "; use & to join strings" if operator == "+" else ""
        raise ExpressionError(f"{operator} takes numbers, not string{hint}")
    both_whole = left.kind == right.kind == "int"
    kind: Kind = "int" if both_whole and operator != "/" else "double"
    apply = fn.ARITHMETIC[operator]
    bound = fn.whole if kind == "int" else fn.finite
    run = _binary(
        lambda one, two: None if (v := apply(one, two)) is None else bound(v), left.run, right.run
    )
    return Expression(kind, f"({left.text}{operator}{right.text})", run)


def _bounded(kind: Kind, apply: Callable[[Any], Any]) -> Callable[[Any], Any]:
    if kind == "string":
        return apply
    bound: Callable[[Any], Any] = fn.whole if kind == "int" else fn.finite
    return lambda value: bound(apply(value))


def _unary(apply: Callable[[Any], Any], operand: Run) -> Run:
    def run(row: Row) -> Any:
        value = operand(row)
        return None if value is None else apply(value)

    return run


def _binary(apply: Callable[[Any, Any], Any], left: Run, right: Run) -> Run:
    def run(row: Row) -> Any:
        one, two = left(row), right(row)
        return None if one is None or two is None else apply(one, two)

    return run
