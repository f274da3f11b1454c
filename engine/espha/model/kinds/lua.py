"""Lua windows."""

from typing import Any, Literal

from espha.model.kinds.base import Kind, Reading
from espha.model.kinds.scripted import ScriptWindow, read_script_window


class LuaWindow(ScriptWindow):
    """Its events are made by a function in Lua."""

    kind: Literal["lua"] = "lua"


def _read(reading: Reading) -> LuaWindow | None:
    arguments: Any = read_script_window(reading, "lua")
    return None if arguments is None else LuaWindow(**arguments)


KIND = Kind(
    "lua",
    _read,
    elements=frozenset({"schema", "schema-string", "code", "code-file", "use", "copy"}),
    attributes=frozenset({"events"}),
    inputs=(1, None),
)
