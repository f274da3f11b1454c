"""What a script sees of the world: modules, the clock and chance of the event, a log."""

import ast
import datetime
import importlib
import io
import posixpath
import random
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from espha.scripts.process import imports
from espha.scripts.process.common import Refused
from espha.scripts.process.given import Date, Datetime, Fixed, Module, Random

MAX_LOG: Final = 50
"""Lines that are kept of what a script says during one piece of a block."""

MAX_LINE: Final = 500

_ALWAYS: Final = ("datetime", "io", "logging", "os", "random", "sys", "time")

_CHANCE: Final = (
    "random", "randint", "randrange", "randbytes", "uniform", "gauss", "normalvariate", "choice",
    "choices", "sample", "shuffle", "expovariate", "betavariate", "gammavariate", "lognormvariate",
    "paretovariate", "vonmisesvariate", "weibullvariate", "triangular", "getrandbits",
)  # fmt: skip

_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}


class World:
    """The moment of an event, and what scripts know of it."""

    def __init__(self, salt: str) -> None:
        self.salt = salt
        self.clock = 0
        self.token = 0
        self.count = 0
        """Calls so far."""
        self.lines: list[tuple[str, str, str]] = []
        """(level, context, text) of what was logged since it was last taken."""
        self._random = random.Random()  # noqa: S311 - repeatable numbers are wanted here
        self._seeded = False
        self._packages: list[Callable[[int], object]] = []
        Datetime.seconds = self.seconds
        Random.derived = self._derived

    def begin(self, clock: int, token: int) -> None:
        """Set the moment; the generators are seeded when they are first asked."""
        self.clock, self.token = clock, token
        self.count += 1
        self._seeded = False
        for seed in self._packages:
            seed(_seed(f"{self.salt}:{token}:{self.count}"))

    def chance(self) -> random.Random:
        """Return the generator of this call."""
        if not self._seeded:
            self._random.seed(f"{self.salt}:{self.token}:{self.count}")
            self._seeded = True
        return self._random

    def _derived(self) -> int:
        return self.chance().getrandbits(64)

    def nanoseconds(self) -> int:
        """Return the nanoseconds since 1970."""
        return self.clock * 1_000_000

    def seconds(self) -> float:
        """Return the seconds since 1970."""
        return self.clock / 1e3

    def log(self, level: str, context: object, *texts: object) -> None:
        """Keep a line for the log of the engine."""
        if len(self.lines) < MAX_LOG:
            line = " ".join(map(str, texts))[:MAX_LINE]
            self.lines.append((level, str(context or "")[:MAX_LINE], line))

    def modules(self, names: Iterable[str]) -> dict[str, Any]:
        """Return modules that a script imports, by name; unknown ones are missing."""
        makers: dict[str, Callable[[World], Any]] = {
            "ast": _ast, "datetime": _datetime, "esp": _esp, "inspect": _inspect, "io": _io,
            "logging": _logging, "os": _os, "os.path": _os_path, "random": _random_module,
            "sys": _sys, "threading": _threading, "time": _time, "uuid": _uuid,
        }  # fmt: skip
        found: dict[str, Any] = {}
        # Python's own code imports some of them where a script did not.
        wanted = [*_ALWAYS, *(part for name in names for part in (_top(name), name))]
        for name in dict.fromkeys(wanted):
            if name in makers:
                found[name] = makers[name](self)
            elif imports.known(name):
                try:
                    found[name] = importlib.import_module(name)
                except ImportError:
                    continue
        if "numpy" in sys.modules:
            self._packages.append(_numpy(self))
        return found


def _top(name: str) -> str:
    return name.partition(".")[0]


def _seed(text: str) -> int:
    """Return a number of 32 bits for a text, the same in every process."""
    return int.from_bytes(random.Random(text).randbytes(4), "big")  # noqa: S311


def _numpy(world: World) -> Callable[[int], object]:
    """Make NumPy's generators depend on the event; return what seeds them."""
    numpy_random: Any = importlib.import_module("numpy.random")
    made = numpy_random.default_rng

    def default_rng(seed: Any = None) -> Any:
        return made(world.chance().getrandbits(64) if seed is None else seed)

    numpy_random.default_rng = default_rng
    seed: Callable[[int], object] = numpy_random.seed
    numpy_random.seed = _nothing
    return seed


def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


def _asked(world: World, name: str) -> Callable[..., Any]:
    def ask(*arguments: Any, **more: Any) -> Any:
        return getattr(world.chance(), name)(*arguments, **more)

    ask.__name__ = name
    return ask


def _random_module(world: World) -> Module:
    functions = {name: _asked(world, name) for name in _CHANCE}
    return Module(**functions, seed=_nothing, Random=Random)


def _uuid(world: World) -> Module:
    uuid = importlib.import_module("uuid")

    def uuid4() -> Any:
        return uuid.UUID(int=world.chance().getrandbits(128), version=4)

    names = ("UUID", "uuid3", "uuid5", "NAMESPACE_DNS", "NAMESPACE_URL", "NAMESPACE_OID")
    plain = {name: getattr(uuid, name) for name in names}
    return Module(**plain, uuid4=uuid4, uuid1=uuid4)


def _time(world: World) -> Module:
    def moment(seconds: float | None = None) -> time.struct_time:
        return time.gmtime(world.seconds() if seconds is None else seconds)

    def strftime(form: str, of: Any = None) -> str:
        return time.strftime(form, moment() if of is None else of)

    def ctime(seconds: float | None = None) -> str:
        return time.asctime(moment(seconds))

    return Module(
        time=world.seconds, time_ns=world.nanoseconds, monotonic=world.seconds,
        monotonic_ns=world.nanoseconds, perf_counter=world.seconds,
        perf_counter_ns=world.nanoseconds, process_time=world.seconds, sleep=_nothing,
        gmtime=moment, localtime=moment, strftime=strftime, strptime=time.strptime,
        mktime=time.mktime, asctime=lambda of=None: time.asctime(of or moment()), ctime=ctime,
        timezone=0, altzone=0, daylight=0, tzname=("UTC", "UTC"), struct_time=time.struct_time,
    )  # fmt: skip


def _datetime(_: World) -> Module:
    names = ("timedelta", "timezone", "time", "tzinfo", "UTC", "MINYEAR", "MAXYEAR")
    plain = {name: getattr(datetime, name) for name in names}
    return Module(**plain, datetime=Datetime, date=Date)


def _logging(world: World) -> Module:
    class Logger(Fixed):
        def __init__(self, name: str = "root") -> None:
            self.name, self.level, self.propagate = name, 0, True
            self.handlers: list[Any] = []

        def log(self, level: int, text: object, *arguments: object, **_: Any) -> None:
            word = next((word for word, least in reversed(_LEVELS.items()) if level >= least), "")
            said = str(text) % arguments if arguments else str(text)
            world.log(word or "debug", self.name, said)

        def __getattr__(self, name: str) -> Any:
            word = {"warn": "warning", "fatal": "critical", "exception": "error"}.get(name, name)
            if word in _LEVELS:
                return lambda text, *rest, **_: self.log(_LEVELS[word], text, *rest)
            if name.startswith("__"):
                raise AttributeError(name)
            return _nothing

        def isEnabledFor(self, _: int) -> bool:  # noqa: N802 - the name in Python's module
            return True

        hasHandlers = isEnabledFor  # noqa: N815 - the same

    class Handler(Fixed):
        def __init__(self, *_: Any, **__: Any) -> None:
            pass

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return _nothing

    loggers: dict[str, Logger] = {}

    def logger(name: str | None = None) -> Logger:
        return loggers.setdefault(name or "root", Logger(name or "root"))

    levels = {word.upper(): number for word, number in _LEVELS.items()}
    words = (*_LEVELS, "warn", "fatal", "exception", "log")
    functions = {word: getattr(logger(), word) for word in words}
    handlers = ("Handler", "StreamHandler", "FileHandler", "NullHandler", "Formatter")
    return Module(
        **levels, **functions, **dict.fromkeys(handlers, Handler), WARN=30, FATAL=50, NOTSET=0,
        Logger=Logger, getLogger=logger, basicConfig=_nothing, disable=_nothing,
        captureWarnings=_nothing,
    )  # fmt: skip


def _esp(world: World) -> Module:
    def log_message(
        logcontext: object = "", message: object = "", level: str = "info", line: Any = None
    ) -> None:
        world.log(str(level), logcontext, message)

    return Module(logMessage=log_message)


def _os_path(_: World) -> Module:
    names = ("basename", "dirname", "join", "split", "splitext", "normpath", "isabs", "sep",
             "commonprefix", "relpath", "abspath")  # fmt: skip
    there = dict.fromkeys(("exists", "isfile", "isdir"), lambda _: False)
    return Module(**{name: getattr(posixpath, name) for name in names}, **there)


def _os(world: World) -> Module:
    environment: dict[str, str] = {}
    return Module(
        environ=environment, getenv=environment.get, path=_os_path(world), sep="/", linesep="\n",
        name="posix", pathsep=":", getcwd=lambda: "/", getpid=lambda: 1, cpu_count=lambda: 1,
    )  # fmt: skip


def _sys(world: World) -> Module:
    names = ("maxsize", "byteorder", "version", "version_info", "float_info", "maxunicode",
             "exc_info", "getrecursionlimit", "intern", "hash_info", "int_info")  # fmt: skip

    class Stream(Fixed):
        def write(self, text: str) -> int:
            if text.strip():
                world.log("info", "", text.rstrip())
            return len(text)

        def flush(self) -> None:
            pass

    def end(*_: Any) -> None:
        raise Refused("a script cannot end its process")

    stream = Stream()
    return Module(
        **{name: getattr(sys, name) for name in names}, stdout=stream, stderr=stream, argv=[""],
        path=[], platform="linux", modules={}, exit=end, executable="", getsizeof=lambda *_: 0,
    )  # fmt: skip


def _io(_: World) -> Module:
    names = ("StringIO", "BytesIO", "TextIOWrapper", "BufferedReader")
    return Module(**{name: getattr(io, name) for name in names})


def _threading(_: World) -> Module:
    class Lock(Fixed):
        """There is one thread."""

        def __enter__(self) -> bool:
            return True

        def __exit__(self, *_: Any) -> None:
            pass

        def acquire(self, *_: Any, **__: Any) -> bool:
            return True

        release = __exit__

    return Module(Lock=Lock, RLock=Lock)


def _ast(_: World) -> Module:
    return Module(literal_eval=ast.literal_eval)


def _inspect(_: World) -> Module:
    inspect = importlib.import_module("inspect")
    # What code reads that was made by tools, of its own calls.
    names = ("getargvalues", "signature", "isfunction", "isclass", "getmembers")
    plain = {name: getattr(inspect, name) for name in names}
    return Module(**plain, currentframe=lambda: sys._getframe(1))
