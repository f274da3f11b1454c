"""Types the calls of functions, of a window's own functions and of a regex's methods."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol

import structlog

from espha.languages.eel import dates
from espha.languages.eel.closures import Row, Run, Typed, applied, built, constant
from espha.languages.eel.errors import ExpressionError, listed
from espha.languages.eel.expressions import Expressions
from espha.languages.eel.functions import (
    CASTS,
    FUNCTIONS,
    NAMES_OF_TYPES,
    REFUSED,
    Cost,
    Function,
    by_length,
)
from espha.languages.eel.regexes import METHODS
from espha.languages.eel.scope import Scope, Variable
from espha.languages.eel.syntax import Node
from espha.languages.eel.value_types import NUMBERS, SCALARS, WHOLE, ValueType, common
from espha.languages.regex import RegexError, compiled

_log = structlog.get_logger(__name__)

_PRINTED: Final = 400
"""Longest text that print() logs, in characters."""


class Udfs(Protocol):
    """The functions that a window defines itself."""

    def __contains__(self, name: str) -> bool:
        """Say whether there is such a function."""

    def __iter__(self) -> Iterator[str]:
        """Return their names."""

    def call(self, node: Node, arguments: Sequence[Typed], scope: Scope, depth: int) -> Typed:
        """Return the expression that calls the function `node` with `arguments`."""


class Calls(Expressions):
    """Makes typed expressions of calls; a function that needs more than values has a method."""

    def __init__(self, scope: Scope, udfs: Udfs, depth: int = 0) -> None:
        super().__init__(scope, depth)
        self.udfs = udfs

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
            f"there is no function {name!r}; known are {', '.join(known)}", node.at
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
        type_ = function.gives
        if type_ == "same":
            type_ = values[0].type
        elif type_ == "common":
            type_ = common(value.type for value in values)
            values = [self.cast(value, type_, node) for value in values]
        apply = self.counted(function.apply, self._cost_of(function))
        run = applied(apply, [value.run for value in values], nulls=function.nulls)
        return built(type_, values, run)

    def _cost_of(self, function: Function) -> Cost | None:
        on_text = self.scope.counts and function.takes[0] == "s"
        return function.cost or (by_length if on_text else None)

    def _fitting(self, letter: str, value: Typed, part: Node, call: Node) -> Typed:
        """Check an argument; a stamp becomes the date that the function wants."""
        name, type_ = f"{call.words[0]}()", value.type
        if letter == "v" or type_ == "null":
            return value
        if letter == "d" and type_ in WHOLE:
            return self.cast(value, "date", part) if type_ == "stamp" else value
        if letter == "d":
            raise ExpressionError(f"{name} takes a date, not {type_}", part.at)
        if letter == "s" and type_ != "string":
            hint = "; tostring() makes one" if type_ in SCALARS else ""
            raise ExpressionError(f"{name} takes a string, not {type_}{hint}", part.at)
        if letter == "n" and type_ not in NUMBERS:
            hint = "; todouble() makes one" if type_ in SCALARS else ""
            raise ExpressionError(f"{name} takes a number, not {type_}{hint}", part.at)
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
        if date.type == "string":
            part, date, nodes = date, part, nodes[::-1]
        part = self._fitting("s", part, nodes[0], node)
        date = self._fitting("d", date, nodes[1], node)
        run = applied(dates.part_of, [part.run, date.run], nulls=False)
        return built("int", [part, date], run)

    def _call_typeof(self, node: Node) -> Typed:
        (value,) = self._arguments(node, 1, 1)
        return constant("string", NAMES_OF_TYPES.get(value.type, value.type))

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
        types = self._parameters(node)
        (number,) = self._arguments(node, 1, 1)
        self._fitting("n", number, node.parts[0], node)
        variables = [self.scope.parameter(place) for place in range(len(types))]
        if number.constant:
            place = int(number.value or 0) - 1
            if not 0 <= place < len(variables):
                return constant("null", None)
            return Typed(types[place], variables[place].read)
        type_ = common(types)
        runs = [self.cast(Typed(v.type, v.read), type_, node).run for v in variables]
        run = number.run

        def chosen(row: Row) -> Any:
            value = run(row)
            place = 0 if value is None else int(value)
            return runs[place - 1](row) if 1 <= place <= len(runs) else None

        return Typed(type_, chosen, 2 + number.height)

    def _parameters(self, node: Node) -> tuple[ValueType, ...]:
        if self.scope.parameters is None:
            raise ExpressionError(f"{node.words[0]}() is for the functions in <udfs>", node.at)
        return self.scope.parameters

    def _method(self, node: Node) -> Typed:
        name, word = node.words
        variable = self.scope.variable(name)
        if variable is None or variable.type != "regex":
            raise ExpressionError(f"{name!r} is not a regex; declare it: regex {name}", node.at)
        method = METHODS.get(word)
        if method is None:
            known = listed(sorted(METHODS))
            raise ExpressionError(f"a regex has no {word!r}; it has {known}", node.at)
        call = Node("call", node.at, node.parts, (f"{name}.{word}",))
        values = self._arguments(call, method.needed, len(method.takes))
        triples = zip(method.takes, values, node.parts, strict=False)
        values = [self._fitting(letter, value, part, call) for letter, value, part in triples]
        if word == "compile" and values[0].constant and values[0].value is not None:
            _check_pattern(values[0].value, node.parts[0])
        self.scope.needs.add("context")
        spend = self.scope.context.spend
        run = _with_regex(method.apply, variable, [value.run for value in values], spend)
        return Typed(method.gives, run, 1 + max((value.height for value in values), default=0))


SPECIAL: Final = tuple(name[6:] for name in dir(Calls) if name.startswith("_call_"))
"""Functions that need more than values."""


def is_function(name: str) -> bool:
    """Say whether the language has a function of this name, in small letters."""
    return name in FUNCTIONS or name in CASTS or name in SPECIAL or name in REFUSED


def _check_pattern(text: str, node: Node) -> None:
    try:
        compiled(text)
    except RegexError as error:
        raise ExpressionError(str(error), node.at) from None


def _with_regex(
    apply: Callable[..., Any], variable: Variable, runs: list[Run], spend: Callable[[int], None]
) -> Run:
    cells, slot = variable.cells, variable.slot

    def run(row: Row) -> Any:
        values = [part(row) for part in runs]
        cells[slot], result, steps = apply(cells[slot], *values)
        spend(steps)
        return result

    return run


def _leaves(node: Node) -> list[Node]:
    if node.what in {"name", "quoted"}:
        return [node]
    return [leaf for part in node.parts for leaf in _leaves(part)]
