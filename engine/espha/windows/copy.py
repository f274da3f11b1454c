"""Copy windows."""

from collections.abc import Sequence

from espha.model.kinds.copy import CopyWindow
from espha.model.project import Field
from espha.windows.stage import Stage


def stages(window: CopyWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return none: a copy only keeps rows, and that is its index."""
    return []
