"""A loaded script: its texts, its variables, and the calls of its functions."""

import ast
import builtins
import enum
import io
import json
import sys
import time
import types
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from espha.scripts.process import imports
from espha.scripts.process.common import MAX_ROWS, PLAIN, Refused
from espha.scripts.process.memory import Code, Graph, Rebuilt, is_code, is_data
from espha.scripts.process.sets import Frozen, Ordered
from espha.scripts.process.values import encoded, module_call, reason, taken
from espha.scripts.process.world import World

PIECE_SECONDS: Final = 1.0
"""After so long an answer goes out, whatever is left of the block."""

PIECE_LETTERS: Final = 1 << 20
"""Letters of answers after which they go out."""

_NO_BUILTINS: Final = frozenset(
    {"breakpoint", "help", "quit", "copyright", "credits", "license", "id", "memoryview",
     "__loader__", "__spec__", "__import__"}
)  # fmt: skip
_REFUSED_BUILTINS: Final = (
    "exec", "eval", "compile", "input", "globals", "vars", "dir", "locals", "exit",
)  # fmt: skip

encode: Final = json.JSONEncoder().encode


class Context(dict[str, Any]):
    """What a call is about; `context["opcode"]` and `context.opcode` are the same."""

    __slots__ = ()
    __getattr__ = dict.__getitem__


class _SetDisplays(ast.NodeTransformer):
    """Makes sets that keep their order of what is written in braces."""

    def visit_Set(self, node: ast.Set) -> ast.AST:
        self.generic_visit(node)
        return self._call(node, ast.List(node.elts, ast.Load()))

    def visit_SetComp(self, node: ast.SetComp) -> ast.AST:
        self.generic_visit(node)
        return self._call(node, ast.ListComp(node.elt, node.generators))

    def _call(self, node: ast.expr, elements: ast.expr) -> ast.AST:
        call = ast.Call(ast.Name("__set__", ast.Load()), [elements], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))


class Loaded:
    """A script, loaded."""

    def __init__(self, setup: dict[str, Any], moment: Sequence[int], modules: list[str]) -> None:
        """Run the main part.

        Args:
            setup: what `espha.scripts.python` says of the script.
            moment: clock and token of the first event.
            modules: what the script imports.
        """
        self._window = setup["window"]
        self._inputs = setup["inputs"]
        self._outputs = setup["outputs"]
        self._options = setup["options"]
        self.world = World(self._window)
        self._moment = list(moment)
        self.world.clock, self.world.token = moment
        self._modules = self.world.modules(modules)
        self._texts: dict[str, str] = {}
        self._units: dict[str, types.ModuleType] = {}
        self._builtins = self._make_builtins()
        if "esp" in self._modules:
            self._modules["esp"].call = self._call_snippet
        main = self._run("script", "script", setup["code"])
        for name in self._options["modules"]:
            self._user_module(name)
        for name, text in self._options["snippets"].items():
            self._run(f"script.snippet {name}", f"snippet {name}", text)
        self._fixed = {
            unit: {name: value for name, value in vars(names).items() if is_code(value)}
            for unit, names in self._units.items()
        }
        self._code = Code(
            value
            for names in (self._builtins, *map(vars, self._units.values()))
            for name, value in names.items()
            if not name.startswith("__")
        )
        self._function(setup["function"])
        self._main, self._default = vars(main), setup["function"]
        self._adapted: dict[str, Callable[..., Any]] = {}

    def _make_builtins(self) -> dict[str, Any]:
        known = {name: value for name, value in vars(builtins).items() if name not in _NO_BUILTINS}
        known |= {name: _refusing(name) for name in _REFUSED_BUILTINS}
        return {
            **known,
            "__import__": self._import,
            "__set__": Ordered,
            "set": Ordered,
            "frozenset": Frozen,
            "open": self._open,
            "print": lambda *texts, **_: self.world.log("info", "", *texts),
        }

    def _open(self, name: Any, mode: str = "r", *_: Any, **more: Any) -> Any:
        """Open a file that came with the model, for reading."""
        content = self._options.get("files", {}).get(str(name))
        if content is None or set(mode) - set("rtb"):
            raise Refused("a script cannot do this: open")
        binary = b64decode(content["b"])
        encoding = more.get("encoding") or "utf-8"
        return io.BytesIO(binary) if "b" in mode else io.StringIO(binary.decode(encoding))

    def _import(
        self, name: str, _names: Any = None, _own: Any = None, wanted: Any = (), level: int = 0
    ) -> Any:
        top, _, below = name.partition(".")
        if level == 0 and name in self._options["modules"]:
            return self._user_module(name)
        parts = {part: self._modules.get(f"{name}.{part}") for part in wanted or ()}
        if name not in self._modules and parts and all(parts.values()):
            return types.SimpleNamespace(**parts)
        if name == "_strptime" or (top in imports.PACKAGES and name in sys.modules):
            return sys.modules[name if wanted else top]  # asked by code that is not Python
        if level or name not in self._modules:
            raise ImportError(f"module {name!r} is not one of those for scripts")
        if wanted or not below:
            return self._modules[name]
        return self._modules.get(top) or _package(below, self._modules[name])

    def _user_module(self, name: str) -> types.ModuleType:
        known = self._units.get(f"script.{name}")
        text = self._options["modules"][name]
        return known or self._run(f"script.{name}", f"module {name}", text)

    def _run(self, unit: str, shown: str, text: str) -> types.ModuleType:
        made = types.ModuleType(unit)
        vars(made)["__builtins__"] = self._builtins
        self._units[unit] = sys.modules[unit] = made
        self._texts[shown] = text
        tree = _SetDisplays().visit(ast.parse(text, shown))
        try:
            exec(compile(tree, shown, "exec", dont_inherit=True), vars(made))  # noqa: S102
        except BaseException:
            del self._units[unit]
            raise
        return made

    def _function(self, name: str) -> Callable[..., Any]:
        function = vars(self._units["script"]).get(name)
        if not callable(function):
            raise Refused(f"the script has no function {name!r}")
        found: Callable[..., Any] = function
        return found

    def _call_snippet(
        self, *arguments: Any, _pyname_: str = "", _pyfunc_: str = "", **named: Any
    ) -> dict[str, Any]:
        try:
            unit = self._units.get(f"script.snippet {_pyname_}")
            function = vars(unit).get(_pyfunc_) if unit else None
            if not callable(function):
                raise Refused(f"there is no function {_pyfunc_!r} in snippet {_pyname_!r}")
            result = function(*arguments, **named)
        except Exception as error:
            return {"code": False, "results": [], "error": self._described(error)}
        several = isinstance(result, tuple)
        return {"code": True, "results": list(result) if several else [result], "error": ""}

    def _described(self, error: Exception) -> str:
        place, trace = None, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename in self._texts:
                place = trace
            trace = trace.tb_next
        said = f"error='{error}'"
        if place is None:
            return said
        code = place.tb_frame.f_code
        line = self._texts[code.co_filename].splitlines()[place.tb_lineno - 1].strip()
        return (
            f"{said}, file:python, function:{code.co_name}, linenum:{place.tb_lineno}, code:{line}"
        )

    def begin(self) -> None:
        """Call the function that comes before the first event."""
        name, settings = self._options["init"], self._options["settings"]
        if name:
            function = self._function(name)
            function() if settings is None else function(dict(settings))

    def calls(self, calls: list[list[Any]], arm: Callable[[], object]) -> str:
        """Call functions with one row after the other; return the answers as JSON.

        There can be fewer answers than calls: the others are to be asked again.
        """
        answers, letters = [], 0
        end = time.monotonic() + PIECE_SECONDS
        for call in calls:
            arm()
            try:
                text = encode(self._call(call))
            except BaseException as error:
                text = encode({"e": reason(error)})
            answers.append(text)
            letters += len(text)
            if letters > PIECE_LETTERS or time.monotonic() > end:
                break
        return f"[{','.join(answers)}]"

    def _call(self, call: list[Any]) -> Any:
        name, port, opcode, flags, clock, token, row = call
        self.world.begin(clock, token)
        function = self._main[name or self._default]
        window, fields = self._inputs[port] if port >= 0 else ("", ())
        context = Context(window=self._window, input=window, opcode=opcode, flags=flags)
        if port < 0:
            return self._answer(function(context))
        if self._options["encoded"]:
            row = [encoded(value) for value in row]
        data = dict(zip(fields, row, strict=True))
        if self._options["mas"]:
            return self._answer(module_call(function, data, context))
        if self._options["expanded"]:
            return self._answer(function(*row))
        return self._answer(function([data] if self._options["blocks"] else data, context))

    def _answer(self, result: Any) -> Any:
        if type(result) in PLAIN:
            return result
        if isinstance(result, Mapping):
            rows: Any = (result,)
        elif isinstance(result, list | tuple):
            rows = result
        else:
            return taken(result)
        if len(rows) > MAX_ROWS:
            raise Refused(f"more than {MAX_ROWS} rows at once")
        return [self._row(row) for row in rows if row is not None]

    def _row(self, row: Any) -> list[Any]:
        if not isinstance(row, Mapping):
            raise Refused(f"a row is to be a dict, not {type(row).__name__}")
        get = row.get
        return [
            value if type(value := get(name)) in PLAIN else taken(value) for name in self._outputs
        ]

    def state(self) -> Any:
        """Return the variables."""
        graph = Graph(self._code)
        units = {unit: self._variables(graph, unit) for unit in self._units}
        classes = [
            [number, _put_all(graph, class_.__name__, dict(sorted(_data_of(class_).items())))]
            for number, class_ in self._code.classes()
        ]
        functions = []
        for number, function in self._code.functions():
            if held := _held(function, self._code):
                functions.append([number, graph.put(held, function.__name__)])
        return [self._moment, self.world.count, units, classes, functions, graph.nodes]

    def _variables(self, graph: Graph, unit: str) -> list[Any]:
        fixed, names = self._fixed[unit], vars(self._units[unit])
        data = {
            name: value
            for name, value in sorted(names.items())  # the order may be that of a restore
            if not name.startswith("__") and not (name in fixed and fixed[name] is value)
        }
        return [_put_all(graph, "", data), [name for name in fixed if name not in names]]

    def restore(self, state: Any) -> None:
        """Put the variables back."""
        _, self.world.count, units, classes, functions, nodes = state
        rebuilt = Rebuilt(nodes, self._code)
        for unit, (data, gone) in units.items():
            names = vars(self._units[unit])
            for name in [name for name in names if not name.startswith("__")]:
                del names[name]
            names.update(self._fixed[unit])
            names.update({name: rebuilt.take(value) for name, value in data.items()})
            for name in gone:
                names.pop(name, None)
        for number, data in classes:
            class_ = self._code.found[number]
            for name in _data_of(class_):
                delattr(class_, name)
            for name, value in data.items():
                setattr(class_, name, rebuilt.take(value))
        for number, held in functions:
            _put_back(self._code.found[number], rebuilt.take(held))


def _put_all(graph: Graph, of: str, values: Mapping[str, Any]) -> dict[str, Any]:
    prefix = of and f"{of}."
    return {name: graph.put(value, prefix + name) for name, value in values.items()}


def _data_of(class_: type) -> dict[str, Any]:
    """Return the variables of a class."""
    if isinstance(class_, enum.EnumMeta):
        return {}
    return {
        name: value
        for name, value in vars(class_).items()
        if not name.startswith(("__", "_abc_"))
        and not is_code(value)
        and not hasattr(type(value), "__get__")
    }


def _held(function: types.FunctionType, code: Code) -> list[Any]:
    """Return what a function holds and can change: closures, defaults, attributes."""

    def changeable(values: Iterable[tuple[Any, Any]]) -> list[list[Any]]:
        # What tools put there, and is neither data nor an iterator, stays as it is.
        return [
            [name, value]
            for name, value in values
            if is_data(value, code) or hasattr(value, "__next__")
        ]

    cells = [cell.cell_contents if _filled(cell) else None for cell in function.__closure__ or ()]
    held = [
        changeable(enumerate(cells)),
        changeable(enumerate(function.__defaults__ or ())),
        changeable((function.__kwdefaults__ or {}).items()),
        changeable(vars(function).items()),
    ]
    return held if any(held) else []


def _filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _put_back(function: types.FunctionType, held: list[Any]) -> None:
    cells, defaults, named, attributes = held
    for place, value in cells:
        cell = (function.__closure__ or ())[place]
        if value is not None or _filled(cell):
            cell.cell_contents = value
    if defaults:
        values = list(function.__defaults__ or ())
        for place, value in defaults:
            values[place] = value
        function.__defaults__ = tuple(values)
    for name, value in named:
        (function.__kwdefaults__ or {})[name] = value
    for name, value in attributes:
        setattr(function, name, value)


def _package(below: str, module: Any) -> Any:
    """Return a package of which a script gets one module."""
    found = module
    for part in reversed(below.split(".")):
        found = types.SimpleNamespace(**{part: found})
    return found


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> None:
        raise Refused(f"a script cannot do this: {name}")

    return refuse
