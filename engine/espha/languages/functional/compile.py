"""Trees of the function language to Python functions of a frame."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from espha.languages.functional import booleans, contextual, documents, numbers, regexes, times
from espha.languages.functional import strings as texts
from espha.languages.functional.catalog import Function, Run
from espha.languages.functional.errors import FunctionError
from espha.languages.functional.frame import Frame
from espha.languages.functional.parse import Call, FieldName, Literal, Node, PropertyName
from espha.languages.functional.values import integer, number, text
from espha.model.problems import meant

FUNCTIONS: Final[Mapping[str, Function]] = {
    **booleans.FUNCTIONS,
    **texts.FUNCTIONS,
    **numbers.FUNCTIONS,
    **documents.FUNCTIONS,
    **times.FUNCTIONS,
    **contextual.FUNCTIONS,
}
"""Every function of the language, by name."""

_ANY_CASE: Final = {name.lower(): name for name in FUNCTIONS}

_COERCIONS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "s": text,
    "n": number,
    "i": integer,
    "p": text,
    "j": text,
    "x": text,
    "f": text,
    "r": text,
}
_CHECKS: Final[Mapping[str, Callable[[str], object]]] = {
    "p": regexes.checked,
    "j": documents.json_path,
    "x": documents.compiled_xpath,
    "f": times.checked_format,
    "r": times.checked_reading,
}


class Names:
    """What the names in a tree stand for.

    Attributes:
        fields: places in the row of the event.
        results: slots of functions that have run by then.
        properties: slots of properties and of elements of loops.
        constants: texts of `<expressions>`.
        remarks: what was noticed while functions were compiled, as sentences for their author.
    """

    def __init__(self, fields: Sequence[str]) -> None:
        self.fields = {name: place for place, name in enumerate(fields)}
        self.results: dict[str, int] = {}
        self.properties: dict[str, int] = {}
        self.constants: dict[str, str] = {}
        self.remarks: list[str] = []

    def copy(self) -> "Names":
        """Return names to which others can be added."""
        names = Names(())
        names.fields = self.fields
        names.results = dict(self.results)
        names.properties = dict(self.properties)
        names.constants = dict(self.constants)
        names.remarks = self.remarks
        return names


def constant(node: Node, names: Names) -> Literal | None:
    """Return what a node is known to be before any event comes; None when it is not known."""
    if isinstance(node, Literal):
        return node
    if isinstance(node, PropertyName) and not node.path and node.name not in names.properties:
        found = names.constants.get(node.name)
        return None if found is None else Literal(found)
    return None


def compile_node(node: Node, names: Names) -> Run:
    """Return the function that computes a tree.

    A name that stands for nothing is null, with a remark.

    Raises:
        FunctionError: a function, a number of arguments, or a constant is wrong.
    """
    known = constant(node, names)
    if known is not None:
        value = known.value
        return lambda frame: value
    if isinstance(node, Call):
        return _call(node, names)
    if isinstance(node, FieldName):
        return _field(node, names)
    assert isinstance(node, PropertyName)  # noqa: S101 - the last kind of node
    return _property(node, names)


def _slot(slot: int) -> Run:
    return lambda frame: frame.slots[slot]


def _field(node: FieldName, names: Names) -> Run:
    name = node.name
    if name in names.results:
        return _slot(names.results[name])
    if name in names.fields:
        place = names.fields[name]
        return lambda frame: frame.row[place]
    if name in names.properties:
        return _slot(names.properties[name])
    hint = meant(name, [*names.results, *names.fields])
    reason = f"${name} is neither a field of the input nor a function before it"
    names.remarks.append(f"{reason}, so it is null{hint}")
    return _null


def _property(node: PropertyName, names: Names) -> Run:
    places = names.properties if node.name in names.properties else names.results
    if node.name not in places:
        hint = meant(node.name, [*names.properties, *names.constants])
        names.remarks.append(f"#{node.name} is not a property or expression, so it is null{hint}")
        return _null
    whole, path = _slot(places[node.name]), node.path
    return (lambda frame: documents.part_of(whole(frame), path)) if path else whole


def _null(_frame: Frame) -> None:
    return None


def _call(node: Call, names: Names) -> Run:
    function = FUNCTIONS.get(_ANY_CASE.get(node.name.lower(), node.name))
    if function is None:
        hint = meant(node.name, list(FUNCTIONS))
        raise FunctionError(f"there is no function {node.name}(){hint}")
    kinds = function.kinds(node.name, len(node.arguments))
    arguments = [
        _argument(argument, kind, names)
        for argument, kind in zip(node.arguments, kinds, strict=True)
    ]
    if function.lazy:
        run: Run = function.run(*arguments)
        return run
    return _framed(function, arguments) if function.framed else _plain(function, arguments)


def _argument(node: Node, kind: str, names: Names) -> Run:
    known = constant(node, names)
    run = compile_node(node, names)
    if known is not None and isinstance(known.value, str) and kind in _CHECKS:
        _CHECKS[kind](known.value)
    coerce = _COERCIONS.get(kind)
    if coerce is None:
        return run
    if known is not None:
        value = coerce(known.value)
        return lambda frame: value
    return lambda frame: coerce(run(frame))


def _plain(function: Function, arguments: Sequence[Run]) -> Run:
    run, nulls = function.run, function.nulls
    # One and two arguments are what nearly all calls have; a list of them costs time.
    if len(arguments) == 1:
        return _one(run, nulls, *arguments)
    if len(arguments) == 2:
        return _two(run, nulls, *arguments)

    def several(frame: Frame) -> Any:
        values = [argument(frame) for argument in arguments]
        if not nulls and _has_null(values):
            return None
        return run(*values)

    return several


def _one(run: Callable[..., Any], nulls: bool, argument: Run) -> Run:
    if nulls:
        return lambda frame: run(argument(frame))

    def one(frame: Frame) -> Any:
        value = argument(frame)
        return None if value is None else run(value)

    return one


def _two(run: Callable[..., Any], nulls: bool, first: Run, second: Run) -> Run:
    if nulls:
        return lambda frame: run(first(frame), second(frame))

    def two(frame: Frame) -> Any:
        left, right = first(frame), second(frame)
        return None if left is None or right is None else run(left, right)

    return two


def _framed(function: Function, arguments: Sequence[Run]) -> Run:
    run = function.run

    def framed(frame: Frame) -> Any:
        values = [argument(frame) for argument in arguments]
        return None if _has_null(values) else run(frame, *values)

    return framed


def _has_null(values: Sequence[Any]) -> bool:
    # Not `None in values`: that would ask the values whether they equal None.
    return any(value is None for value in values)
