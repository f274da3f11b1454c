"""Statements: a block of them to one function.

A statement is a function of the row that returns None to go on, or the value of a `return` in a
tuple. A run may take MAX_STEPS steps: each round of a loop and each call of a window's own
function counts one step and one more for every eight nodes in its body. Work on long strings
counts too, always for functions whose work can grow with the square, else where there is a loop.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from espha.languages.eel.arrays import MAX_SIZE
from espha.languages.eel.calls import Calls, Udfs
from espha.languages.eel.closures import Row, Run, Typed, built, chosen, constant
from espha.languages.eel.errors import ExpressionError
from espha.languages.eel.scope import TYPES_OF_NAMES, Scope, Variable, check_height
from espha.languages.eel.syntax import Node
from espha.languages.eel.value_types import ELEMENTS, Convert, ValueType, cast, common, same

Statement = Callable[[Row], tuple[Any] | None]


@dataclass(frozen=True, slots=True)
class Program:
    """What a block becomes.

    Attributes:
        type: of its value; None: it never has one.
        run: runs it and returns its value.
        height: how deep the calls of `run` nest.
    """

    type: ValueType | None
    run: Run
    height: int


def program(block: Node, scope: Scope, udfs: Udfs, depth: int = 0) -> Program:
    """Make a function of a block.

    Raises:
        ExpressionError: names or types do not fit.
    """
    scope.counts = scope.counts or _has_loop(block)
    builder = _Statements(scope, udfs, depth)
    tree = builder.tree(block)
    if tree is not None:
        return Program(tree.type, tree.run, tree.height)
    return builder.program(block)


def steps_of(body: Node) -> int:
    """Return what one round through `body` costs."""
    return 1 + body.size // 8


class _Results:
    """The values that a program can have: each becomes the type that all have in common."""

    def __init__(self, cell: Variable | None) -> None:
        self.cell = cell
        self.types: list[ValueType] = []
        self.converts: list[Convert] = []

    def add(self, type_: ValueType) -> int:
        """Note a value of this type; the number says which of `converts` is for it."""
        self.types.append(type_)
        self.converts.append(same)
        return len(self.types) - 1

    def settle(self, at: Node) -> ValueType | None:
        """Decide on the type."""
        if not self.types:
            return None
        try:
            type_ = common(self.types)
            self.converts[:] = [cast(each, type_) for each in self.types]
        except ExpressionError as error:
            raise ExpressionError(f"the values returned: {error}", at.at) from None
        return type_


class _Statements(Calls):
    """Makes functions of statements; one method for each kind of node."""

    def __init__(self, scope: Scope, udfs: Udfs, depth: int) -> None:
        super().__init__(scope, udfs, depth)
        self._results = _Results(None)
        self._height = 0

    def tree(self, block: Node) -> Typed | None:
        """Return the expression that a block amounts to; None when it needs statements."""
        if not _is_tree(block):
            return None
        (node,) = block.parts
        if node.what != "if":
            return self.typed(node.parts[0]) if node.parts else constant("null", None)
        return self._chosen(node)

    def _chosen(self, node: Node) -> Typed:
        tests, blocks = _branches(node)
        conditions = [self.condition(test, "if") for test in tests]
        values = [self.tree(block) or constant("null", None) for block in blocks]
        try:
            type_ = common(value.type for value in values)
        except ExpressionError as error:
            raise ExpressionError(f"the values of if: {error}", node.at) from None
        values = [self.cast(value, type_, node) for value in values]
        otherwise = values[len(tests)] if len(values) > len(tests) else constant("null", None)
        runs = [(one.run, two.run) for one, two in zip(conditions, values, strict=False)]
        return built(type_, [*conditions, *values, otherwise], chosen(runs, otherwise.run))

    def program(self, block: Node) -> Program:
        """Make a function of a block with statements."""
        cell = self.scope.local("null")
        self._results = results = _Results(cell)
        copies = [found for name in _assigned(block) if (found := self.scope.copy(name))]
        body = _copying(copies, self._block(block, wanted=True))
        type_ = results.settle(block)
        cells, slot = cell.cells, cell.slot

        def run(row: Row) -> Any:
            returned = body(row)
            return cells[slot] if returned is None else returned[0]

        return Program(type_, run, self._height + block.height)

    def _block(self, block: Node, *, wanted: bool) -> Statement:
        """Make a function of the statements; `wanted` says whether the last value counts."""
        counts: list[bool] = []
        for node in reversed(block.parts):
            counts.append(wanted)
            wanted = wanted and not _settles(node)
        self.depth += 1
        made = [
            self._statement(node, counted)
            for node, counted in zip(block.parts, reversed(counts), strict=True)
        ]
        self.depth -= 1
        return _in_order([statement for statement in made if statement is not None])

    def _statement(self, node: Node, wanted: bool) -> Statement | None:
        make = getattr(self, f"_statement_{node.what}")
        result: Statement | None = make(node, wanted)
        return result

    def _noted(self, value: Typed, node: Node) -> Typed:
        self._height = max(self._height, value.height)
        check_height(self._height + node.height, node)
        return value

    def _statement_bare(self, node: Node, wanted: bool) -> Statement | None:
        value = self._noted(self.typed(node.parts[0]), node)
        if wanted and not _is_print(node):
            return self._result(value)
        if value.constant:
            return None
        run = value.run

        def effect(row: Row) -> None:
            run(row)

        return effect

    def _result(self, value: Typed) -> Statement:
        cell = self._results.cell
        assert cell is not None  # noqa: S101 - set before any statement
        run, cells, slot = value.run, cell.cells, cell.slot
        converts, number = self._results.converts, self._results.add(value.type)

        def store(row: Row) -> None:
            cells[slot] = converts[number](run(row))

        return store

    def _statement_return(self, node: Node, wanted: bool) -> Statement:
        value = self.typed(node.parts[0]) if node.parts else constant("null", None)
        run = self._noted(value, node).run
        converts, number = self._results.converts, self._results.add(value.type)
        return lambda row: (converts[number](run(row)),)

    def _statement_declare(self, node: Node, wanted: bool) -> Statement | None:
        scope, word, name, *size = node.words
        type_ = self._type(word, node)
        if size and type_ not in ELEMENTS:
            raise ExpressionError(f"{name!r} is no array; write: {word} array {name}(…)", node.at)
        if not node.parts:
            self.scope.declare(scope, type_, name, node.at, _empty(size, node))
            return None
        value = self._noted(self._assigned(node.parts[0], type_), node)
        new = self.scope.variable(name) is None
        variable = self.scope.declare(scope, type_, name, node.at)
        if not scope or self.scope.once:
            return _assignment(variable, value.run)
        if not value.constant:
            reason = f"the first value of a {scope} variable must not depend on anything"
            raise ExpressionError(reason, node.at)
        if new:
            variable.cells[variable.slot] = value.value
        return None

    def _type(self, word: str, node: Node) -> ValueType:
        if word not in TYPES_OF_NAMES:
            raise ExpressionError(f"there is no {word}", node.at)
        return TYPES_OF_NAMES[word]

    def _statement_assign(self, node: Node, wanted: bool) -> Statement:
        variable = self._target(node)
        if wanted and self.scope.is_copy(node.words[0]):
            reason = f"{node.words[0]!r} is a field and cannot be assigned; use == to compare"
            raise ExpressionError(reason, node.at)
        value = self._noted(self._assigned(node.parts[0], variable.type), node)
        assign = _assignment(variable, value.run)
        if not wanted:
            return assign
        store = self._result(Typed(variable.type, variable.read))
        return _in_order([assign, store])

    def _assigned(self, node: Node, type_: ValueType) -> Typed:
        return self.cast(self.typed(node), type_, node)

    def _target(self, node: Node) -> Variable:
        name = node.words[0]
        variable = self.scope.variable(name)
        if variable is not None and variable.type != "regex":
            return variable
        if variable is not None:
            raise ExpressionError(f"{name!r} is a regex; use {name}.compile(…)", node.at)
        raise ExpressionError(
            f"{name!r} is not declared; write for example: integer {name}", node.at
        )

    def _statement_if(self, node: Node, wanted: bool) -> Statement:
        tests, blocks = _branches(node)
        runs = [self._noted(self.condition(test, "if"), node).run for test in tests]
        made = [self._block(block, wanted=wanted) for block in blocks]
        otherwise = made[len(runs)] if len(made) > len(runs) else _nothing
        return chosen(list(zip(runs, made, strict=False)), otherwise)

    def _statement_while(self, node: Node, wanted: bool) -> Statement:
        test = self._noted(self.condition(node.parts[0], "while"), node).run
        body = self._block(node.parts[1], wanted=wanted)
        spend = self._spender(node)

        def loop(row: Row) -> tuple[Any] | None:
            while test(row):
                spend()
                returned = body(row)
                if returned is not None:
                    return returned
            return None

        return loop

    def _statement_for(self, node: Node, wanted: bool) -> Statement:
        variable = self._target(node)
        if variable.type not in {"int", "double"}:
            reason = f"for counts with an integer or a double, not {variable.type}"
            raise ExpressionError(reason, node.at)
        bounds = [
            self._noted(self.cast(self.condition(part, "for"), variable.type, part), node).run
            for part in node.parts[:3]
        ]
        body, spend = self._block(node.parts[3], wanted=wanted), self._spender(node)
        cells, slot = variable.cells, variable.slot

        def loop(row: Row) -> tuple[Any] | None:
            value, last, step = (bound(row) for bound in bounds)
            if value is None or last is None or step is None:
                return None
            goes_on = operator.le if step >= 0 else operator.ge
            while goes_on(value, last):
                spend()
                cells[slot] = value
                returned = body(row)
                if returned is not None:
                    return returned
                value += step
            return None

        return loop

    def _spender(self, node: Node) -> Callable[[], None]:
        self.scope.needs.add("context")
        return partial(self.scope.context.spend, steps_of(node))


def _assigned(node: Node) -> list[str]:
    """Return the names that statements assign values to, each once."""
    own = [node.words[0]] if node.what in {"assign", "for"} else []
    return list(dict.fromkeys(own + [name for part in node.parts for name in _assigned(part)]))


def _copying(copies: Sequence[tuple[Variable, int]], body: Statement) -> Statement:
    """Return `body`, before which variables take the values of their fields."""
    if not copies:
        return body
    targets = [(variable.cells, variable.slot, place) for variable, place in copies]

    def run(row: Row) -> tuple[Any] | None:
        for cells, slot, place in targets:
            cells[slot] = row[place]
        return body(row)

    return run


def _empty(size: list[str], node: Node) -> tuple[None, ...] | None:
    """Return an array of so many nulls; None without a size."""
    if not size:
        return None
    if len(size[0]) > 9 or int(size[0]) > MAX_SIZE:
        raise ExpressionError(f"an array has at most {MAX_SIZE} elements", node.at)
    return (None,) * int(size[0])


def _has_loop(node: Node) -> bool:
    return node.what in {"while", "for"} or any(_has_loop(part) for part in node.parts)


def _nothing(_row: Row) -> None:
    return None


def _in_order(statements: Sequence[Statement]) -> Statement:
    if not statements:
        return _nothing
    if len(statements) == 1:
        return statements[0]

    def run(row: Row) -> tuple[Any] | None:
        for statement in statements:
            returned = statement(row)
            if returned is not None:
                return returned
        return None

    return run


def _assignment(variable: Variable, run: Run) -> Statement:
    cells, slot = variable.cells, variable.slot

    def assign(row: Row) -> None:
        cells[slot] = run(row)

    return assign


def _branches(node: Node) -> tuple[list[Node], list[Node]]:
    """Return the conditions of an if, and its blocks; one more block stands for else."""
    pairs = len(node.parts) // 2 * 2
    return list(node.parts[:pairs:2]), [*node.parts[1:pairs:2], *node.parts[pairs:]]


def _is_print(node: Node) -> bool:
    return node.parts[0].what == "call" and node.parts[0].words == ("print",)


def _is_tree(block: Node) -> bool:
    """Whether a block is one value, or an if with one value in each branch."""
    if len(block.parts) != 1:
        return False
    (node,) = block.parts
    if node.what == "if":
        return all(_is_tree(each) for each in _branches(node)[1])
    return node.what == "return" or (node.what == "bare" and not _is_print(node))


def _settles(node: Node) -> bool:
    """Whether a statement surely gives a value, so that no earlier one counts."""
    if node.what == "if":
        tests, blocks = _branches(node)
        return len(blocks) > len(tests) and all(
            any(_settles(part) for part in block.parts) for block in blocks
        )
    return node.what in {"return", "assign"} or (node.what == "bare" and not _is_print(node))
