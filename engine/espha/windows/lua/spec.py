"""Lua windows."""

from typing import Literal

from espha.windows.shared.script_spec import ScriptWindow, read_script_window, script_window
from espha.windows.shared.spec import Reading


class LuaWindow(ScriptWindow):
    """Its events are made by a function in Lua."""

    type: Literal["lua"] = "lua"


def _read(reading: Reading) -> LuaWindow | None:
    arguments = read_script_window(reading, "lua")
    return None if arguments is None else LuaWindow(**arguments)


WINDOW = script_window("lua", _read)
