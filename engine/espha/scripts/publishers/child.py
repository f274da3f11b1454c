"""The process that a publisher in Python lives in; started by `espha.scripts.publishers.python`.

It stands alone: only the standard library, no part of the engine. A line of JSON comes in on
standard input, a line of JSON goes out on standard output: `[true, answer]` or `[false, reason]`.

A publisher reads the files of its project, the clock and random numbers. It writes nothing,
starts nothing, and has no network: an audit hook refuses all other operations that Python
reports, and the kernel limits memory and files. This stops mistakes and simple malice.
"""

import base64
import io
import json
import os
import resource
import sys
import types
from pathlib import Path
from typing import Any

MEMORY = 1024 * 1024 * 1024
_REPORTED = frozenset(
    {"compile", "exec", "import", "sys._getframe", "sys._current_frames", "object.__getattr__",
     "object.__setattr__", "object.__delattr__", "builtins.id", "marshal.loads", "marshal.load",
     "code.__new__", "function.__new__", "array.__new__", "time.sleep", "os.listdir", "os.scandir",
     "os.walk", "glob.glob", "glob.glob/2", "pathlib.Path.glob", "pathlib.Path.rglob",
     "sys.unraisablehook", "sys.excepthook", "gc.get_objects", "os.fwalk", "pickle.find_class"}
)  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Refused(Exception):  # noqa: N818 - a reason, not a fault of this program
    """What a publisher may not do."""


def confine(home: str) -> None:
    """Take away what a publisher does not need; reading below `home` stays."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    readable = tuple(
        os.path.realpath(folder) + os.sep
        for folder in {home, sys.prefix, sys.base_prefix, *filter(None, sys.path)}
    )

    def check(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITING:
                raise Refused(f"a connector's script writes no files ({path})")
            if isinstance(path, str | bytes):
                real = os.path.realpath(os.fsdecode(path))
                if not (real + os.sep).startswith(readable):
                    raise Refused(f"{real} is not below the folder of the project")
        elif event not in _REPORTED:
            raise Refused(f"a connector's script cannot do this here: {event}")

    sys.addaudithook(check)


def open_nearby(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
    """Open a file; one that is not there is looked for by its name, in the project."""
    path = Path(os.fsdecode(file))
    if not path.exists():
        folders = [Path(), *sorted(each for each in Path().iterdir() if each.is_dir())]
        path = next((each / path.name for each in folders if (each / path.name).exists()), path)
    return path.open(mode, *arguments, **options)


def esp_module() -> types.ModuleType:
    """Return what `import esp` gives."""
    module = types.ModuleType("esp")

    def log(*values: object) -> None:
        print(*values, file=sys.stderr)

    for name in ("logMessage", "log_message", "logmessage", "log"):
        setattr(module, name, log)
    return module


def plain(value: Any) -> Any:
    """Return how JSON is to write what it does not know."""
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if hasattr(value, "isoformat"):
        return value.isoformat(" ") if hasattr(value, "hour") else value.isoformat()
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, set | frozenset):
        return sorted(value)
    return str(value)


class Script:
    """The loaded script."""

    def __init__(self, code: str, publish: str, init: str) -> None:
        self._names: dict[str, Any] = {"__name__": "script", "open": open_nearby}
        exec(compile(code, "script", "exec"), self._names)  # noqa: S102 - this process is for that
        self._publish = self._function(publish)
        if init:
            self._function(init)()

    def _function(self, name: str) -> Any:
        function = self._names.get(name)
        if not callable(function):
            raise Refused(f"the script has no function {name!r}")
        return function

    def publish(self) -> dict[str, Any]:
        """Call the function; return its events, and whether they were the last ones."""
        answer = self._publish()
        if isinstance(answer, dict) and ("events" in answer or "done" in answer):
            events, done = answer.get("events"), bool(answer.get("done"))
        elif isinstance(answer, bool):
            events, done = [], answer
        else:
            events, done = answer, False
        found = [events] if isinstance(events, dict) else list(events or [])
        if not all(isinstance(event, dict) for event in found):
            raise Refused("an event is to be a dict with the names of fields")
        return {"events": found, "done": done}


def reason_of(error: BaseException) -> str:
    """Say what went wrong, and in which line of the script."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "script":
            line = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}"
    text = str(error) if isinstance(error, Refused) else f"{type(error).__name__}: {error}"
    return f"line {line}: {text}" if line else text


def main() -> None:
    """Answer one message after the other until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    sys.stdout = io.StringIO()
    sys.modules["esp"] = esp_module()
    script = None
    for line in sys.stdin:
        message = json.loads(line)
        try:
            if script is None:
                os.environ.update(message["variables"])
                os.chdir(message["home"])
                confine(message["home"])
                script = Script(message["code"], message["publish"], message["init"])
                answer: Any = [True, None]
            else:
                answer = [True, script.publish()]
            text = json.dumps(answer, default=plain)
        except BaseException as error:  # the script's own faults are answers
            text = json.dumps([False, reason_of(error)])
        sys.stdout.seek(0)
        sys.stdout.truncate()
        answers.write(text + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
