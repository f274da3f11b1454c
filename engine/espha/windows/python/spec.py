"""Python windows."""

from typing import Any, Literal

from espha.windows.shared.script_spec import ScriptWindow, read_script_window
from espha.windows.shared.spec import Reading, WindowType


class PythonWindow(ScriptWindow):
    """Its events are made by a function in Python."""

    type: Literal["python"] = "python"


def _read(reading: Reading) -> PythonWindow | None:
    arguments: Any = read_script_window(reading, "python")
    return None if arguments is None else PythonWindow(**arguments)


WINDOW = WindowType(
    "python",
    _read,
    "computation",
    elements=frozenset({"schema", "schema-string", "code", "use", "copy"}),
    refused=frozenset({"code-file"}),
    attributes=frozenset({"events"}),
    inputs=(1, None),
)
