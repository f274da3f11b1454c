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

MAX_CALLS: Final = 20
"""How many functions may call each other in a row: they are compiled by recursion."""


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
        self._open: list[str] = []

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
        name = node.words[0]
        made = self._for(node, tuple(argument.type for argument in arguments), depth)
        scope.needs.add("context")
        run = _calling(made, [argument.run for argument in arguments], steps_of(self._body(name)))
        height = 1 + max(made.height, *(argument.height for argument in arguments), 0)
        check_height(height, node)
        return Typed(type_of(self._udfs[name].type), run, height)

    def _body(self, name: str) -> Node:
        if name not in self._bodies:
            self._bodies[name] = parse(self._udfs[name].text)
        return self._bodies[name]

    def _for(self, node: Node, types: tuple[ValueType, ...], depth: int) -> _Made:
        name = node.words[0]
        if name in self._open:
            raise ExpressionError(f"{name}() calls itself; functions must not", node.at)
        if len(self._open) >= MAX_CALLS:
            raise ExpressionError(f"functions call each other more than {MAX_CALLS} deep", node.at)
        made = self._made.get((name, types))
        if made is None:
            self._open.append(name)
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


def _calling(made: _Made, arguments: Sequence[Run], cost: int) -> Run:
    frame, parameters = made.scope.frame, len(arguments)
    blank, body, convert = made.scope.blank[parameters:], made.run, made.convert
    spend = made.scope.context.spend

    def run(row: Row) -> object:
        values = [argument(row) for argument in arguments]
        spend(cost)
        frame[:] = [*values, *blank]
        return convert(body(row))

    return run
