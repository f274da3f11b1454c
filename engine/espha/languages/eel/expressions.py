"""Types an expression and makes a function of it, from the leaves up."""

import operator
from collections.abc import Callable
from typing import Any, Final

from espha.languages.eel import numbers, strings
from espha.languages.eel.closures import (
    Apply,
    Typed,
    applied,
    bounded,
    built,
    compared,
    constant,
    decided,
    mapped,
)
from espha.languages.eel.errors import MAX_HEIGHT, ExpressionError
from espha.languages.eel.scope import EVENT_WORDS, Scope, check_height
from espha.languages.eel.syntax import Node
from espha.languages.eel.value_types import (
    NUMBERS,
    SCALARS,
    ValueType,
    cast,
    is_true,
    number_from,
    type_of,
)
from espha.model.literals import INT64, LARGEST, whole

_ARITHMETIC: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": numbers.divide,
    "%": numbers.remainder,
}
_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MIRRORED: Final = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Expressions:
    """Makes typed expressions of syntax trees; one method for each kind of node."""

    def __init__(self, scope: Scope, depth: int = 0) -> None:
        self.scope = scope
        self.depth = depth

    def typed(self, node: Node) -> Typed:
        """Return the typed expression of a node.

        Raises:
            ExpressionError: unknown names, or types that do not fit.
        """
        self.depth += 1
        if self.depth > MAX_HEIGHT:
            raise ExpressionError(f"with its functions nested deeper than {MAX_HEIGHT}", node.at)
        result: Typed = getattr(self, f"_{node.what}")(node)
        self.depth -= 1
        check_height(result.height, node)
        return result

    def cast(self, value: Typed, type_: ValueType, node: Node) -> Typed:
        """Return `value` as an expression of another type."""
        try:
            convert = cast(value.type, type_)
        except ExpressionError as error:
            raise ExpressionError(str(error), node.at) from None
        if value.type in {type_, "null"}:
            return value
        run = value.run
        return built(type_, [value], lambda row: convert(run(row)))

    def condition(self, node: Node, where: str) -> Typed:
        """Return an expression that is true or false."""
        value = self.typed(node)
        if value.type == "string":
            return built("int", [value], mapped(is_true, value.run))
        if value.type not in NUMBERS | {"null"}:
            raise ExpressionError(f"{where} takes numbers, not {value.type}", node.at)
        return value

    def _literal(self, node: Node) -> Typed:
        return constant(node.words[0], node.value)

    def _name(self, node: Node) -> Typed:
        name = node.words[0]
        variable = self.scope.variable(name)
        if variable is not None and variable.type == "regex":
            raise ExpressionError(f"{name!r} is a regex, not a value; call its methods", node.at)
        if variable is not None:
            return Typed(variable.type, variable.read)
        found = self.scope.field(name)
        if found is None and name.lower() in EVENT_WORDS and not self.scope.once:
            return self._event_word(name.lower())
        return self._field(node)

    def _quoted(self, node: Node) -> Typed:
        return self._field(node)

    def _field(self, node: Node) -> Typed:
        found = self.scope.field(node.words[0])
        if found is None:
            raise self.scope.unknown(node.words[0], node.at)
        place, field = found
        return Typed(type_of(field.type), operator.itemgetter(place), place=place)

    def _event_word(self, name: str) -> Typed:
        self.scope.needs.add("context")
        context = self.scope.context
        if name == "esp_opcode":
            return Typed("string", lambda _row: context.event.opcode.lower(), folds=True)
        return Typed("string", lambda _row: context.event.flags, folds=True)

    def _minus(self, node: Node) -> Typed:
        value = self._number(node.parts[0], "-")
        if value.type == "double":
            return built("double", [value], mapped(operator.neg, value.run))
        negated = mapped(lambda number: whole(-number), value.run)
        return built("null" if value.type == "null" else "int", [value], negated)

    def _chain(self, node: Node) -> Typed:
        first, *rest = node.parts
        result = self.typed(first)
        for word, part in zip(node.words, rest, strict=True):
            result = self._calculate(result, word, self.typed(part), node)
        return result

    def _calculate(self, left: Typed, word: str, right: Typed, node: Node) -> Typed:
        types = {left.type, right.type}
        if not types <= SCALARS:
            raise ExpressionError(
                f"{word} takes numbers, not {' and '.join(sorted(types))}", node.at
            )
        if "string" in types and word == "+":
            return self._joined([self.cast(each, "string", node) for each in (left, right)])
        left, right = self._numeric(left, node), self._numeric(right, node)
        types = {left.type, right.type}
        if types == {"date", "stamp"}:
            left, right = self.cast(left, "stamp", node), self.cast(right, "stamp", node)
        type_ = _result(left.type, word, right.type)
        low, high = (-LARGEST, LARGEST) if type_ == "double" else INT64
        return built(type_, [left, right], bounded(_ARITHMETIC[word], low, high, left, right))

    def _join(self, node: Node) -> Typed:
        operands = [self.typed(part) for part in node.parts]
        pairs = zip(operands, node.parts, strict=True)
        return self._joined([self.cast(operand, "string", part) for operand, part in pairs])

    def _joined(self, operands: list[Typed]) -> Typed:
        def join(*values: str) -> str | None:
            return strings.bounded("".join(values))

        apply = self.counted(join, _by_all if self.scope.counts else None)
        run = applied(apply, [operand.run for operand in operands], nulls=False)
        return built("string", operands, run)

    def counted(self, apply: Apply, cost: Callable[..., int] | None) -> Apply:
        """Return the function, which takes steps when it has a cost."""
        if cost is None:
            return apply
        self.scope.needs.add("context")
        spend = self.scope.context.spend

        def counted(*values: Any) -> Any:
            spend(cost(*values))
            return apply(*values)

        return counted

    def _compare(self, node: Node) -> Typed:
        left, right = (self.typed(part) for part in node.parts)
        return self._compared(left, node.words[0], right, node)

    def _compared(self, left: Typed, word: str, right: Typed, node: Node) -> Typed:
        if left.type == "null":
            left, word, right = right, _MIRRORED[word], left
        if right.type == "null" and right.constant and word in {"==", "!="}:
            return _null_test(left, word)
        left, right = self._comparable(left, word, right, node)
        if left.type != right.type and {left.type, right.type} == {"date", "stamp"}:
            left, right = self.cast(left, "stamp", node), self.cast(right, "stamp", node)
        if left.folds or right.folds:
            left, right = _lowered(left), _lowered(right)
        if left.constant:
            left, word, right = right, _MIRRORED[word], left
        return built("int", [left, right], compared(_COMPARISONS[word], left, right))

    def _comparable(self, left: Typed, word: str, right: Typed, node: Node) -> tuple[Typed, Typed]:
        """Return both sides as values that can be compared; a string becomes what the other is."""
        types = {left.type, right.type} - {"null"}
        if types <= NUMBERS or types == {"string"}:
            return left, right
        if not types <= SCALARS:
            reason = f"{word} cannot compare {left.type} with {right.type}"
            raise ExpressionError(reason, node.at)
        return self._as(left, right.type, node), self._as(right, left.type, node)

    def _as(self, value: Typed, other: ValueType, node: Node) -> Typed:
        if value.type != "string":
            return value
        if other in {"date", "stamp"}:
            return self.cast(value, other, node)
        return built("double", [value], mapped(number_from, value.run))

    def _numeric(self, value: Typed, node: Node) -> Typed:
        return self.cast(value, "double", node) if value.type == "string" else value

    def _among(self, node: Node) -> Typed:
        value, *choices = (self.typed(part) for part in node.parts)
        tests = [
            self._compared(value, "==", choice, part)
            for choice, part in zip(choices, node.parts[1:], strict=True)
        ]
        return tests[0] if len(tests) == 1 else _logical(1, tests)

    def _not(self, node: Node) -> Typed:
        value = self.condition(node.parts[0], "not")
        return built("int", [value], mapped(lambda number: 0 if number else 1, value.run))

    def _either(self, node: Node) -> Typed:
        return _logical(1, [self.condition(part, "or") for part in node.parts])

    def _both(self, node: Node) -> Typed:
        return _logical(0, [self.condition(part, "and") for part in node.parts])

    def _number(self, node: Node, where: str) -> Typed:
        value = self._numeric(self.typed(node), node)
        if value.type not in NUMBERS | {"null"}:
            raise ExpressionError(f"{where} takes numbers, not {value.type}", node.at)
        return value


def _result(left: ValueType, word: str, right: ValueType) -> ValueType:
    """Return the type of an operation on numbers."""
    types = {left, right} - {"null"}
    if not types:
        return "null"
    if "double" in types or word == "/":
        return "double"
    for time in ("date", "stamp"):
        if word in {"+", "-"} and types <= {time, "int"} and time in types:
            return "int" if left == right else time
    return "int"


def _null_test(value: Typed, word: str) -> Typed:
    run, yes = value.run, int(word == "==")
    return built("int", [value], lambda row: yes if run(row) is None else 1 - yes)


def _lowered(value: Typed) -> Typed:
    return built("string", [value], mapped(str.lower, value.run))


def _by_all(*values: str) -> int:
    return sum(map(len, values)) // 1000


def _logical(by: int, operands: list[Typed]) -> Typed:
    return built("int", operands, decided(by, [operand.run for operand in operands]))
