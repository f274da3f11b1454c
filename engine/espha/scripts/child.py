"""The process that a Python script lives in; started by `espha.scripts.python`.

It stands alone: only the standard library, no part of the engine. A line of JSON comes in on
standard input, a line of JSON goes out on standard output: `[true, answer]` or `[false, reason]`.

What keeps a script in:
1. Nothing is inherited: no environment, no descriptors beyond the three standard ones.
2. Limits of the kernel: memory, no new descriptors, no files, and processor time for each call.
3. An audit hook, which a script cannot take away: after the start every operation that Python
   reports (opening, sockets, processes, importing, ctypes …) is refused unless it is listed here.
4. Few builtins, few modules, and of these only what depends neither on time nor on chance.

This stops mistakes and simple malice. It is no wall against somebody who looks for holes in the
interpreter: whoever writes a model is trusted as much as this process can do.
"""

import ast
import base64
import bisect
import builtins
import collections
import copy
import datetime
import decimal
import fractions
import functools
import heapq
import itertools
import json
import math
import operator
import random
import re
import resource
import signal
import statistics
import string
import sys
import textwrap
import types
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

SECONDS = 2.0
"""Processor time that one call may take."""

MEMORY = 512 * 1024 * 1024
"""Bytes of address space."""

MAX_ROWS = 10_000
MAX_STATE_DEPTH = 200

_REPORTED = frozenset(
    {"compile", "exec", "sys._getframe", "object.__getattr__", "object.__setattr__",
     "builtins.id"})  # fmt: skip
"""Reported operations that a script may do; namedtuple and dataclasses need them."""

_NO_BUILTINS = frozenset(
    {"open", "exec", "eval", "compile", "input", "breakpoint", "help", "exit", "quit", "copyright",
     "credits", "license", "id", "memoryview", "globals", "vars", "dir", "locals", "__loader__",
     "__spec__", "__import__", "__debug__"}
)  # fmt: skip

_MODULES = {
    module.__name__: module
    for module in (base64, bisect, collections, copy, decimal, fractions, functools, heapq,
                   itertools, json, math, operator, re, statistics, string, textwrap, unicodedata)
}  # fmt: skip

PLAIN = (type(None), bool, int, float, str)
FACTORIES = {factory.__name__: factory for factory in (int, float, str, list, dict)}


class Refused(Exception):  # noqa: N818 - a reason, not a fault of this program
    """What a script may not do or keep; the text is a sentence."""


class World:
    """What a script sees of time and chance: the moment of the event."""

    def __init__(self, salt: str) -> None:
        self.salt = salt
        self.clock: int | None = None
        self.count = 0
        self.random = random.Random()  # noqa: S311 - repeatable numbers are wanted here
        self.begin(None, 0)

    def begin(self, clock: int | None, token: int) -> None:
        """Set the moment."""
        self.clock = clock
        self.random.seed(f"{self.salt}:{token}:{self.count}")

    def seconds(self) -> float:
        """Return the seconds since 1970."""
        return self.nanoseconds() / 1e9

    def nanoseconds(self) -> int:
        """Return the nanoseconds since 1970."""
        if self.clock is None:
            raise Refused("the clock is known while an event is handled, not before")
        return self.clock * 1_000_000

    def modules(self) -> dict[str, Any]:
        """Return the modules that a script can import."""
        chance = {
            name: getattr(self.random, name)
            for name in ("random", "randint", "randrange", "uniform", "gauss", "normalvariate",
                         "choice", "choices", "sample", "shuffle", "expovariate", "betavariate",
                         "triangular", "getrandbits")
        }  # fmt: skip
        return {
            **_MODULES,
            "datetime": types.SimpleNamespace(**_dates(self)),
            "random": types.SimpleNamespace(**chance, seed=lambda *_: None),
            "time": types.SimpleNamespace(time=self.seconds, time_ns=self.nanoseconds),
        }


def _dates(world: World) -> dict[str, Any]:
    def moment(zone: datetime.tzinfo | None = None) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(world.seconds(), zone or datetime.UTC)

    class Datetime(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> "Datetime":
            found = cls.fromtimestamp(world.seconds(), tz or datetime.UTC)
            return found if tz else found.replace(tzinfo=None)

        @classmethod
        def utcnow(cls) -> "Datetime":
            return cls.now()

        @classmethod
        def today(cls) -> "Datetime":
            return cls.now()

    class Date(datetime.date):
        @classmethod
        def today(cls) -> "Date":
            found = moment()
            return cls(found.year, found.month, found.day)

    Datetime.__name__, Date.__name__ = "datetime", "date"
    plain = {
        name: getattr(datetime, name)
        for name in ("timedelta", "timezone", "time", "tzinfo", "UTC", "MINYEAR", "MAXYEAR")
    }
    return {**plain, "datetime": Datetime, "date": Date}


class Context(dict[str, Any]):
    """What a call is about; `context["opcode"]` and `context.opcode` are the same."""

    __getattr__ = dict.__getitem__


class Graph:
    """Variables as JSON, and back; what is shared stays shared.

    `values` refer to `nodes` by number: `[kind, number]`.
    """

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []

    def put(self, value: Any, where: str, depth: int = 0) -> Any:
        """Return how to write `value`.

        Raises:
            Refused: it is not plain data.
        """
        if type(value) in PLAIN:
            return value
        if depth > MAX_STATE_DEPTH:
            raise Refused(f"variable {where} is nested deeper than {MAX_STATE_DEPTH}")
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self.nodes)
            self._alive.append(value)
            self.nodes.append(None)
            number = len(self.nodes) - 1
            self.nodes[number] = self._node(value, where, depth + 1)
        return [self._numbers[id(value)]]

    def _node(self, value: Any, where: str, depth: int) -> list[Any]:
        kind = type(value).__name__
        if type(value) is bytes:
            return [kind, base64.b64encode(value).decode()]
        if type(value) in (list, tuple):
            return [kind, [self.put(part, where, depth) for part in value]]
        if type(value) is collections.deque:
            return [kind, [self.put(part, where, depth) for part in value], value.maxlen]
        if type(value) in (dict, collections.Counter, collections.OrderedDict):
            return [kind, self._pairs(value, where, depth)]
        if type(value) is collections.defaultdict:
            factory = getattr(value.default_factory, "__name__", "")
            if FACTORIES.get(factory) is value.default_factory:
                return [kind, self._pairs(value, where, depth), factory]
        raise Refused(
            f"variable {where} holds a {kind}; keep numbers, texts, lists, tuples and dicts"
        )

    def _pairs(self, value: Any, where: str, depth: int) -> list[Any]:
        return [
            [self.put(key, where, depth), self.put(part, where, depth)]
            for key, part in value.items()
        ]


class Rebuilt:
    """The variables that a `Graph` has written."""

    def __init__(self, nodes: list[Any]) -> None:
        self._nodes = nodes
        self._made: dict[int, Any] = {}

    def take(self, value: Any) -> Any:
        """Return the value that was written as `value`."""
        if type(value) is not list:
            return value
        (number,) = value
        if number not in self._made:
            self._make(number, *self._nodes[number])
        return self._made[number]

    def _make(self, number: int, kind: str, content: Any, extra: Any = None) -> None:
        if kind == "bytes":
            self._made[number] = base64.b64decode(content)
        elif kind == "tuple":
            self._made[number] = tuple([self.take(part) for part in content])
        elif kind in ("list", "deque"):
            made: Any = [] if kind == "list" else collections.deque(maxlen=extra)
            self._made[number] = made
            made.extend([self.take(part) for part in content])
        else:
            self._made[number] = made = _mapping(kind, extra)
            for key, part in content:
                made[self.take(key)] = self.take(part)


def _mapping(kind: str, factory: str) -> Any:
    if kind == "defaultdict":
        return collections.defaultdict(FACTORIES[factory])
    return {"dict": dict, "Counter": collections.Counter, "OrderedDict": collections.OrderedDict}[
        kind
    ]()


class Loaded:
    """A script with its variables."""

    def __init__(self, setup: dict[str, Any]) -> None:
        self._world = World(setup["window"])
        self._window, self._inputs = setup["window"], setup["inputs"]
        self._outputs = setup["outputs"]
        self._names: dict[str, Any] = {"__builtins__": self._builtins(), "__name__": "script"}
        code = compile(setup["code"], "script", "exec", dont_inherit=True)
        exec(code, self._names)  # noqa: S102 - this process exists for that
        self._fixed = {name: value for name, value in self._names.items() if _is_code(value)}
        self._classes = {
            name: value
            for name, value in self._fixed.items()
            if isinstance(value, type) and value.__module__ == "script"
        }
        self._function = self._names.get(setup["function"])
        if not callable(self._function):
            raise Refused(f"the script has no function {setup['function']!r}")
        self._name = setup["function"]

    def _builtins(self) -> dict[str, Any]:
        known = {name: value for name, value in vars(builtins).items() if name not in _NO_BUILTINS}
        modules = self._world.modules()

        def load(name: str, *rest: Any, **more: Any) -> Any:
            if name not in modules:
                there = ", ".join(sorted(modules))
                raise ImportError(f"module {name!r} is not one of those for scripts: {there}")
            return modules[name]

        return {**known, "__import__": load, "print": lambda *_, **__: None}

    def call(self, port: int, about: list[str], moment: list[int], row: Any) -> Any:
        """Call the function with one row; return rows, as lists, or a truth value."""
        window, fields = self._inputs[port]
        (opcode, flags), (clock, token) = about, moment
        data = dict(zip(fields, map(_given, row), strict=True))
        context = Context(window=self._window, input=window, opcode=opcode, flags=flags)
        self._world.count += 1
        self._world.begin(clock, token)
        try:
            return self._answer(self._names[self._name](data, context))
        finally:
            self._world.clock = None

    def _answer(self, result: Any) -> Any:
        if result is None or type(result) is bool:
            return result
        rows = [result] if isinstance(result, dict) else result
        if not isinstance(rows, list | tuple):
            raise Refused(f"the function is to return a dict, not {type(result).__name__}")
        if len(rows) > MAX_ROWS:
            raise Refused(f"more than {MAX_ROWS} rows at once")
        return [self._row(row) for row in rows if row]

    def _row(self, row: Any) -> list[Any]:
        if not isinstance(row, dict):
            raise Refused(f"a row is to be a dict, not {type(row).__name__}")
        return [_taken(row.get(name)) for name in self._outputs]

    def state(self) -> Any:
        """Return the variables."""
        graph, names, classes = Graph(), {}, {}
        for name, value in self._names.items():
            if name.startswith("__") or self._fixed.get(name, graph) is value:
                continue
            names[name] = graph.put(value, name)
        for name, class_ in self._classes.items():
            classes[name] = {
                part: graph.put(value, f"{name}.{part}")
                for part, value in vars(class_).items()
                if not part.startswith("__") and not _is_code(value)
            }
        gone = [name for name in self._fixed if name not in self._names]
        return [self._world.count, names, classes, gone, graph.nodes]

    def restore(self, state: Any) -> None:
        """Put the variables back."""
        self._world.count, names, classes, gone, nodes = state
        rebuilt = Rebuilt(nodes)
        for name in [name for name in self._names if not name.startswith("__")]:
            del self._names[name]
        self._names.update(self._fixed)
        self._names.update({name: rebuilt.take(value) for name, value in names.items()})
        for name in gone:
            del self._names[name]
        for name, parts in classes.items():
            class_ = self._classes[name]
            for part in [p for p, v in vars(class_).items() if p[:2] != "__" and not _is_code(v)]:
                delattr(class_, part)
            for part, value in parts.items():
                setattr(class_, part, rebuilt.take(value))


def _is_code(value: Any) -> bool:
    """Whether the script's text made it, so that it is there again when the text is run again."""
    code = isinstance(value, types.ModuleType | types.SimpleNamespace)
    return code or callable(value) or hasattr(value, "__get__")


def _given(value: Any) -> Any:
    return base64.b64decode(value["b"]) if isinstance(value, dict) else value


def _taken(value: Any) -> Any:
    if type(value) in PLAIN:
        return value
    if isinstance(value, bytes):
        return {"b": base64.b64encode(value).decode()}
    if isinstance(value, list | tuple) and all(type(part) in PLAIN for part in value):
        return list(value)
    raise Refused(f"a value is a {type(value).__name__}; use numbers, texts, bytes or lists")


def refuse_what_hides_state(tree: ast.Module) -> None:
    """Refuse what keeps values where `Loaded.state` does not find them.

    Raises:
        Refused: with the line.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Nonlocal):
            raise Refused(f"line {node.lineno}: use global variables; nonlocal ones are not kept")
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            _check_defaults([*node.args.defaults, *filter(None, node.args.kw_defaults)])


def _check_defaults(defaults: Iterable[ast.expr]) -> None:
    for value in defaults:
        constant = value.operand if isinstance(value, ast.UnaryOp) else value
        if not isinstance(constant, ast.Constant | ast.Name):
            line = value.lineno
            raise Refused(f"line {line}: the default of a parameter can only be a constant")


def _audit(event: str, _: Any) -> None:
    if event not in _REPORTED:
        raise Refused(f"a script cannot do this: {event}")


def _confine() -> None:
    datetime.datetime.strptime("2000", "%Y")  # imports a module, which is refused later
    for limit, value in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 3),
    ):
        resource.setrlimit(limit, (value, value))
    sys.addaudithook(_audit)


def _reason(error: BaseException) -> str:
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "script":
            line = trace.tb_lineno
        trace = trace.tb_next
    what = str(error) if isinstance(error, Refused) else f"{type(error).__name__}: {error}"
    return (f"script line {line}: {what}" if line else what)[:400]


def _serve(read: Callable[[], str], write: Callable[[str], object]) -> None:
    signal_timer, dumps, timer = signal.setitimer, json.dumps, signal.ITIMER_VIRTUAL
    loaded: Loaded | None = None
    while line := read():
        name, *rest = json.loads(line)
        signal_timer(timer, SECONDS)
        try:
            if name == "load":
                loaded = Loaded(*rest)
                answer = None
            else:
                answer = getattr(loaded, name)(*rest)
            text = dumps([True, answer])
        except BaseException as error:
            text = dumps([False, _reason(error)])
        signal_timer(timer, 0)
        write(text + "\n")


def main() -> None:
    """Serve until standard input ends."""
    source, target = sys.stdin, sys.stdout
    sys.stdin = sys.stdout = None
    _confine()

    def write(text: str) -> None:
        target.write(text)
        target.flush()

    _serve(source.readline, write)


if __name__ == "__main__":
    main()
