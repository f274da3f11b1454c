"""A window of the model to the stages that run it."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import cast

from espha.model.project import Field, IdleWindow, Window
from espha.windows.shared.by_name import ByName, merged
from espha.windows.shared.index import index_of
from espha.windows.shared.spec import WindowType
from espha.windows.shared.stage import OnlyInserts, Stage
from espha.windows.types import WINDOWS

Feeds = Sequence[tuple[Field, ...]]
"""The schemas of the windows that feed a window, in the order of the edges."""

Builder = Callable[[Window, Feeds], list[Stage]]
"""What a window type's `stages.py` has under the name `stages`."""


def build_stages(window: Window, feeds: Feeds) -> list[Stage]:
    """Return the stages of a window, in the order of processing.

    Args:
        window: the window.
        feeds: schemas of the windows that feed it, in the order of the edges.
    """
    if isinstance(window, IdleWindow):
        return []
    window_type = WINDOWS[window.type]
    stages: list[Stage] = []
    if window_type.by_name and len(set(feeds)) > 1:
        stages.append(ByName(feeds))
        feeds = [merged(feeds)] * len(feeds)
    stages += _builder(window_type)(window, feeds)
    if window.stateful and not window_type.own_rows:
        stages.append(index_of(window))
    if window.insert_only_output:
        stages.append(OnlyInserts())
    return stages


def _builder(window_type: WindowType) -> Builder:
    """Return what makes the stages of a window type; its module is imported by the first call."""
    return cast(Builder, import_module(f"{window_type.package}.stages").stages)
