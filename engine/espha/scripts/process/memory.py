"""The variables of a script as JSON, and back; what is shared stays shared.

Values refer to nodes by number: `[number]`. What the main part of a script makes and JSON cannot
write (functions, classes, modules) is there again when the main part runs in another process; it
is numbered in the order in which it is found, and values refer to it by that number. So are its
constants, such as the tuple `("new", 0)` in a function: where each use of one is the same object,
copies that were put back would be others, and variables would be written in another way.
"""

import collections
import enum
import functools
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from espha.scripts.process import kinds
from espha.scripts.process.common import PLAIN, Refused
from espha.scripts.process.given import Fixed
from espha.scripts.process.sets import Frozen

MAX_DEPTH: Final = 200
"""How deep variables may be nested."""

_CONTAINERS: Final = frozenset(
    {*kinds.SEQUENCES, *kinds.MAPPINGS, tuple, collections.deque, collections.defaultdict}
)


class Code:
    """What the main part made that is no data."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self.found: list[Any] = []
        self.numbers: dict[int, int] = {}
        self._seen: dict[int, Any] = {}
        waiting = list(roots)[::-1]
        while waiting:
            value = waiting.pop()
            if type(value) in PLAIN or id(value) in self._seen:
                continue
            self._seen[id(value)] = value
            if is_code(value):
                self.numbers[id(value)] = len(self.found)
                self.found.append(value)
            waiting += list(_inside(value))[::-1]
        self._judged: dict[int, bool] = {}
        self.constants: list[Any] = []
        self.constant_numbers: dict[int, int] = {}
        for value in self._seen.values():
            self._note_constants(value)
        for _, function in self.functions():
            for value in _literals(function.__code__):
                self._note_constants(value)
        for value in kinds.LIMITS:
            self._note_constants(value)

    def _note_constants(self, value: Any) -> None:
        """Give numbers to a value that never changes, and to those that are in it."""
        if type(value) in PLAIN or id(value) in self.constant_numbers:
            return
        if not self._is_constant(value):
            return
        self.constant_numbers[id(value)] = len(self.constants)
        self.constants.append(value)
        if type(value) is tuple or type(value) is Frozen:
            for part in value:
                self._note_constants(part)

    def _is_constant(self, value: Any, depth: int = 0) -> bool:
        """Tell whether neither a value nor what is in it can ever change; looks at each once."""
        if type(value) in PLAIN or type(value) in kinds.UNCHANGING:
            return True
        if type(value) not in (tuple, Frozen) or depth > MAX_DEPTH:
            return False
        known = self._judged.get(id(value))
        if known is None:
            known = all(self._is_constant(part, depth + 1) for part in value)
            self._judged[id(value)] = known
        return known

    def functions(self) -> Iterator[tuple[int, types.FunctionType]]:
        """Yield the functions that the script defines, with their numbers."""
        for number, value in enumerate(self.found):
            if isinstance(value, types.FunctionType) and is_own(value):
                yield number, value

    def classes(self) -> Iterator[tuple[int, type]]:
        """Yield the classes that the script defines, with their numbers."""
        for number, value in enumerate(self.found):
            if isinstance(value, type) and is_own(value):
                yield number, value


def is_own(value: Any) -> bool:
    """Whether a function or class was made by the text of a script."""
    return str(getattr(value, "__module__", "")).partition(".")[0] == "script"


def is_code(value: Any) -> bool:
    """Whether a value is there again when the main part runs again."""
    if isinstance(value, types.ModuleType | Fixed | type | property | staticmethod | classmethod):
        return True
    return callable(value) and not is_own(type(value)) and kinds.kind_of(value) is None


def _literals(code: types.CodeType) -> Iterator[Any]:
    """Yield what stands in the text of a function, and of those in it."""
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield from _literals(value)
        else:
            yield value


def is_data(value: Any, code: Code) -> bool:
    """Whether a value is one that a `Graph` can write; not all that is in it."""
    return (
        type(value) in PLAIN
        or type(value) in _CONTAINERS
        or id(value) in code.numbers
        or is_own(type(value))
        or kinds.kind_of(value) is not None
    )


def _inside(value: Any) -> Iterable[Any]:
    """Return what a value holds, where it can hold code."""
    if isinstance(value, type):
        return vars(value).values() if is_own(value) else ()
    if isinstance(value, types.FunctionType):
        return _parts_of_function(value) if is_own(value) else ()
    if isinstance(value, staticmethod | classmethod):
        return (value.__func__,)
    if isinstance(value, property):
        return (value.fget, value.fset, value.fdel)
    if isinstance(value, functools.partial):
        return (value.func, *value.args, *value.keywords.values())
    if isinstance(value, types.MethodType):
        return (value.__self__, value.__func__)
    if isinstance(value, dict):
        return [*value.keys(), *value.values(), getattr(value, "default_factory", None)]
    if isinstance(value, list | tuple | collections.deque):
        return value
    if isinstance(value, types.SimpleNamespace) or is_own(type(value)):
        return attributes(value).values()
    return (getattr(value, "__wrapped__", None),) if callable(value) else ()


def _parts_of_function(function: types.FunctionType) -> list[Any]:
    cells = [_content(cell) for cell in function.__closure__ or ()]
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    return [*cells, *defaults, *vars(function).values()]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing is in it yet
        return None


def attributes(value: Any) -> dict[str, Any]:
    """Return the attributes of an object, also those in slots."""
    found = dict(getattr(value, "__dict__", ()))
    for class_ in type(value).__mro__:
        slots = vars(class_).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                found[name] = getattr(value, name)
    return found


class Graph:
    """Writes variables."""

    def __init__(self, code: Code) -> None:
        self.nodes: list[Any] = []
        self._code = code
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []

    def put(self, value: Any, where: str, depth: int = 0) -> Any:
        """Return how to write `value`.

        Raises:
            Refused: it is not plain data.
        """
        if type(value) in PLAIN:
            return value
        known = self._numbers.get(id(value))
        if known is None:
            if depth > MAX_DEPTH:
                raise Refused(f"variable {where} is nested deeper than {MAX_DEPTH}")
            known = self._numbers[id(value)] = len(self.nodes)
            self._alive.append(value)
            self.nodes.append(None)
            self.nodes[known] = self._node(value, where, depth + 1)
        return [known]

    def _node(self, value: Any, where: str, depth: int) -> list[Any]:
        number = self._code.numbers.get(id(value))
        if number is not None:
            return ["code", number]
        number = self._code.constant_numbers.get(id(value))
        if number is not None:
            return ["constant", number]
        kind = type(value).__name__
        if type(value) in kinds.SEQUENCES or type(value) is tuple:
            return [kind, self._all(value, where, depth)]
        if type(value) in kinds.MAPPINGS:
            pairs = vars(value) if type(value) is types.SimpleNamespace else value
            return [kind, self._pairs(pairs, where, depth)]
        if type(value) is collections.deque:
            return [kind, self._all(value, where, depth), value.maxlen]
        if type(value) is collections.defaultdict:
            factory = self._factory(value.default_factory, where, depth)
            return [kind, self._pairs(value, where, depth), factory]
        if isinstance(value, types.MethodType):
            return ["method", self.put(value.__self__, where, depth), value.__func__.__name__]
        if isinstance(value, enum.Enum) and id(type(value)) in self._code.numbers:
            return ["member", self._code.numbers[id(type(value))], value.name]
        if id(type(value)) in self._code.numbers and is_own(type(value)):
            return self._object(value, where, depth)
        found = kinds.kind_of(value)
        if found is not None:
            name, written = found
            return ["made", name, self._all(written.parts(value), where, depth)]
        raise Refused(
            f"variable {where} holds a {kind}, which cannot be kept; keep numbers, texts, lists, "
            "tuples, sets, dicts and objects of classes of the script"
        )

    def _factory(self, factory: Any, where: str, depth: int) -> Any:
        if factory is None:
            return None
        name = getattr(factory, "__name__", "")
        return name if kinds.FACTORIES.get(name) is factory else self.put(factory, where, depth)

    def _object(self, value: Any, where: str, depth: int) -> list[Any]:
        content, base = None, ""
        for name, each in kinds.BASES.items():
            if isinstance(value, each):
                content, base = self.put(each(value), where, depth), name
                break
        held = self._pairs(attributes(value), where, depth)
        return ["object", self._code.numbers[id(type(value))], held, base, content]

    def _all(self, values: Iterable[Any], where: str, depth: int) -> list[Any]:
        return [
            value if type(value) in PLAIN else self.put(value, where, depth) for value in values
        ]

    def _pairs(self, value: Any, where: str, depth: int) -> list[Any]:
        put = self.put
        return [[put(key, where, depth), put(part, where, depth)] for key, part in value.items()]


class Rebuilt:
    """The variables that a `Graph` has written."""

    def __init__(self, nodes: list[Any], code: Code) -> None:
        self._nodes = nodes
        self._code = code
        self._made: dict[int, Any] = {}
        self._makers: dict[str, Callable[..., None]] = {
            "code": self._code_node, "constant": self._constant, "tuple": self._tuple,
            "made": self._whole,
            "method": self._method, "member": self._member, "object": self._object,
            **dict.fromkeys(("list", "set", "bytearray", "deque"), self._sequence),
        }  # fmt: skip

    def take(self, value: Any) -> Any:
        """Return the value that was written as `value`."""
        if type(value) is not list:
            return value
        (number,) = value
        if number not in self._made:
            kind, *content = self._nodes[number]
            make: Callable[..., None] = self._makers.get(kind, self._mapping)
            make(number, kind, *content)
        return self._made[number]

    def _code_node(self, number: int, _: str, place: int) -> None:
        self._made[number] = self._code.found[place]

    def _constant(self, number: int, _: str, place: int) -> None:
        self._made[number] = self._code.constants[place]

    def _tuple(self, number: int, _: str, parts: list[Any]) -> None:
        self._made[number] = tuple([self.take(part) for part in parts])

    def _whole(self, number: int, _: str, name: str, parts: list[Any]) -> None:
        self._made[number] = kinds.make(name, [self.take(part) for part in parts])

    def _method(self, number: int, _: str, owner: Any, name: str) -> None:
        self._made[number] = getattr(self.take(owner), name)

    def _member(self, number: int, _: str, class_: int, name: str) -> None:
        self._made[number] = self._code.found[class_][name]

    def _sequence(self, number: int, kind: str, parts: list[Any], longest: Any = None) -> None:
        made: Any = collections.deque(maxlen=longest) if kind == "deque" else _EMPTY[kind]()
        self._made[number] = made
        add = made.add if kind == "set" else made.append
        for part in parts:
            add(self.take(part))

    def _mapping(self, number: int, kind: str, pairs: list[Any], factory: Any = None) -> None:
        if kind == "defaultdict":
            name = factory if isinstance(factory, str) else ""
            made: Any = collections.defaultdict(kinds.FACTORIES.get(name) or self.take(factory))
        else:
            made = _EMPTY[kind]()
        self._made[number] = made
        held = vars(made) if kind == "SimpleNamespace" else made
        for key, part in pairs:
            held[self.take(key)] = self.take(part)

    def _object(
        self, number: int, _: str, class_: int, held: list[Any], base: str, content: Any
    ) -> None:
        made_of = self._code.found[class_]
        base_type: Any = kinds.BASES.get(base, object)
        if base_type in (object, dict, list):
            made = self._made[number] = base_type.__new__(made_of)
        else:
            made = self._made[number] = base_type.__new__(made_of, self.take(content))
        if base_type is dict:
            dict.update(made, self.take(content))
        elif base_type is list:
            list.extend(made, self.take(content))
        for name, value in held:
            object.__setattr__(made, name, self.take(value))


_EMPTY: Final[dict[str, Callable[[], Any]]] = {
    type_.__name__: make for type_, make in {**kinds.SEQUENCES, **kinds.MAPPINGS}.items()
}
