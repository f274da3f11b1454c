"""Lua windows."""

from collections.abc import Sequence

from espha.model.project import Field
from espha.windows.lua.spec import LuaWindow
from espha.windows.shared.script import Scripted
from espha.windows.shared.stage import Stage


def stages(window: LuaWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a Lua window."""
    return [Scripted(window, feeds)]
