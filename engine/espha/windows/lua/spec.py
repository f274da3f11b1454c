"""Lua windows."""

from typing import Any, Literal

from espha.windows.shared.script_spec import ScriptWindow, read_script_window
from espha.windows.shared.spec import Reading, WindowType


class LuaWindow(ScriptWindow):
    """Its events are made by a function in Lua."""

    type: Literal["lua"] = "lua"


def _read(reading: Reading) -> LuaWindow | None:
    arguments: Any = read_script_window(reading, "lua")
    return None if arguments is None else LuaWindow(**arguments)


WINDOW = WindowType(
    "lua",
    _read,
    "computation",
    elements=frozenset({"schema", "schema-string", "code", "use", "copy"}),
    refused=frozenset({"code-file"}),
    attributes=frozenset({"events"}),
    inputs=(1, None),
)
