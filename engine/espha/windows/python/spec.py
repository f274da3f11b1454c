"""Python windows."""

from typing import Literal

from espha.windows.shared.script_spec import ScriptWindow, read_script_window, script_window
from espha.windows.shared.spec import Reading


class PythonWindow(ScriptWindow):
    """Its events are made by a function in Python."""

    type: Literal["python"] = "python"


def _read(reading: Reading) -> PythonWindow | None:
    arguments = read_script_window(reading, "python")
    return None if arguments is None else PythonWindow(**arguments)


WINDOW = script_window("python", _read)
