"""The aggregate functions in the expressions of an aggregate window.

An expression such as `ESP_aSum(price * quantity) / ESP_aCount(price)` is taken apart: each call of
an aggregate function becomes a `Call`, and in the expression a field `#0`, `#1`, … takes its place.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal, NamedTuple

from espha.languages.eel import ExpressionError, Initialize, Language
from espha.languages.eel.canonical import canonical, quoted
from espha.languages.eel.parser import parse
from espha.languages.eel.syntax import Node
from espha.model.project import Field, Part
from espha.model.types import TypeName

MAX_LAG: Final = 10_000
"""Each group keeps as many values."""

_PREFIX: Final = "esp_a"
_OWN: Final = "user_u"
"""The functions that users of SAS ESP compile into it have such names."""

_TIMED: Final = "timed"
_NUMBERS: Final = frozenset({"int", "double", "date", "stamp"})
_SCALARS: Final = _NUMBERS | {"string"}
OPCODES: Final = {"1": "I", "2": "U", "3": "D", "i": "I", "u": "U", "d": "D",
                  "insert": "I", "update": "U", "delete": "D"}  # fmt: skip


class Call(Part):
    """A call of an aggregate function.

    Attributes:
        function: its name in small letters, without ESP_a and Timed.
        arguments: what is computed from each row, in canonical spelling.
        kinds: the kind of each argument.
        constant: the lag, the opcode or the separator; None: the function has none.
        seconds: of a Timed form; None: it never starts afresh.
        time: expression that tells the time of an event for it; empty: the order record's clock.
        time_kind: kind of that expression.
        type: ESP type of the result.
    """

    function: str
    arguments: tuple[str, ...]
    kinds: tuple[str, ...]
    constant: int | str | None = None
    seconds: int | float | None = None
    time: str = ""
    time_kind: str = ""
    type: TypeName


class Signature(NamedTuple):
    """What a function takes and gives.

    Attributes:
        least: number of arguments that are expressions, at least.
        most: at most.
        kinds: which kinds they have; empty: any.
        gives: a type, or: "same" as its argument, "sum" (whole numbers or doubles).
        constant: what the argument after them is, if there is one.
    """

    least: int
    most: int
    kinds: frozenset[str]
    gives: str
    constant: Literal["", "lag", "opcode", "separator"] = ""


_ANY: Final = frozenset[str]()
FUNCTIONS: Final = {
    "sum": Signature(1, 1, _NUMBERS, "sum"),
    "ave": Signature(1, 1, _NUMBERS, "double"),
    "min": Signature(1, 1, _SCALARS, "same"),
    "max": Signature(1, 1, _SCALARS, "same"),
    "range": Signature(1, 1, _NUMBERS, "sum"),
    "std": Signature(1, 1, _NUMBERS, "double"),
    "var": Signature(1, 1, _NUMBERS, "double"),
    "wave": Signature(2, 2, _NUMBERS, "double"),
    "count": Signature(0, 1, _ANY, "int64"),
    "countnonnull": Signature(1, 1, _ANY, "int64"),
    "countnull": Signature(1, 1, _ANY, "int64"),
    "countdistinct": Signature(1, 1, _ANY, "int64"),
    "countopcodes": Signature(0, 0, _ANY, "int64", "opcode"),
    "lastopcode": Signature(0, 0, _ANY, "int64"),
    "mode": Signature(1, 1, _SCALARS, "same"),
    "first": Signature(1, 1, _ANY, "same"),
    "last": Signature(1, 1, _ANY, "same"),
    "lastnondelete": Signature(1, 1, _ANY, "same"),
    "lag": Signature(1, 1, _ANY, "same", "lag"),
    "cat": Signature(1, 1, _SCALARS, "string", "separator"),
}
"""By the name in small letters, without ESP_a; all but countopcodes have a Timed form."""

_SPELLED: Final = {
    "wave": "WAve", "countnonnull": "CountNonNull", "countnull": "CountNull",
    "countdistinct": "CountDistinct", "countopcodes": "CountOpcodes",
    "lastnondelete": "LastNonDelete", "lastopcode": "LastOpcode",
}  # fmt: skip


class Calls:
    """Takes the expressions of one window apart."""

    def __init__(self, fields: Sequence[Field], initialize: Initialize | None) -> None:
        self._fields = {field.name: field for field in fields}
        self._language = Language(fields, initialize)
        self._calls: list[Call] = []

    def found(self) -> tuple[Call, ...]:
        """Return the calls of all expressions so far; the place of each is its number."""
        return tuple(self._calls)

    def take_apart(self, text: str) -> str:
        """Return the text with `#n` in the place of each call.

        Raises:
            ExpressionError: not in the language, or a call that cannot be made.
        """
        return canonical(self._without_calls(parse(text)), quoted)

    def _without_calls(self, node: Node) -> Node:
        if node.what == "quoted" and node.words[0].startswith("#"):
            raise ExpressionError(f"{node.words[0]!r} is not a field", node.at)
        if node.what == "call" and node.words[0].startswith(_PREFIX):
            call = self._call(node)
            if call not in self._calls:
                self._calls.append(call)
            return Node("quoted", node.at, words=(f"#{self._calls.index(call)}",))
        if node.what == "call" and node.words[0].startswith(_OWN):
            reason = f"{node.words[0]}() is an aggregate function in C++, which is not run; use "
            raise ExpressionError(f"{reason}one of: {_known()}", node.at)
        return replace(node, parts=tuple(self._without_calls(part) for part in node.parts))

    def _call(self, node: Node) -> Call:
        name = node.words[0].removeprefix(_PREFIX)
        timed = name.endswith(_TIMED)
        function = name.removesuffix(_TIMED)
        signature = FUNCTIONS.get(function)
        if function == "guid":
            raise ExpressionError("ESP_aGUID() is random, so engines would differ", node.at)
        if signature is None or (timed and function == "countopcodes"):
            raise ExpressionError(f"{node.words[0]}() is not one of: {_known()}", node.at)
        parts = list(node.parts)
        seconds = _seconds(parts.pop() if parts else None, node) if timed else None
        time, time_kind = self._time(parts, signature) if timed else ("", "")
        constant = _constant(parts, signature, node) if signature.constant else None
        if not signature.least <= len(parts) <= signature.most:
            raise ExpressionError(f"{_shown(function)}() {_wanted(signature)}", node.at)
        made = [self._argument(part) for part in parts]
        for text, kind in made:
            if signature.kinds and kind not in signature.kinds:
                reason = f"{_shown(function)}() cannot take {text}, which is {kind}"
                raise ExpressionError(reason, node.at)
        kinds = tuple(kind for _, kind in made)
        return Call(
            function=function,
            arguments=tuple(text for text, _ in made),
            kinds=kinds,
            constant=constant,
            seconds=seconds,
            time=time,
            time_kind=time_kind,
            type=_type_of(signature, kinds),
        )

    def _argument(self, node: Node) -> tuple[str, str]:
        """Return text and kind of an argument; a field's name may be quoted."""
        if node.what == "literal" and node.value in self._fields:
            node = Node("quoted", node.at, words=(str(node.value),))
        if _has_call(node):
            raise ExpressionError("an aggregate function is inside another one", node.at)
        block = Node("block", node.at, (Node("bare", node.at, (node,)),))
        expression = self._language.compile(canonical(block, quoted))
        if expression.type == "null":
            raise ExpressionError("null cannot be aggregated", node.at)
        return expression.text, expression.type

    def _time(self, parts: list[Node], signature: Signature) -> tuple[str, str]:
        """Take the expression that tells the time from the end of the arguments, if it is there."""
        most = signature.most + bool(signature.constant)
        separator = signature.constant == "separator" and len(parts) == most
        if len(parts) <= most and not (separator and not isinstance(parts[-1].value, str)):
            return "", ""
        text, kind = self._argument(parts[-1])
        if kind not in _NUMBERS:
            raise ExpressionError(f"{text} is {kind}; a time must be a date, a stamp or seconds")
        parts.pop()
        return text, kind


def _has_call(node: Node) -> bool:
    if node.what == "call" and node.words[0].startswith(_PREFIX):
        return True
    return any(_has_call(part) for part in node.parts)


def _seconds(node: Node | None, call: Node) -> int | float:
    if node is not None and isinstance(node.value, int | float) and 0 < node.value <= 10**10:
        return node.value
    reason = f"{call.words[0]}() ends with a number of seconds greater than 0"
    raise ExpressionError(reason, call.at)


def _constant(parts: list[Node], signature: Signature, call: Node) -> int | str:
    what = signature.constant
    if what == "separator" and len(parts) <= signature.most:
        return ","
    value = parts.pop().value if parts else None
    if what == "lag" and isinstance(value, int) and 0 <= value <= MAX_LAG:
        return value
    if what == "separator" and isinstance(value, str):
        return value
    if what == "opcode" and str(value).lower() in OPCODES:
        return OPCODES[str(value).lower()]
    wanted = {
        "lag": f"a whole number from 0 to {MAX_LAG} after the field",
        "separator": "a text after the field",
        "opcode": "1 (insert), 2 (update) or 3 (delete)",
    }[what]
    raise ExpressionError(f"{call.words[0]}() takes {wanted}", call.at)


def _type_of(signature: Signature, kinds: Sequence[str]) -> TypeName:
    gives = signature.gives
    if gives == "sum":
        gives = "double" if kinds[0] == "double" else "int64"
    elif gives == "same":
        gives = "int64" if kinds[0] == "int" else kinds[0]
    return gives  # type: ignore[return-value] # kinds of fields are names of types


def _wanted(signature: Signature) -> str:
    if signature.least < signature.most:
        return "takes at most one argument"
    return ("takes no field", "takes one argument", "takes two arguments")[signature.most]


def _shown(function: str) -> str:
    return f"ESP_a{_SPELLED.get(function, function.capitalize())}"


def _known() -> str:
    return ", ".join(_shown(function) for function in FUNCTIONS)
