"""The language of one window: its fields, what it initializes, and its expressions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from espha.languages.eel.canonical import Spell, canonical, declared_names
from espha.languages.eel.closures import Run
from espha.languages.eel.errors import MAX_LENGTH, MAX_STEPS, ExpressionError
from espha.languages.eel.parser import parse
from espha.languages.eel.scope import Context, Scope, Store, Variable
from espha.languages.eel.statements import Program, program
from espha.languages.eel.syntax import Node
from espha.languages.eel.udfs import Initialize, OwnFunctions
from espha.languages.eel.value_types import ValueType
from espha.model.events import BadRecord, Event
from espha.model.project import Field

_NO_EVENT: Final = Event("I", "N", ())


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression.

    Attributes:
        type: of its value: int, double, string, date, stamp, null, blob or array(…).
        text: the expression in canonical spelling; equal trees have equal texts.
        run: `run(event, clock=0)` computes the value; the clock is that of the order record, in
            milliseconds since 1970. Raises BadRecord when it takes too many steps.
    """

    type: ValueType
    text: str
    run: Callable[..., Any]


class Language:
    """Compiles the expressions of one window, and keeps the variables that outlive an event.

    Attributes:
        initialize: what it was made with.
    """

    def __init__(self, fields: Sequence[Field], initialize: Initialize | None = None) -> None:
        """Run the initializer.

        Args:
            fields: schema of the events that expressions will see.
            initialize: what the window initializes.

        Raises:
            ExpressionError: the initializer or a function cannot be used.
            BadRecord: the initializer takes too many steps.
        """
        self.initialize = initialize
        initialize = initialize or Initialize()
        self._fields = tuple(fields)
        self._context = Context()
        self._store = Store()
        self._shared: dict[str, Variable] = {}
        self._udfs = OwnFunctions(self.scope, initialize.udfs)
        self._late: Callable[..., Any] | None = None
        self._waits = False
        if initialize.text is not None:
            self._initialize(initialize.text)

    @property
    def keeps(self) -> bool:
        """Whether any variable outlives an event, so that there is a state."""
        return bool(self._store.values) or self._late is not None

    def compile(self, text: str) -> Expression:
        """Compile an expression of the window.

        Raises:
            ExpressionError: not in the language, unknown names, or types that do not fit.
        """
        block = parse(text)
        scope = self.scope({})
        made = self._program(block, scope)
        if made.type is None:
            raise ExpressionError("the expression gives no value", block.at)
        spelled = _written(block, scope.spell)
        return Expression(made.type, spelled, self._runner(scope, made.run))

    def state(self) -> tuple[Any, ...]:
        """Return the variables that outlive events, as plain data."""
        late = () if self._late is None else (self._waits,)
        return (*self._store.values, *late)

    def restore(self, state: Sequence[Any]) -> None:
        """Take over the variables; the same expressions must have been compiled.

        Raises:
            ValueError: the state is that of other expressions.
        """
        count = len(self._store.values)
        if len(state) != count + (self._late is not None):
            raise ValueError(f"{len(state)} variables for {count}")
        self._store.values[:] = state[:count]
        if self._late is not None:
            self._waits = bool(state[count])

    def scope(
        self,
        kept: dict[str, Variable],
        *,
        parameters: Sequence[ValueType] | None = None,
        once: bool = False,
    ) -> Scope:
        """Return a scope of this window.

        Args:
            kept: names of the variables that are private to it.
            parameters: types of the parameters, for the body of a function.
            once: for the initializer.
        """
        fields = () if once else self._fields
        return Scope(
            self._context, fields, self._shared, kept, self._store, parameters=parameters, once=once
        )

    def spell(self, text: str) -> str:
        """Return a text in canonical spelling, without compiling it.

        Raises:
            ExpressionError: not in the language.
        """
        block = parse(text)
        declared = declared_names(block)
        scope = self.scope({})
        return _written(
            block, lambda name: name.lower() if name.lower() in declared else scope.spell(name)
        )

    def _initialize(self, text: str) -> None:
        """Run the initializer; what it declares is shared, whatever its scope.

        One that asks for the time runs with the first event, whose clock all engines know.
        """
        block = parse(text)
        scope = self.scope({}, once=True)
        made = self._program(block, scope)
        run = self._runner(scope, made.run)
        if "clock" in scope.needs:
            self._late, self._waits = run, True
        else:
            run(_NO_EVENT)

    def _program(self, block: Node, scope: Scope) -> Program:
        self._context.left = MAX_STEPS
        try:
            return program(block, scope, self._udfs)
        except BadRecord as error:  # constants are computed here
            raise ExpressionError(error.reason, block.at) from None

    def _runner(self, scope: Scope, body: Run) -> Callable[..., Any]:
        if self._late is not None:
            return self._begun(self._late, self._prepared(scope, body))
        if not scope.needs:
            return lambda event, clock=0: body(event.values)
        return self._prepared(scope, body)

    def _begun(self, begin: Callable[..., Any], run: Callable[..., Any]) -> Callable[..., Any]:
        """Return `run`, before whose first call the initializer runs."""

        def begun(event: Event, clock: int = 0) -> Any:
            if self._waits:
                begin(_NO_EVENT, clock)
                self._waits = False
            return run(event, clock)

        return begun

    def _prepared(self, scope: Scope, body: Run) -> Callable[..., Any]:
        context, frame, blank = self._context, scope.frame, scope.blank

        def run(event: Event, clock: int = 0) -> Any:
            context.event, context.clock, context.left = event, clock, MAX_STEPS
            frame[:] = blank
            return body(event.values)

        return run


def _written(block: Node, spell: Spell) -> str:
    """Return the canonical text; it is compiled again, so it must not be too long either."""
    text = canonical(block, spell)
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            f"the expression is too long: written out it has {len(text)} characters"
        )
    return text
