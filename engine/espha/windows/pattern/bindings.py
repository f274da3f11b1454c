"""Names that the expressions of a pattern bind: `(p0 == price)` gives p0 the price it sees first.

A name that is no field of the event's window is bound where it is compared with `==`: while the
instance does not know it, it takes the value of the other side, and the comparison is true. Once
bound it is a value like a field. What an expression binds counts only when all of it is true.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from espha.languages.eel import Expression, ExpressionError, Initialize, Language
from espha.languages.eel.canonical import canonical, declared_names
from espha.languages.eel.parser import parse
from espha.languages.eel.scope import EVENT_WORDS
from espha.languages.eel.syntax import Node
from espha.model.project import Field
from espha.model.types import TypeName

_TYPES: Final[dict[str, TypeName]] = {
    "int": "int64",
    "double": "double",
    "string": "string",
    "date": "date",
    "stamp": "stamp",
}
"""What a name is as a field, by the kind of what it is bound to."""


class Given(NamedTuple):
    """An event of interest as written in the XML.

    Attributes:
        name: what the logic calls it.
        fields: schema of the window that it comes from.
        text: its expression.
    """

    name: str
    fields: tuple[Field, ...]
    text: str


class Bind(NamedTuple):
    """`name == value` in an expression, where the name can be bound."""

    name: str
    value: Expression


class Interest(NamedTuple):
    """A compiled event of interest.

    Attributes:
        condition: runs on the event's values followed by those of `names`.
        binds: what it can bind, in the order of the text.
        names: the bound names that its expression sees after the event's fields, in order.
        language: keeps the variables of its expressions.
    """

    condition: Expression
    binds: tuple[Bind, ...]
    names: tuple[str, ...]
    language: Language


class EventError(ExpressionError):
    """The expression of one event of interest, `name`, cannot be used."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name = name


def compile_events(
    events: Sequence[Given], initialize: Initialize | None = None
) -> tuple[dict[str, Interest], tuple[Field, ...]]:
    """Compile the expressions of a pattern, which share the names that they bind.

    Returns:
        The events of interest by name, and the bound names as fields.

    Raises:
        EventError: an expression cannot be used.
    """
    found = {event.name: _candidates(event, initialize) for event in events}
    bound = _typed(events, found, initialize)
    compiled = {
        event.name: _compiled(event, found[event.name], bound, initialize) for event in events
    }
    return compiled, tuple(bound)


def bound_fields(fields: Sequence[Field], bound: Sequence[Field]) -> tuple[Field, ...]:
    """Return the bound names that are no fields of a window, as fields."""
    taken = {field.name.lower() for field in fields}
    return tuple([name for name in bound if name.name not in taken])


Candidate = tuple[str, str]
"""A name in small letters, and the text of what it is compared with."""


def _candidates(event: Given, initialize: Initialize | None) -> list[Candidate]:
    try:
        scope = Language(event.fields, initialize).scope({})
        block = parse(event.text)
    except ExpressionError as error:
        raise EventError(event.name, str(error)) from None
    declared = {name.lower() for name in declared_names(block)} | EVENT_WORDS

    def is_free(node: Node) -> bool:
        if node.what != "name" or node.words[0].lower() in declared:
            return False
        return scope.variable(node.words[0]) is None and scope.field(node.words[0]) is None

    return [
        (name.words[0].lower(), canonical(_alone(other), str))
        for left, right in _equals(block)
        for name, other in ((left, right), (right, left))
        if is_free(name)
    ]


def _equals(node: Node) -> Iterator[tuple[Node, Node]]:
    """Yield the two sides of each `==`, in the order of the text."""
    if node.what == "compare" and node.words == ("==",):
        yield node.parts[0], node.parts[1]
    for part in node.parts:
        yield from _equals(part)


def _alone(node: Node) -> Node:
    return Node("block", node.at, (Node("bare", node.at, (node,)),))


def _typed(
    events: Sequence[Given], found: dict[str, list[Candidate]], initialize: Initialize | None
) -> list[Field]:
    """Find the types of the names; one can depend on another."""
    bound: dict[str, Field] = {}
    again = True
    while again:
        again = False
        for event in events:
            for name, text in found[event.name]:
                if name in bound:
                    continue
                kind = _kind(event, text, list(bound.values()), initialize)
                if kind in _TYPES:
                    bound[name] = Field(name, _TYPES[kind])
                    again = True
    return list(bound.values())


def _kind(event: Given, text: str, bound: Sequence[Field], initialize: Initialize | None) -> str:
    try:
        fields = event.fields + bound_fields(event.fields, bound)
        return Language(fields, initialize).compile(text).type
    except ExpressionError:
        return ""


def _compiled(
    event: Given, found: list[Candidate], bound: Sequence[Field], initialize: Initialize | None
) -> Interest:
    names = bound_fields(event.fields, bound)
    fields = event.fields + names
    known = {name.name for name in names}
    try:
        language = Language(fields, initialize)
        condition = language.compile(event.text)
        if condition.type not in {"int", "double", "null"}:
            raise ExpressionError(f"an event needs a condition, this gives {condition.type}")
        binds = [
            Bind(name, language.compile(text))
            for name, text in found
            if name in known and text.lower() != name
        ]
    except ExpressionError as error:
        raise EventError(event.name, str(error)) from None
    return Interest(condition, tuple(binds), tuple(name.name for name in names), language)
