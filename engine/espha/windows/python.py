"""Python windows."""

from collections.abc import Sequence

from espha.model.kinds.python import PythonWindow
from espha.model.project import Field
from espha.windows.scripted import Scripted
from espha.windows.stage import Stage


def stages(window: PythonWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a Python window."""
    return [Scripted(window, feeds)]
