"""Python windows."""

from collections.abc import Sequence

from espha.model.project import Field
from espha.windows.python.spec import PythonWindow
from espha.windows.shared.script import Scripted
from espha.windows.shared.stage import Stage


def stages(window: PythonWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a Python window."""
    return [Scripted(window, feeds)]
