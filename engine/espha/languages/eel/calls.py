"""Types the calls of functions, of a window's own functions and of a regex's methods."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol

import structlog

from espha.languages.eel import dates, strings
from espha.languages.eel.arrays import MAX_SIZE
from espha.languages.eel.arrays import METHODS as ARRAY_METHODS
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
from espha.languages.eel.value_types import ELEMENTS, SCALARS, ValueType, cast, common
from espha.languages.regex import RegexError, compiled
from espha.model.events import BadRecord
from espha.model.problems import meant

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
        reason = f"there is no function {name!r}{meant(name, known)}; known are {', '.join(known)}"
        raise ExpressionError(reason, node.at)

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
        """Return an argument as what the function takes."""
        type_ = value.type
        if letter == "v" or type_ == "null":
            return value
        if type_ not in SCALARS:
            wanted = {"d": "date", "s": "string", "n": "number"}[letter]
            raise ExpressionError(f"{call.words[0]}() takes a {wanted}, not {type_}", part.at)
        if letter == "s":
            return self.cast(value, "string", part)
        if letter == "d":
            return value if type_ == "int" else self.cast(value, "date", part)
        return self._numeric(value, part)

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
        self.scope.needs |= {"context", "clock"}
        context = self.scope.context
        return Typed("date", lambda _row: context.clock // 1000)

    def _call_todate(self, node: Node) -> Typed:
        """Read a text, with or without a format; make a date of any other value."""
        value, *formats = self._arguments(node, 1, 2)
        if value.type != "string" or not formats:
            return self.cast(value, "date", node)
        (shape,) = [self._fitting("s", each, node.parts[1], node) for each in formats]
        run = applied(dates.read_date, [value.run, shape.run], nulls=False)
        return built("date", [value, shape], run)

    def _call_toboolean(self, node: Node) -> Typed:
        self._arguments(node, 1, 1)
        return self.condition(node.parts[0], "toboolean()")

    def _call_raiseerror(self, node: Node) -> Typed:
        """Refuse the event."""
        (value,) = self._arguments(node, 1, 1)
        run = self._fitting("s", value, node.parts[0], node).run

        def refuse(row: Row) -> int:
            raise BadRecord(f"the expression raises an error: {(run(row) or '')[:_PRINTED]}")

        return Typed("int", refuse, 1 + value.height)

    def _call_parse(self, node: Node) -> Typed:
        """Put the words of a list into variables, and return how many it has."""
        text, separator, *_ = self._arguments(node, 3, None)
        targets = [self._variable(part, node) for part in node.parts[2:]]
        casts = [(target, cast("string", target.type)) for target in targets]

        def store(words: tuple[str, ...]) -> None:
            for place, (target, convert) in enumerate(casts):
                word = words[place] if place < len(words) else None
                target.cells[target.slot] = convert(word)

        return self._words(node, text, separator, store)

    def _call_aparse(self, node: Node) -> Typed:
        """Put the words of a list into an array, and return how many it has."""
        text, separator, _ = self._arguments(node, 3, 3)
        target = self._variable(node.parts[2], node)
        convert = self._array_cast(target, node)

        def store(words: tuple[str, ...]) -> None:
            target.cells[target.slot] = convert(words)

        return self._words(node, text, separator, store)

    def _array_cast(self, target: Variable, node: Node) -> Callable[[Any], Any]:
        try:
            return cast("array(string)", target.type)
        except ExpressionError:
            raise ExpressionError(f"{node.words[0]}() needs an array", node.parts[2].at) from None

    def _words(
        self,
        node: Node,
        text: Typed,
        separator: Typed,
        store: Callable[[tuple[str, ...]], None],
    ) -> Typed:
        text = self._fitting("s", text, node.parts[0], node)
        separator = self._fitting("s", separator, node.parts[1], node)
        split = self.counted(strings.words_of, lambda text, _: 1 + len(text) // 100)
        run = applied(split, [text.run, separator.run], nulls=False)

        def words(row: Row) -> int | None:
            found = run(row)
            if found is None:
                return None
            store(found[:MAX_SIZE])
            return len(found)

        return Typed("int", words, 2 + max(text.height, separator.height))

    def _variable(self, part: Node, call: Node) -> Variable:
        """Return the variable that an argument names: the function puts something into it."""
        variable = self.scope.variable(part.words[0]) if part.what == "name" else None
        if variable is None:
            reason = f"{call.words[0]}() puts its words into variables; declare: string word"
            raise ExpressionError(reason, part.at)
        return variable

    def _call_datepart(self, node: Node) -> Typed:
        """Take the part and the date, in either order."""
        part, date = self._arguments(node, 2, 2)
        nodes = node.parts
        if date.type == "string" and part.type != "string":
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
        held = self._name(Node("name", node.at, words=(name,))) if word in ARRAY_METHODS else None
        if held is not None and held.type in ELEMENTS:
            return self._array_method(node, held, variable)
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
        run = _kept(method.apply, variable, [value.run for value in values], spend)
        return Typed(method.gives, run, 1 + max((value.height for value in values), default=0))

    def _array_method(self, node: Node, held: Typed, variable: Variable | None) -> Typed:
        name, word = node.words
        method, element = ARRAY_METHODS[word], ELEMENTS[held.type]
        call = Node("call", node.at, node.parts, (f"{name}.{word}",))
        values = self._arguments(call, method.needed, len(method.takes))
        changes = method.changes == len(values)
        if changes and variable is None:
            raise ExpressionError(f"{name!r} is a field and cannot be changed", node.at)
        triples = zip(method.takes, values, node.parts, strict=False)
        values = [
            self.cast(value, element, part)
            if letter == "e"
            else self._fitting(letter, value, part, call)
            for letter, value, part in triples
        ]
        type_ = element if method.gives == "element" else method.gives
        height = 1 + max((value.height for value in values), default=0)
        runs, apply = [value.run for value in values], method.apply
        self.scope.needs.add("context")
        if variable is not None and changes:
            return Typed(type_, _kept(apply, variable, runs, self.scope.context.spend), height)
        read = held.run

        def run(row: Row) -> Any:
            array = read(row)
            return None if array is None else apply(array, *[part(row) for part in runs])[1]

        return Typed(type_, run, height)


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


def _kept(
    apply: Callable[..., Any], variable: Variable, runs: list[Run], spend: Callable[[int], None]
) -> Run:
    """Return what applies a method to what a variable holds, and keeps what it holds then."""
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
