"""Lua windows."""

from collections.abc import Sequence

from espha.model.kinds.lua import LuaWindow
from espha.model.project import Field
from espha.windows.scripted import Scripted
from espha.windows.stage import Stage


def stages(window: LuaWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a Lua window."""
    return [Scripted(window, feeds)]
