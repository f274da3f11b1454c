"""Types an expression and makes a function of it, from the leaves up."""

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import structlog

from espha.model.eel import dates, numbers, texts
from espha.model.eel.closures import (
    Row,
    Run,
    Typed,
    applied,
    bounded,
    built,
    compared,
    constant,
    decided,
    mapped,
)
from espha.model.eel.errors import MAX_HEIGHT, ExpressionError, listed
from espha.model.eel.functions import CASTS, FUNCTIONS, NAMES_OF_KINDS, REFUSED, Function
from espha.model.eel.kinds import (
    HIGH,
    LARGEST,
    LOW,
    NUMBERS,
    SCALARS,
    WHOLE,
    Kind,
    cast,
    common,
    kind_of,
)
from espha.model.eel.regexes import METHODS
from espha.model.eel.scope import EVENT_WORDS, Scope, check_height
from espha.model.eel.syntax import Node

_log = structlog.get_logger(__name__)

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
_PRINTED: Final = 400
"""Longest text that print() logs, in characters."""


class Udfs(Protocol):
    """The functions that a window defines itself."""

    def __contains__(self, name: str) -> bool:
        """Say whether there is such a function."""

    def __iter__(self) -> Any:
        """Return their names."""

    def call(self, node: Node, arguments: Sequence[Typed], scope: Scope, depth: int) -> Typed:
        """Return the expression that calls the function `node` with `arguments`."""


class Expressions:
    """Makes typed expressions of syntax trees; one method for each kind of node."""

    def __init__(self, scope: Scope, udfs: Udfs, depth: int = 0) -> None:
        self.scope = scope
        self.udfs = udfs
        self.depth = depth

    def typed(self, node: Node) -> Typed:
        """Return the typed expression of a node.

        Raises:
            ExpressionError: unknown names, or kinds that do not fit.
        """
        self.depth += 1
        if self.depth > MAX_HEIGHT:
            raise ExpressionError(f"with its functions nested deeper than {MAX_HEIGHT}", node.at)
        result: Typed = getattr(self, f"_{node.what}")(node)
        self.depth -= 1
        check_height(result.height, node)
        return result

    def cast(self, value: Typed, kind: Kind, node: Node) -> Typed:
        """Return `value` as an expression of another kind."""
        try:
            convert = cast(value.kind, kind)
        except ExpressionError as error:
            raise ExpressionError(str(error), node.at) from None
        if value.kind in {kind, "null"}:
            return value
        run = value.run
        return built(kind, [value], lambda row: convert(run(row)))

    def condition(self, node: Node, where: str) -> Typed:
        """Return an expression that is true or false."""
        value = self.typed(node)
        if value.kind not in NUMBERS | {"null"}:
            raise ExpressionError(f"{where} takes numbers, not {value.kind}", node.at)
        return value

    def _literal(self, node: Node) -> Typed:
        return constant(node.words[0], node.value)

    def _name(self, node: Node) -> Typed:
        name = node.words[0]
        variable = self.scope.variable(name)
        if variable is not None:
            return Typed(variable.kind, variable.read)
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
        return Typed(kind_of(field.type), operator.itemgetter(place), place=place)

    def _event_word(self, name: str) -> Typed:
        self.scope.needs.add("context")
        context = self.scope.context
        if name == "esp_opcode":
            return Typed("string", lambda _row: context.event.opcode.lower(), folds=True)
        return Typed("string", lambda _row: context.event.flags, folds=True)

    def _minus(self, node: Node) -> Typed:
        value = self._number(node.parts[0], "-")
        if value.kind == "double":
            return built("double", [value], mapped(operator.neg, value.run))
        negated = mapped(lambda number: -number if number > LOW else None, value.run)
        return built("null" if value.kind == "null" else "int", [value], negated)

    def _chain(self, node: Node) -> Typed:
        first, *rest = node.parts
        result = self.typed(first)
        for word, part in zip(node.words, rest, strict=True):
            result = self._calculate(result, word, self.typed(part), node)
        return result

    def _calculate(self, left: Typed, word: str, right: Typed, node: Node) -> Typed:
        kinds = {left.kind, right.kind}
        if "string" in kinds:
            if word == "+" and kinds <= {"string", "null"}:
                return self._joined([left, right])
            hint = "; use & to join, or todouble() to count" if word == "+" else ""
            raise ExpressionError(f"{word} takes numbers, not string{hint}", node.at)
        if not kinds <= SCALARS:
            raise ExpressionError(
                f"{word} takes numbers, not {' and '.join(sorted(kinds))}", node.at
            )
        if kinds == {"date", "stamp"}:
            left, right = self.cast(left, "stamp", node), self.cast(right, "stamp", node)
        kind = _result(left.kind, word, right.kind)
        low, high = (-LARGEST, LARGEST) if kind == "double" else (LOW, HIGH)
        return built(kind, [left, right], bounded(_ARITHMETIC[word], low, high, left, right))

    def _join(self, node: Node) -> Typed:
        operands = [self.typed(part) for part in node.parts]
        pairs = zip(operands, node.parts, strict=True)
        return self._joined([self.cast(operand, "string", part) for operand, part in pairs])

    def _joined(self, operands: list[Typed]) -> Typed:
        run = applied(
            lambda *values: texts.bounded("".join(values)), [o.run for o in operands], nulls=False
        )
        return built("string", operands, run)

    def _compare(self, node: Node) -> Typed:
        left, right = (self.typed(part) for part in node.parts)
        return self._compared(left, node.words[0], right, node)

    def _compared(self, left: Typed, word: str, right: Typed, node: Node) -> Typed:
        if left.kind == "null":
            left, word, right = right, _MIRRORED[word], left
        if right.kind == "null" and right.constant and word in {"==", "!="}:
            return _null_test(left, word)
        self._comparable(left, word, right, node)
        if left.kind != right.kind and {left.kind, right.kind} == {"date", "stamp"}:
            left, right = self.cast(left, "stamp", node), self.cast(right, "stamp", node)
        if left.folds or right.folds:
            left, right = _lowered(left), _lowered(right)
        if left.constant:
            left, word, right = right, _MIRRORED[word], left
        return built("int", [left, right], compared(_COMPARISONS[word], left, right))

    def _comparable(self, left: Typed, word: str, right: Typed, node: Node) -> None:
        kinds = {left.kind, right.kind} - {"null"}
        if kinds <= NUMBERS or kinds == {"string"}:
            return
        hint = ""
        if kinds <= SCALARS:
            hint = "; todouble() makes a number of a string, tostring() a string of a number"
        reason = f"{word} cannot compare {left.kind} with {right.kind}{hint}"
        raise ExpressionError(reason, node.at)

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
        value = self.typed(node)
        if value.kind not in NUMBERS | {"null"}:
            raise ExpressionError(f"{where} takes numbers, not {value.kind}", node.at)
        return value

    def _call(self, node: Node) -> Typed:
        name = node.words[0]
        own = getattr(self, f"_call_{name}", None)
        if name in self.udfs:
            arguments = [self.typed(part) for part in node.parts]
            return self.udfs.call(node, arguments, self.scope, self.depth)
        if own is not None:
            result: Typed = own(node)
            return result
        if name in CASTS:
            (value,) = self._arguments(node, 1, 1)
            return self.cast(value, CASTS[name], node)
        if name in FUNCTIONS:
            return self._known(FUNCTIONS[name], node)
        if name in REFUSED:
            raise ExpressionError(f"{name}() is refused: {REFUSED[name]}", node.at)
        known = sorted([*FUNCTIONS, *CASTS, *SPECIAL, *self.udfs])
        raise ExpressionError(
            f"there is no function {name!r}; there are {', '.join(known)}", node.at
        )

    def _arguments(self, node: Node, fewest: int, most: int | None) -> list[Typed]:
        count = len(node.parts)
        if count < fewest or (most is not None and count > most):
            wanted = str(fewest) if most == fewest else f"{fewest} or more"
            if most is not None and most > fewest:
                wanted = f"{fewest} to {most}"
            noun = "argument" if wanted == "1" else "arguments"
            raise ExpressionError(f"{node.words[0]}() takes {wanted} {noun}, not {count}", node.at)
        return [self.typed(part) for part in node.parts]

    def _known(self, function: Function, node: Node) -> Typed:
        most = None if function.more else len(function.takes)
        values = self._arguments(node, function.needed, most)
        letters = function.takes.ljust(len(values), function.takes[-1])
        triples = zip(letters, values, node.parts, strict=False)
        values = [self._fitting(letter, value, part, node) for letter, value, part in triples]
        kind = function.gives
        if kind == "same":
            kind = values[0].kind
        elif kind == "common":
            kind = common(value.kind for value in values)
            values = [self.cast(value, kind, node) for value in values]
        run = applied(function.apply, [value.run for value in values], nulls=function.nulls)
        return built(kind, values, run)

    def _fitting(self, letter: str, value: Typed, part: Node, call: Node) -> Typed:
        """Check an argument; a stamp becomes the date that the function wants."""
        name, kind = f"{call.words[0]}()", value.kind
        if letter == "v" or kind == "null":
            return value
        if letter == "d" and kind in WHOLE:
            return self.cast(value, "date", part) if kind == "stamp" else value
        if letter == "d":
            raise ExpressionError(f"{name} takes a date, not {kind}", part.at)
        if letter == "s" and kind != "string":
            hint = "; tostring() makes one" if kind in SCALARS else ""
            raise ExpressionError(f"{name} takes a string, not {kind}{hint}", part.at)
        if letter == "n" and kind not in NUMBERS:
            hint = "; todouble() makes one" if kind in SCALARS else ""
            raise ExpressionError(f"{name} takes a number, not {kind}{hint}", part.at)
        return value

    def _call_iserror(self, node: Node) -> Typed:
        """1 when there is no result although every field and variable in it has a value."""
        (value,) = self._arguments(node, 1, 1)
        inputs = [self.typed(leaf).run for leaf in _leaves(node.parts[0])]
        run = value.run

        def failed(row: Row) -> int:
            return int(run(row) is None and all(part(row) is not None for part in inputs))

        return built("int", [value], failed)

    def _call_today(self, node: Node) -> Typed:
        self._arguments(node, 0, 0)
        if self.scope.once:
            raise ExpressionError("today() is the time of an event, and here is none", node.at)
        self.scope.needs.add("context")
        context = self.scope.context
        return Typed("date", lambda _row: context.clock // 1000)

    def _call_datepart(self, node: Node) -> Typed:
        """Take the part and the date, in either order."""
        part, date = self._arguments(node, 2, 2)
        nodes = node.parts
        if date.kind == "string":
            part, date, nodes = date, part, nodes[::-1]
        part = self._fitting("s", part, nodes[0], node)
        date = self._fitting("d", date, nodes[1], node)
        run = applied(dates.part_of, [part.run, date.run], nulls=False)
        return built("int", [part, date], run)

    def _call_typeof(self, node: Node) -> Typed:
        (value,) = self._arguments(node, 1, 1)
        return constant("string", NAMES_OF_KINDS.get(value.kind, value.kind))

    def _call_print(self, node: Node) -> Typed:
        """Log the values; 1."""
        values = self._arguments(node, 1, None)
        pairs = zip(values, node.parts, strict=True)
        runs = [self.cast(value, "string", part).run for value, part in pairs]

        def show(row: Row) -> int:
            shown = "".join("null" if (text := run(row)) is None else text for run in runs)
            _log.info("a model prints", text=shown[:_PRINTED])
            return 1

        return Typed("int", show, 1 + max(value.height for value in values))

    def _call_parametercount(self, node: Node) -> Typed:
        self._arguments(node, 0, 0)
        return constant("int", len(self._parameters(node)))

    def _call_parameter(self, node: Node) -> Typed:
        """Return the n-th argument of the function, from 1; null when there are fewer."""
        kinds = self._parameters(node)
        (number,) = self._arguments(node, 1, 1)
        self._fitting("n", number, node.parts[0], node)
        variables = [self.scope.parameter(place) for place in range(len(kinds))]
        if number.constant:
            place = int(number.value or 0) - 1
            if not 0 <= place < len(variables):
                return constant("null", None)
            return Typed(kinds[place], variables[place].read)
        kind = common(kinds)
        runs = [self.cast(Typed(v.kind, v.read), kind, node).run for v in variables]
        run = number.run

        def chosen(row: Row) -> Any:
            value = run(row)
            place = 0 if value is None else int(value)
            return runs[place - 1](row) if 1 <= place <= len(runs) else None

        return Typed(kind, chosen, 2 + number.height)

    def _parameters(self, node: Node) -> tuple[Kind, ...]:
        if self.scope.parameters is None:
            raise ExpressionError(f"{node.words[0]}() is for the functions in <udfs>", node.at)
        return self.scope.parameters

    def _method(self, node: Node) -> Typed:
        name, word = node.words
        variable = self.scope.variable(name)
        if variable is None or variable.kind != "regex":
            raise ExpressionError(f"{name!r} is no regex; declare it: regex {name}", node.at)
        method = METHODS.get(word)
        if method is None:
            known = listed(sorted(METHODS))
            raise ExpressionError(f"a regex has no {word!r}; it has {known}", node.at)
        call = Node("call", node.at, node.parts, (f"{name}.{word}",))
        values = self._arguments(call, method.needed, len(method.takes))
        triples = zip(method.takes, values, node.parts, strict=False)
        values = [self._fitting(letter, value, part, call) for letter, value, part in triples]
        if method.checks is not None and values[0].constant and values[0].value is not None:
            method.checks(values[0].value, node.at)
        return Typed(
            method.gives,
            _with_regex(method.apply, variable.cells, variable.slot, [v.run for v in values]),
            1 + max((value.height for value in values), default=0),
        )


SPECIAL: Final = tuple(name[6:] for name in dir(Expressions) if name.startswith("_call_"))
"""Functions that need more than values."""


def is_function(name: str) -> bool:
    """Say whether the language has a function of this name, in small letters."""
    return name in FUNCTIONS or name in CASTS or name in SPECIAL or name in REFUSED


def _with_regex(apply: Callable[..., Any], cells: list[Any], slot: int, runs: list[Run]) -> Run:
    def run(row: Row) -> Any:
        values = [part(row) for part in runs]
        cells[slot], result = apply(cells[slot], *values)
        return result

    return run


def _result(left: Kind, word: str, right: Kind) -> Kind:
    """Return the kind of an operation on numbers."""
    kinds = {left, right} - {"null"}
    if not kinds:
        return "null"
    if "double" in kinds or word == "/":
        return "double"
    for time in ("date", "stamp"):
        if word in {"+", "-"} and kinds <= {time, "int"} and time in kinds:
            return "int" if left == right else time
    return "int"


def _null_test(value: Typed, word: str) -> Typed:
    run, yes = value.run, int(word == "==")
    return built("int", [value], lambda row: yes if run(row) is None else 1 - yes)


def _lowered(value: Typed) -> Typed:
    return built("string", [value], mapped(str.lower, value.run))


def _logical(by: int, operands: list[Typed]) -> Typed:
    return built("int", operands, decided(by, [operand.run for operand in operands]))


def _leaves(node: Node) -> list[Node]:
    if node.what in {"name", "quoted"}:
        return [node]
    return [leaf for part in node.parts for leaf in _leaves(part)]
