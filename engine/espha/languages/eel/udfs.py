"""What a window initializes: variables at the start, and functions of its own."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, ConfigDict

from espha.languages.eel.closures import Row, Run, Typed
from espha.languages.eel.errors import ExpressionError
from espha.languages.eel.parser import parse
from espha.languages.eel.scope import Scope, Variable, check_height
from espha.languages.eel.statements import program, steps_of
from espha.languages.eel.syntax import Node
from espha.languages.eel.value_types import Convert, ValueType, converter, type_of
from espha.model.events import BadRecord

MAX_CALLS: Final = 20
"""How many functions may call each other in a row: they are compiled by recursion."""
_MAX_NESTED: Final = 400
"""How deep the calls of a function that calls itself may nest in Python."""


class Udf(BaseModel):
    """A function that a window defines itself.

    Attributes:
        name: in small letters.
        type: ESP type of its result.
        text: its body, in canonical spelling.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    type: str
    text: str


class Initialize(BaseModel):
    """The `<expr-initialize>` of a window.

    Attributes:
        text: what runs once at the start, in canonical spelling; its variables are shared by all
            expressions of the window. None: nothing runs.
        udfs: the window's own functions.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str | None = None
    udfs: tuple[Udf, ...] = ()


@dataclass(frozen=True, slots=True)
class _Made:
    """A function for arguments of certain types."""

    scope: Scope
    run: Run
    height: int
    convert: Convert


class OwnFunctions:
    """The functions of a window.

    Parameters have no types of their own, so a function is compiled once for each list of types
    that it is called with; its private variables are the same in all of them.
    """

    def __init__(self, scope: Callable[..., Scope], udfs: Sequence[Udf]) -> None:
        self._scope = scope
        self._udfs = {udf.name.lower(): udf for udf in udfs}
        self._kept: dict[str, dict[str, Variable]] = {name: {} for name in self._udfs}
        self._bodies: dict[str, Node] = {}
        self._made: dict[tuple[str, tuple[ValueType, ...]], _Made] = {}
        self._open: list[tuple[str, tuple[ValueType, ...]]] = []
        self._nesting = _Nesting()

    def __contains__(self, name: str) -> bool:
        return name in self._udfs

    def __iter__(self) -> Iterator[str]:
        return iter(self._udfs)

    def call(self, node: Node, arguments: Sequence[Typed], scope: Scope, depth: int) -> Typed:
        """Return the expression that calls the function `node` with `arguments`.

        Args:
            node: the call.
            arguments: any number of them.
            scope: of the caller.
            depth: how deep the call stands in its expression.
        """
        name, types = node.words[0], tuple(argument.type for argument in arguments)
        runs, type_ = [argument.run for argument in arguments], type_of(self._udfs[name].type)
        heights = [argument.height for argument in arguments]
        scope.needs.add("context")
        if (name, types) in self._open:
            return Typed(type_, self._again(name, types, runs), 1 + max(heights, default=0))
        made = self._for(node, types, depth)
        scope.needs |= made.scope.needs & {"clock"}
        height = 1 + max(made.height, *heights, 0)
        check_height(height, node)
        return Typed(type_, self._calling(made, runs, steps_of(self._body(name))), height)

    def _again(self, name: str, types: tuple[ValueType, ...], arguments: Sequence[Run]) -> Run:
        """Return what calls a function within itself; it is made when that runs."""
        self._nesting.possible = True
        cost, known, nesting = steps_of(self._body(name)), self._made, self._nesting
        calling: list[Run] = []

        def run(row: Row) -> object:
            made = known[name, types]
            if not calling:
                calling.append(self._calling(made, arguments, cost))
            height = made.height + 2
            nesting.enter(name, height)
            try:
                return calling[0](row)
            finally:
                nesting.height -= height

        return run

    def _body(self, name: str) -> Node:
        if name not in self._bodies:
            self._bodies[name] = parse(self._udfs[name].text)
        return self._bodies[name]

    def _for(self, node: Node, types: tuple[ValueType, ...], depth: int) -> _Made:
        name = node.words[0]
        if len(self._open) >= MAX_CALLS:
            raise ExpressionError(f"functions call each other more than {MAX_CALLS} deep", node.at)
        made = self._made.get((name, types))
        if made is None:
            self._open.append((name, types))
            try:
                made = self._made[name, types] = self._make(name, types, depth)
            except ExpressionError as error:
                # Of functions that call each other, the innermost says it.
                said = str(error)
                where = said if said.startswith("in ") else f"in {name}(), {said}"
                raise ExpressionError(where) from None
            finally:
                self._open.pop()
        return made

    def _make(self, name: str, types: tuple[ValueType, ...], depth: int) -> _Made:
        udf = self._udfs[name]
        scope = self._scope(self._kept[name], parameters=types)
        body = program(self._body(name), scope, self, depth)
        if body.type is None:
            raise ExpressionError("it gives no value")
        return _Made(scope, body.run, body.height, converter(body.type, udf.type))

    def _calling(self, made: _Made, arguments: Sequence[Run], cost: int) -> Run:
        frame, parameters = made.scope.frame, len(arguments)
        blank, body, convert = made.scope.blank[parameters:], made.run, made.convert
        spend, nesting = made.scope.context.spend, self._nesting

        def run(row: Row) -> object:
            values = [argument(row) for argument in arguments]
            spend(cost)
            if not nesting.possible:
                frame[:] = [*values, *blank]
                return convert(body(row))
            before = frame[:]
            frame[:] = [*values, *blank]
            result = convert(body(row))
            frame[:] = before
            return result

        return run


class _Nesting:
    """How deep functions are within themselves.

    Attributes:
        possible: whether any function calls itself, so that calls keep what their callers had.
        height: of all calls that are open.
    """

    def __init__(self) -> None:
        self.possible = False
        self.height = 0

    def enter(self, name: str, height: int) -> None:
        """Go one call deeper.

        Raises:
            BadRecord: it is too deep.
        """
        if self.height + height > _MAX_NESTED:
            raise BadRecord(f"function {name}() calls itself too often")
        self.height += height
