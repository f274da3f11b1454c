"""Copy windows."""

from collections.abc import Sequence

from espha.model.project import Field
from espha.windows.copy.spec import CopyWindow
from espha.windows.shared.stage import Stage


def stages(window: CopyWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return none: a copy only keeps rows, and that is its index."""
    return []
