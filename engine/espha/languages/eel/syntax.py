"""The syntax tree of an expression."""

from dataclasses import dataclass, field
from typing import Final

from espha.languages.eel.errors import At
from espha.model.events import Value

_DEEP: Final = frozenset({"chain"})
"""Nodes that are folded to the left: each operand makes the tree one higher."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node; what its parts are depends on `what`.

    Attributes:
        what: one of
            literal (words: type), name (words: name), quoted (words: name of a field),
            call (words: function; parts: arguments),
            method (words: object, method; parts: arguments),
            minus, not (parts: operand), chain (words: operators; parts: operands),
            join, either, both (parts: operands), compare (words: operator; parts: two),
            among (parts: value, then what it may be);
            statements: declare (words: scope, type, name; parts: initial value, if any),
            assign (words: name; parts: value),
            if (parts: condition, block, condition, block, …, and a last block for else),
            while (parts: condition, block), for (words: name; parts: from, to, step, block),
            return (parts: value, if any), bare (parts: value), block (parts: statements).
        at: where it begins.
        value: of a literal.
        height: of the tree.
        size: number of nodes in it.
    """

    what: str
    at: At
    parts: tuple["Node", ...] = ()
    words: tuple[str, ...] = ()
    value: Value = None
    height: int = field(init=False, default=1)
    size: int = field(init=False, default=1)

    def __post_init__(self) -> None:
        below = max((part.height for part in self.parts), default=0)
        own = max(1, len(self.parts) - 1) if self.what in _DEEP else 1
        object.__setattr__(self, "height", below + own)
        object.__setattr__(self, "size", 1 + sum(part.size for part in self.parts))
